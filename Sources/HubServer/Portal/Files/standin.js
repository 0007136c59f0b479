// @ts-check
// The emulator as this browser's push service, for when the browser vendor's cannot be reached. To the hub there is no
// difference: it encrypts for this subscription and pushes to its endpoint. In place of the browser, this holds the
// keys, keeps a connection to the emulator and decrypts. Unlike the browser, it can only do so while the page is open.

import { control, events } from './emulator.js';
import { pause } from './view.js';
import { decoded, decrypt, encoded, makeKeys } from './webpush.js';

/**
 * @typedef {object} Subscription
 * @property {string} deviceId
 * @property {string} endpoint
 * @property {string} p256dh
 * @property {string} auth
 * @property {string} vapidPublicKey the only sender that may push
 * @property {import('./webpush.js').Keys} keys
 * @property {number} position the last event that was received
 */

/**
 * Works on the subscriptions of earlier visits, by hub. In IndexedDB, since nothing else stores a private key that
 * cannot be extracted.
 * @param {(store: IDBObjectStore) => IDBRequest} work
 * @returns {Promise<any>}
 */
const inStore = (work) => new Promise((resolve, reject) => {
  const opening = indexedDB.open('belfry', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('subscriptions');
  opening.onerror = () => reject(opening.error);
  opening.onsuccess = () => {
    const done = work(opening.result.transaction('subscriptions', 'readwrite').objectStore('subscriptions'));
    done.onsuccess = () => resolve(done.result);
    done.onerror = () => reject(done.error);
    opening.result.close();
  };
});

/**
 * @param {string} hub
 * @returns {Promise<Subscription | undefined>}
 */
export const kept = (hub) => inStore((store) => store.get(hub));

/**
 * @param {string} hub
 * @param {Subscription} own
 */
const keep = (hub, own) => inStore((store) => store.put(own, hub));

/** @param {Subscription} own */
async function isKnown({ deviceId, endpoint }) {
  const device = await control(`devices/${deviceId}`).catch((error) => {
    if (error.status !== 404) throw error;
  });
  return device?.state === 'registered' && device.handle.endpoint === endpoint;
}

/**
 * The subscription of the last visit, or a new one.
 * @param {string} hub
 * @param {string} vapidPublicKey
 * @returns {Promise<Subscription>}
 */
export async function subscribe(hub, vapidPublicKey) {
  const old = await kept(hub);
  if (old?.vapidPublicKey === vapidPublicKey && await isKnown(old)) return old;
  const keys = await makeKeys();
  const handle = { p256dh: encoded(keys.publicKey), auth: encoded(keys.auth) };
  const { apps } = await control('apps');
  const { appId } = apps.find((/** @type {any} */ app) => app.vapidPublicKey === vapidPublicKey)
    ?? await control('apps', { method: 'POST', body: { pns: 'webpush', vapidPublicKey } });
  const { devices } = await control('devices', { method: 'POST', body: { appId, presence: 'stream', handle } });
  const [{ deviceId, handle: { endpoint } }] = devices;
  const own = { deviceId, endpoint, ...handle, vapidPublicKey, keys, position: 0 };
  await keep(hub, own);
  return own;
}

/** @param {string} hub */
export async function unsubscribe(hub) {
  const old = await kept(hub);
  if (!old) return;
  await control(`devices/${old.deviceId}/unregister`, { method: 'POST', body: {} }).catch(() => {});
  await inStore((store) => store.delete(hub));
}

/**
 * Receives until the emulator has ended or replaced the subscription, from where the last connection ended: the
 * emulator keeps messages meanwhile. Of several pages of one browser, one has the connection; the worker tells all.
 * @param {string} hub
 * @param {(bytes: Uint8Array) => Promise<unknown>} take
 * @param {(error: any) => void} trouble what stops messages for now, or has lost one; null when there is a connection
 * @param {AbortSignal} signal
 */
export const listen = (hub, take, trouble, signal) => navigator.locks.request(`belfry ${hub}`, { signal }, async () => {
  for (;;) {
    const ended = new AbortController();
    const end = () => ended.abort();
    signal.addEventListener('abort', end);
    let shown = Promise.resolve();
    try {
      const own = await kept(hub);
      if (!own || !await isKnown(own)) return;
      trouble(null);
      await events(own.deviceId, (event, value) => {
        if (event === 'state' && ['unregistered', 'rotated'].includes(value.state)) end();
        if (event !== 'notification') return;
        shown = shown.then(async () => {
          const sealed = decoded(value.payloadBase64);
          // A push may come without a message. As in a browser, one that cannot be decrypted wakes no worker; but
          // report it to developers.
          const bytes = sealed.length ? await decrypt(own.keys, sealed).catch(trouble) : sealed;
          if (bytes) await take(bytes);
          await keep(hub, { ...own, position: value.seq });
        });
      }, ended.signal, own.position);
    } catch (error) {
      const { status = 0 } = /** @type {any} */ (error);
      if (signal.aborted || status >= 400 && status < 500) throw error;
      if (!ended.signal.aborted) trouble(error);
    } finally {
      signal.removeEventListener('abort', end);
      // The next connection begins after the messages of this one.
      await shown;
    }
    await pause(1000, signal);
  }
});
