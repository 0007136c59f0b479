// A push service on this machine, for when the browser's own cannot be reached: Belfry's stand-in.
// To the hub there is no difference: it encrypts for this subscription and pushes to its endpoint.
// In place of the browser, this holds the keys, keeps a connection to the push service and decrypts.
// Unlike the browser, it can only do so while the page is open.

import { decrypt, makeKeys } from './webpush.js';

export class LocalPush {
  #line; // An AbortController: of the connection that is open, or that waits for its turn.
  #tell;

  // tell({ trouble, lost }) is called when the connection breaks, is restored (no trouble), or when the
  // push service does not know the subscription any more (lost); tell({ thrownAway }) with the reason
  // a message could not be decrypted.
  constructor(tell) {
    this.#tell = tell;
  }

  // The subscription of the last visit, or a new one; restricted to one VAPID key like a real one.
  async subscribe(vapidPublicKey) {
    const old = await Hub.kept.get('local');
    if (old?.vapidPublicKey === vapidPublicKey && (await isKnown(old.id))) return old;
    const keys = await makeKeys();
    const channel = {
      p256dh: Hub.base64url.encode(keys.publicKey), auth: Hub.base64url.encode(keys.auth),
    };
    const made = await (await Hub.call('subscriptions', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...channel, vapidPublicKey }),
    })).json();
    const subscription = { ...channel, ...made, vapidPublicKey, keys };
    await Hub.kept.set('local', subscription);
    await Hub.kept.set('position', 0);
    return subscription;
  }

  // Opens the connection where the last one ended; the push service has kept messages since then. If
  // several pages of one browser are open, one has the connection; the worker tells all.
  listen(subscription, worker) {
    this.close();
    const line = new AbortController();
    this.#line = line;
    navigator.locks.request('belfry-push-line', { signal: line.signal }, async () => {
      const position = await Hub.kept.get('position');
      if (line.signal.aborted) return;
      const source = new EventSource(`subscriptions/${subscription.id}/messages?after=${position}`);
      let shown = Promise.resolve();
      source.addEventListener('push', (event) => {
        shown = shown.then(async () => {
          await this.#receive(JSON.parse(event.data).body, subscription, worker);
          await Hub.kept.set('position', Number(event.lastEventId));
        });
      });
      this.#watch(source);
      await new Promise((release) => line.signal.addEventListener('abort', release));
      source.close();
      await shown; // The next connection begins after the messages of this one.
    }).catch(() => {}); // Closed before its turn.
  }

  #watch(source) {
    // In a browser, the worker gets this by pushsubscriptionchange.
    source.addEventListener('ended', () => {
      source.close();
      this.#tell({ trouble: 'The push service has ended this subscription.', lost: true });
    });
    source.addEventListener('open', () => this.#tell({}));
    source.addEventListener('error', () => this.#tell({
      trouble: 'The line to Belfry’s push service is broken. Is “belfry up” still running?',
      // It retries by itself, unless the answer was not an event stream.
      lost: source.readyState === EventSource.CLOSED,
    }));
  }

  close() {
    this.#line?.abort();
    this.#line = undefined;
  }

  async unsubscribe() {
    this.close();
    const old = await Hub.kept.get('local');
    await Hub.kept.delete('local');
    if (old) await Hub.call(`subscriptions/${old.id}`, { method: 'DELETE' }).catch(() => {});
  }

  async #receive(data, { keys }, worker) {
    try {
      const sealed = Hub.base64url.decode(data);
      // A push may come without a message.
      const bytes = sealed.length ? await decrypt(keys, sealed) : sealed;
      await hand(bytes.buffer, worker);
    } catch (error) {
      // As in a browser, a message that cannot be decrypted wakes no worker; but report it to developers.
      this.#tell({ thrownAway: error.message });
    }
  }
}

async function isKnown(id) {
  try {
    await Hub.call(`subscriptions/${id}`);
    return true;
  } catch (failure) {
    if (failure.status === 404) return false;
    throw failure;
  }
}

// Passes the message to the worker, and waits until it has been shown.
function hand(bytes, worker) {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve, reject) => {
    port1.onmessage = ({ data }) => {
      port1.close();
      if (data.error) reject(new Error(data.error));
      else resolve(data.message);
    };
    worker.postMessage({ type: 'push', bytes }, [bytes, port2]);
  });
}
