'use strict';

// Shared by the page and the service worker. A classic script, since not every browser supports
// module service workers: the worker loads it with importScripts().
const Hub = (() => {
  // MARK: State kept between visits. Not in localStorage, which a service worker does not have.

  const database = new Promise((resolve, reject) => {
    const request = indexedDB.open('belfry-browser', 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore('kept');
      request.result.createObjectStore('messages', { autoIncrement: true });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

  async function inStore(name, mode, work) {
    const transaction = (await database).transaction(name, mode);
    const result = work(transaction.objectStore(name));
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(result?.result);
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
  }

  const kept = {
    get: (name) => inStore('kept', 'readonly', (store) => store.get(name)),
    set: (name, value) => inStore('kept', 'readwrite', (store) => store.put(value, name)),
    delete: (name) => inStore('kept', 'readwrite', (store) => store.delete(name)),
  };

  // Maximum number of messages kept; the oldest are dropped.
  const messageLimit = 100;

  const messages = {
    // Oldest first.
    all: () => inStore('messages', 'readonly', (store) => store.getAll()),
    clear: () => inStore('messages', 'readwrite', (store) => store.clear()),
    add: (message) => inStore('messages', 'readwrite', (store) => {
      store.add(message);
      const keys = store.getAllKeys();
      keys.onsuccess = () => {
        for (const key of keys.result.slice(0, -messageLimit)) store.delete(key);
      };
    }),
  };

  // MARK: Words

  const base64url = {
    encode: (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)))
      .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''),
    decode: (text) => Uint8Array.from(
      atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0)),
  };

  // A failed request, with a message for the user of the page.
  class Failure extends Error {
    constructor(message, status = 0) {
      super(message);
      this.status = status; // 0: no reply
    }
  }

  async function call(address, options = {}) {
    let response;
    try {
      response = await fetch(address, { cache: 'no-store', ...options });
    } catch {
      throw new Failure(`Nobody answers at ${location.origin}. Is “belfry up” still running?`);
    }
    if (response.ok) return response;
    const text = await response.text().catch(() => '');
    let reason = text;
    try {
      const json = JSON.parse(text);
      reason = json.error?.message ?? json.error ?? json.message ?? json.Detail ?? text;
    } catch {
      reason = text.match(/<Detail>([^<]*)</)?.[1] ?? text;
    }
    throw new Failure(`The hub refuses (${response.status}): ${reason}`, response.status);
  }

  // MARK: The hub

  let settings;

  // The hub's name, its public VAPID key, and a Listen token that is valid for minutes. On a
  // site of your own, your backend returns this, for the user who is signed in.
  async function getSettings({ fresh = false } = {}) {
    if (fresh || !settings || settings.expiresAt * 1000 < Date.now() + 60_000) {
      settings = await (await call('settings')).json();
    }
    return settings;
  }

  async function installations(method, id, body) {
    const { hub, token } = await getSettings();
    return call(`/${hub}/installations/${encodeURIComponent(id)}?api-version=2020-06`, {
      method,
      headers: { Authorization: token, ...(body && { 'Content-Type': 'application/json' }) },
      body: body && JSON.stringify(body),
    });
  }

  // Registers this browser with the hub, or updates it.
  async function register({ installationId, tags }, { endpoint, p256dh, auth }) {
    await installations('PUT', installationId, {
      installationId,
      platform: 'browser',
      pushChannel: { endpoint, p256dh, auth },
      tags,
      templates: { main: { body: '{"title":"Belfry","body":"$(message)"}' } },
    });
  }

  const unregister = ({ installationId }) => installations('DELETE', installationId);

  // Whether the hub still has this browser, and still considers its subscription valid.
  async function isRegistered({ installationId }) {
    try {
      return !(await (await installations('GET', installationId)).json()).pushChannelExpired;
    } catch (failure) {
      if (failure.status === 404) return false;
      throw failure;
    }
  }

  // MARK: The browser's own push service

  // The members of a PushSubscription that a hub needs.
  const channel = (subscription) => ({
    endpoint: subscription.endpoint,
    p256dh: base64url.encode(subscription.getKey('p256dh')),
    auth: base64url.encode(subscription.getKey('auth')),
  });

  // Subscribes for the hub's key; a subscription for another key (of another hub, or of an earlier
  // run) must be removed first.
  async function subscribe(registration) {
    const { vapidPublicKey } = await getSettings();
    const old = await registration.pushManager.getSubscription();
    if (old) {
      const key = old.options?.applicationServerKey;
      if (key && base64url.encode(key) === vapidPublicKey) return old;
      await old.unsubscribe();
    }
    return registration.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: base64url.decode(vapidPublicKey),
    });
  }

  return {
    kept, messages, base64url, Failure, call, settings: getSettings, register, unregister,
    isRegistered, subscribe, channel,
  };
})();
