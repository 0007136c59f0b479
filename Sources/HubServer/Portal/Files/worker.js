// @ts-nocheck
// The service worker of the page "This browser": it shows each push, also when no page is open. A classic script, since
// not every browser supports module service workers;
// unchecked, since TypeScript's library for pages does not have the types of workers.
'use strict';

// Maximum number of messages kept for the page; the oldest are dropped.
const most = 100;

self.addEventListener('install', () => self.skipWaiting());

// A push from the browser's push service, decrypted by the browser.
self.addEventListener('push', (event) => {
  event.waitUntil(receive(event.data?.arrayBuffer() ?? new ArrayBuffer(0), false));
});

// One from the emulator, decrypted by the page.
self.addEventListener('message', (event) => {
  event.waitUntil(receive(event.data, true).finally(() => event.ports[0].postMessage('shown')));
});

// One after the other, so that they are kept in the order in which they came.
let last = Promise.resolve();
function receive(bytes, isStandIn) {
  last = last.catch(() => {}).then(() => take(bytes, isStandIn));
  return last;
}

async function take(bytes, isStandIn) {
  const message = { ...read(new TextDecoder().decode(bytes)), isStandIn, at: Date.now(), isShown: true };
  try {
    await self.registration.showNotification(message.title, { body: message.body });
  } catch {
    message.isShown = false; // The permission was revoked; the page still shows it.
  }
  const kept = await caches.open(self.registration.scope);
  await kept.put(`/$portal/arrived/${crypto.randomUUID()}`, new Response(JSON.stringify(message)));
  for (const old of (await kept.keys()).slice(0, -most)) await kept.delete(old);
  await tell({ arrived: message });
}

// {"title", "body"}, as in the page's template, or a JSON string; anything else is shown unchanged.
function read(text) {
  try {
    const json = JSON.parse(text);
    if (typeof json === 'string') return { title: 'Belfry', body: json };
    if (json?.title || json?.body) return { title: String(json.title || 'Belfry'), body: String(json.body ?? '') };
  } catch {
    // Not JSON, which is allowed.
  }
  return { title: 'Belfry', body: text };
}

const pages = () => self.clients.matchAll({ type: 'window', includeUncontrolled: true });

async function tell(news) {
  for (const page of await pages()) page.postMessage({ scope: self.registration.scope, ...news });
}

// Brings the page to the front, or opens it.
self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(pages().then((all) => {
    const page = all.find(({ url }) => url === self.registration.scope);
    return page ? page.focus() : self.clients.openWindow(self.registration.scope);
  }));
});

// The push service has replaced the subscription. The page registers the new one, at the latest when it is opened:
// only the page is signed in.
self.addEventListener('pushsubscriptionchange', (event) => event.waitUntil(tell({ isChanged: true })));
