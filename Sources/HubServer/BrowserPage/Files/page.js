// The page: it asks for permission, subscribes, registers with the hub, and shows what arrives.

import { LocalPush } from './local.js';

const at = (id) => document.getElementById(id);

// Timeout of the browser's push service; one that cannot be reached may never answer.
const patience = 8_000;

let device; // { installationId, tags }
let isLocal = false;
const local = new LocalPush(lineChanged);

// MARK: Status

function say(tone, text) {
  const status = at('status');
  if (status.dataset.tone === tone && at('status-text').textContent === text) return;
  status.dataset.tone = tone;
  at('status-text').textContent = text;
}

function sayFailure(error) {
  say('bad', error instanceof Hub.Failure ? error.message : `This did not work: ${error.message}`);
}

const waiting = () => say(
  isLocal ? 'note' : 'good',
  isLocal
    ? 'Waiting. The browser’s own push service cannot be reached from here, so Belfry’s stands in: '
      + 'the message comes just as encrypted, and this page decrypts it. It only has to be open.'
    : 'Waiting. Pushes come by the browser’s own push service, also when this page is closed.');

function showDevice(channel) {
  const isSubscribed = Boolean(channel);
  for (const id of ['facts', 'send-card', 'unsubscribe', 'badge']) at(id).hidden = !isSubscribed;
  at('subscribe').textContent = isSubscribed ? 'Save tags' : 'Subscribe';
  if (!isSubscribed) return;
  at('badge').textContent = isLocal ? 'subscribed, locally' : 'subscribed';
  at('installation').textContent = device.installationId;
  at('tags').value = device.tags.join(', ');
  at('tag-list').replaceChildren(...device.tags.map((tag) => {
    const item = document.createElement('span');
    item.className = 'tag';
    item.textContent = tag;
    return item;
  }));
  at('service').textContent =
    isLocal ? 'Belfry’s, on this machine' : `the browser’s (${new URL(channel.endpoint).host})`;
  at('endpoint').textContent = channel.endpoint;
  at('command').textContent =
    `belfry send --template message='Hello!' --tags '${device.tags[0]}' --wait`;
}

// MARK: Subscribing

// The obstacle known before trying; null if there is none.
function obstacle() {
  if (!isSecureContext) {
    const here = new URL(location.href);
    here.hostname = 'localhost';
    return `Browsers allow push on HTTPS pages, and on this machine’s own. Open ${here} or an address with https.`;
  }
  if (!('serviceWorker' in navigator)) {
    return 'This browser offers no service worker here; a private window may be the reason. Without one there is no Web Push.';
  }
  if (!('Notification' in window)) {
    return 'This browser lets only installed pages notify: add this one to the home screen and open it from there.';
  }
  if (Notification.permission === 'denied') return blocked;
  return null;
}

const blocked =
  'Notifications are blocked for this page. Allow them in the site settings (the sign left of the address), then reload.';

async function worker() {
  await navigator.serviceWorker.register('worker.js');
  return navigator.serviceWorker.ready;
}

// Subscribes at the browser's push service, or at Belfry's if that one cannot be reached.
async function channelFor(registration) {
  const { vapidPublicKey, localPush } = await Hub.settings();
  const wasLocal = await Hub.kept.get('local');
  if (wasLocal && localPush) return localChannel(vapidPublicKey);
  try {
    const subscription = await within(patience, Hub.subscribe(registration));
    isLocal = false;
    return Hub.channel(subscription);
  } catch (error) {
    if (error instanceof Hub.Failure) throw error;
    if (error.name === 'NotAllowedError') throw new Error(blocked);
    console.info(`pushManager.subscribe: ${error.name}: ${error.message}`);
    document.documentElement.dataset.subscribeError = `${error.name}: ${error.message}`;
    if (!localPush) throw new Error(`the browser’s push service refuses: ${error.message}`);
    return localChannel(vapidPublicKey);
  }
}

async function localChannel(vapidPublicKey) {
  const subscription = await local.subscribe(vapidPublicKey);
  isLocal = true;
  return subscription;
}

function within(milliseconds, promise) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no answer within ${milliseconds / 1000} s`)), milliseconds);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

async function subscribe(tags) {
  device = {
    installationId: (await Hub.kept.get('device'))?.installationId ?? crypto.randomUUID(), tags,
  };
  const registration = await worker();
  const channel = await channelFor(registration);
  await Hub.register(device, channel);
  await Hub.kept.set('device', device);
  if (isLocal) local.listen(channel, registration.active);
  showDevice(channel);
  waiting();
}

async function unsubscribe() {
  await Hub.unregister(device);
  await local.unsubscribe();
  const registration = await navigator.serviceWorker.getRegistration();
  await (await registration?.pushManager?.getSubscription())?.unsubscribe();
  await Hub.kept.delete('device');
  showDevice(null);
  ready();
}

const ready = () => say('plain', 'Not subscribed. The browser will ask whether it may notify you.');

// The local push service's connection broke or was restored, or its subscription is gone. A restored
// connection may lead to another Belfry, which does not know this browser: register again.
let isLineBroken = false;
async function lineChanged({ trouble, lost, thrownAway }) {
  if (thrownAway) return say('bad', `A message was thrown away: ${thrownAway}.`);
  if (!trouble && !isLineBroken) return;
  isLineBroken = Boolean(trouble);
  if (trouble) say('bad', trouble);
  if (trouble && !lost) return;
  await busy(async () => {
    await Hub.settings({ fresh: true });
    isLineBroken = false; // subscribe() opens another connection.
    await subscribe(device.tags);
  });
}

// Runs one action at a time, with the buttons disabled, and reports errors.
let isBusy = false;
async function busy(work) {
  if (isBusy) return;
  isBusy = true;
  at('subscribe').disabled = at('unsubscribe').disabled = true;
  try {
    await work();
  } catch (error) {
    sayFailure(error);
  } finally {
    isBusy = false;
    at('subscribe').disabled = at('unsubscribe').disabled = Boolean(obstacle());
  }
}

at('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const tags = at('tags').value.split(',').map((tag) => tag.trim()).filter(Boolean);
  busy(async () => {
    say('busy', 'Asking for the permission to notify…');
    // At once, while the browser still counts it as a response to the click.
    const permission = await Notification.requestPermission();
    if (permission === 'denied') throw new Error(blocked);
    if (permission !== 'granted') {
      throw new Error('The question about notifications was not answered. Subscribe asks it again.');
    }
    say('busy', 'Subscribing…');
    await subscribe(tags);
  });
});

at('unsubscribe').addEventListener('click', () => busy(unsubscribe));

// MARK: Sending

at('push-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const report = at('report');
  report.hidden = false;
  report.dataset.tone = 'plain';
  report.textContent = 'Sending…';
  at('push').disabled = true;
  try {
    const answer = await (await Hub.call('pushes', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ installationId: device.installationId, message: at('message').value }),
    })).json();
    report.dataset.tone = answer.ok ? 'good' : 'bad';
    report.textContent = answer.text;
  } catch (error) {
    report.dataset.tone = 'bad';
    report.textContent = error.message;
  }
  at('push').disabled = false;
});

at('copy').addEventListener('click', async () => {
  const button = at('copy');
  try {
    await navigator.clipboard.writeText(at('command').textContent);
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(at('command'));
    button.textContent = 'Selected';
  }
  setTimeout(() => { button.textContent = 'Copy'; }, 2000);
});

// MARK: What arrived

function show(message, isFresh) {
  const row = at('row').content.firstElementChild.cloneNode(true);
  const time = new Date(message.at);
  row.querySelector('.title').textContent = message.title;
  row.querySelector('.body').textContent = message.body;
  row.querySelector('time').dateTime = time.toISOString();
  row.querySelector('time').textContent = time.toLocaleTimeString();
  const way = message.via === 'local'
    ? 'by Belfry’s push service, decrypted here' : 'by the browser’s push service';
  row.querySelector('.how').textContent =
    message.shown ? `${way}, shown as a notification` : `${way}; not shown: notifications are not allowed`;
  if (isFresh) row.classList.add('fresh');
  at('list').prepend(row);
  at('empty').hidden = true;
  at('clear').hidden = false;
}

at('clear').addEventListener('click', async () => {
  await Hub.messages.clear();
  at('list').replaceChildren();
  at('empty').hidden = false;
  at('clear').hidden = true;
  at('inbox').focus();
});

// MARK: Start

async function start() {
  const { hub } = await Hub.settings();
  at('hub').textContent = hub;
  const obstruction = obstacle();
  if (obstruction) {
    say('bad', obstruction);
    const permission = await navigator.permissions?.query({ name: 'notifications' });
    if (permission) permission.onchange = () => location.reload();
    return;
  }
  navigator.serviceWorker.addEventListener('message', ({ data }) => {
    if (data.type !== 'arrived') return;
    show(data.message, true);
    say('good', `Received at ${new Date(data.message.at).toLocaleTimeString()}. Waiting for more.`);
  });
  for (const message of await Hub.messages.all()) show(message, false);
  device = await Hub.kept.get('device');
  if (!device) return ready();
  at('tags').value = device.tags.join(', ');
  if (Notification.permission !== 'granted') return ready();
  say('busy', 'Picking up where this browser left off…');
  await subscribe(device.tags);
}

busy(start);
