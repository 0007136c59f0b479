// A push service on this machine, for when the browser's own cannot be reached: Belfry's stand-in.
// The hub does not see a difference: it encrypts for this subscription and pushes to its endpoint.
// What the browser would do, this does: hold the keys, keep a line to the push service open, decrypt.
// Unlike the browser, it can only do so while the page is open.

import { decrypt, makeKeys } from './webpush.js';

export class LocalPush {
  #line; // An AbortController: of the line that is open, or that waits for its turn.
  #tell;

  // tell({ trouble, lost }) is called when the line breaks, comes back (no trouble), or when the
  // push service does not know the subscription any more (lost); tell({ thrownAway }) with why a
  // message could not be opened.
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

  // Opens the line, where the last one ended: what came meanwhile has waited at the push service. Of several pages of one browser, one has the line; the worker tells all.
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
      await shown; // The next line begins behind what this one has brought.
    }).catch(() => {}); // Closed before its turn.
  }

  #watch(source) {
    // What a browser tells its worker by pushsubscriptionchange.
    source.addEventListener('ended', () => {
      source.close();
      this.#tell({ trouble: 'The push service has ended this subscription.', lost: true });
    });
    source.addEventListener('open', () => this.#tell({}));
    source.addEventListener('error', () => this.#tell({
      trouble: 'The line to Belfry’s push service is broken. Is “belfry up” still running?',
      // It tries again by itself, unless the answer was no stream of events.
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
      // As a browser: what cannot be opened wakes nobody. A developer wants to know, though.
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

// Gives the worker what was in the message, and waits until it has shown it.
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
