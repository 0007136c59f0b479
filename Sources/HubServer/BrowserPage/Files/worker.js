'use strict';

// The service worker: it runs when a push arrives, also when no page is open.
importScripts('hub.js');

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

// A push from the browser's push service, decrypted by the browser.
self.addEventListener('push', (event) => {
  event.waitUntil(receive(event.data?.arrayBuffer() ?? new ArrayBuffer(0), 'push service'));
});

// A push from Belfry's own push service, decrypted by the page (local.js).
self.addEventListener('message', (event) => {
  if (event.data?.type !== 'push') return;
  event.waitUntil(receive(event.data.bytes, 'local').then(
    (message) => event.ports[0]?.postMessage({ message }),
    (error) => event.ports[0]?.postMessage({ error: String(error) })));
});

async function receive(bytes, via) {
  const message = { ...read(bytes), via, at: Date.now(), shown: true };
  try {
    await self.registration.showNotification(message.title, {
      body: message.body,
      data: { url: message.url },
    });
  } catch {
    message.shown = false; // The permission was revoked; the page still shows it.
  }
  await Hub.messages.add(message);
  for (const page of await self.clients.matchAll({ includeUncontrolled: true })) {
    page.postMessage({ type: 'arrived', message });
  }
  return message;
}

// {"title", "body", "url"}, as in the template of hub.js, or a JSON string; anything else is
// shown unchanged.
function read(bytes) {
  const text = new TextDecoder().decode(bytes);
  const word = (value) => (value === undefined || value === null ? '' : String(value));
  try {
    const json = JSON.parse(text);
    if (typeof json === 'string') return { title: 'Belfry', body: json, url: '' };
    if (json && typeof json === 'object' && (json.title || json.body)) {
      return { title: word(json.title) || 'Belfry', body: word(json.body), url: word(json.url) };
    }
  } catch {
    // Not JSON, which is allowed.
  }
  return { title: 'Belfry', body: text, url: '' };
}

// Brings the page to the front, or opens it. A message may name a page of this site.
self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.url));
});

async function open(url) {
  let target = new URL(self.registration.scope);
  try {
    const wanted = new URL(url || '', self.registration.scope);
    if (wanted.origin === self.location.origin) target = wanted;
  } catch {
    // Text from a message; an invalid address opens the page.
  }
  const pages = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const page = pages.find((page) => page.url === target.href);
  return page ? page.focus() : self.clients.openWindow(target.href);
}

// The push service has replaced the subscription: tell the hub, or this browser gets no more pushes.
self.addEventListener('pushsubscriptionchange', (event) => {
  event.waitUntil(renew(event.newSubscription));
});

async function renew(subscription) {
  const device = await Hub.kept.get('device');
  if (!device) return;
  await Hub.register(
    device, Hub.channel(subscription ?? (await Hub.subscribe(self.registration))));
}
