// @ts-check
// This browser as a device of the hub: it subscribes, registers, shows what arrives, and sends to itself.

import * as api from '../api.js';
import { showAs } from '../copyas.js';
import { deviceTag } from '../devices.js';
import { report, tested } from '../sending.js';
import * as standIn from '../standin.js';
import { shortTime, t } from '../text.js';
import { announce, badge, button, data, el, facts, failure, field, fill, form, heading, input, link, notice, nothing, pause, section, submitButton } from '../view.js';
import { decoded, encoded } from '../webpush.js';

/** @typedef {{title: string, body: string, at: number, isStandIn: boolean, isShown: boolean}} Message */
/** @typedef {{endpoint: string, p256dh: string, auth: string}} Channel */

/** Timeout of the browser's push service in ms; one that cannot be reached may never answer. */
const patience = 8000;

// The only policy that Trusted Types allow here: whatever it is asked for, it yields the address of the worker.
const address = { createScriptURL: () => '/$portal/worker.js' };
const script = (Reflect.get(window, 'trustedTypes')?.createPolicy('worker', address) ?? address).createScriptURL('');

/** What prevents this browser from subscribing, as a key of texts. */
const obstacle = () => !isSecureContext ? 'browser.insecure'
  : !('serviceWorker' in navigator) ? 'browser.noWorker'
    // On iPhones and iPads, in a page that is not on the home screen.
    : !('Notification' in window) ? 'browser.homeScreen'
      : Notification.permission === 'denied' ? 'browser.blocked' : null;

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('browser.title'));
  page.main.append(heading(t('browser.title')), el('p', { class: 'soft lead' }, t('browser.lead')));
  const { credentials } = await api.json(api.at(page.hub, 'credentials'), { signal: page.signal });
  /** @type {string | undefined} the public key of the hub */
  const key = credentials.find((/** @type {any} */ one) => one.platform === 'browser')?.app;
  if (!key) {
    return page.main.append(nothing(t('browser.noCredential'), el('p', null, t('browser.noCredentialAdvice')),
      el('p', null, link(page.to('credentials'), t('overview.addCredential')))));
  }
  const trouble = obstacle();
  if (trouble) {
    (await navigator.permissions?.query({ name: 'notifications' }).catch(() => null))
      ?.addEventListener('change', page.reload, { once: true, signal: page.signal });
    return page.main.append(notice('bad', el('p', null, t(trouble))));
  }

  const store = `belfry.browser.${page.hub}`;
  /** @type {{id: string, tags: string[]} | null} */
  let device = JSON.parse(localStorage.getItem(store) ?? 'null');
  const scope = location.origin + page.to('browser');
  const state = el('div', { role: 'status' });
  const about = el('div');
  const tags = input({ value: device?.tags.join(', ') ?? 'news', autocapitalize: 'off', required: true });
  const save = submitButton(t('browser.subscribe'));
  const stop = button(t('browser.unsubscribe'), async () => {
    listening.abort();
    await api.request(api.at(page.hub, 'installations', device?.id ?? ''), { method: 'DELETE' });
    await standIn.unsubscribe(page.hub);
    await (await (await worker(scope)).pushManager.getSubscription())?.unsubscribe();
    localStorage.removeItem(store);
    device = null;
    draw(null);
  });
  let listening = new AbortController();
  page.signal.addEventListener('abort', () => listening.abort());

  /** @param {Channel | null} channel */
  const draw = (channel, isStandIn = false) => {
    fill(state, !channel ? notice('plain', t('browser.not')) : isStandIn ? notice('note', t('browser.standIn')) : notice('good', t('browser.waits')));
    fill(about, channel && device && facts([
      [t('devices.byInstallation'), link(page.to('devices', device.id), device.id)],
      [t('phones.service'), isStandIn ? t('browser.emulator') : new URL(channel.endpoint).host],
      [t('phones.handle'), data(channel.endpoint)],
    ]));
    save.textContent = t(channel ? 'browser.save' : 'browser.subscribe');
    stop.hidden = sending.hidden = !channel;
  };

  const subscribe = async () => {
    if (!device) return;
    const registration = await worker(scope);
    const { channel, isStandIn } = await subscribed(page, registration, key);
    await api.request(api.at(page.hub, 'installations', device.id), { method: 'PUT', body: {
      installationId: device.id, platform: 'browser', pushChannel: channel, tags: device.tags,
      templates: { main: { body: '{"title":"Belfry","body":"$(message)"}' } },
    } });
    localStorage.setItem(store, JSON.stringify(device));
    draw(channel, isStandIn);
    listening.abort();
    listening = new AbortController();
    if (isStandIn && !page.signal.aborted) listen(registration, listening.signal);
  };
  const again = () => subscribe().catch((error) => fill(state, failure(error, again)));

  /**
   * @param {ServiceWorkerRegistration} registration
   * @param {AbortSignal} signal
   */
  const listen = (registration, signal) => standIn.listen(page.hub, (bytes) => handed(bytes, registration),
    (error) => fill(state, !error ? notice('note', t('browser.standIn')) : error instanceof api.APIError ? failure(error)
      : notice('bad', t('browser.dropped'), ' ', data(error.message))), signal)
    .then(again, (error) => { if (!signal.aborted) fill(state, failure(error, again)); });

  const message = input({ value: t('phones.hello'), required: true, maxlength: 200 });
  const result = el('div', { role: 'status' });
  /** @param {string | null} to */
  const send = (to) => ({ hub: page.hub, format: 'template', body: JSON.stringify({ message: message.value }), headers: {}, tags: to });
  const sending = section(t('browser.send'), form(async () => {
    const began = performance.now();
    const document = await tested(send(deviceTag(device?.id ?? '')), page.signal);
    fill(result, report([document], true, performance.now() - began));
  }, el('div', { class: 'row' }, field(t('phones.message'), message),
    el('div', { class: 'buttons' }, submitButton(t('browser.sendHere')),
      button(t('send.copyAs'), () => showAs([send(device?.tags[0] ?? null)]), { class: 'quiet' })))), result);

  page.main.append(
    section(t('browser.subscription'), state, form(async () => {
      const wanted = tags.value.split(/[\s,]+/).filter(Boolean);
      if (wanted.length === 0) return tags.focus();
      // At once, while the browser still counts it as a response to the click.
      const permission = await Notification.requestPermission();
      if (permission !== 'granted') throw new api.APIError(400, permission === 'denied' ? 'browser.blocked' : 'browser.unanswered');
      device = { id: device?.id ?? crypto.randomUUID(), tags: wanted };
      await subscribe();
      announce(t('browser.saved'));
    }, field(t('phones.tags'), tags, t('phones.tagsHint')), el('div', { class: 'buttons' }, save, stop)), about),
    sending, await arrived(page, scope, again));
  draw(null);
  if (!device || Notification.permission !== 'granted') return;
  fill(state, notice('plain', t('browser.resuming')));
  void again();
}

/**
 * Registers the service worker of a page, and waits until it works.
 * @param {string} scope
 */
async function worker(scope) {
  const registration = await navigator.serviceWorker.register(script, { scope });
  // Not `ready`, which waits for the worker of the address at which the portal was opened.
  const fresh = registration.installing ?? registration.waiting;
  while (!registration.active && fresh?.state !== 'redundant') {
    await new Promise((done) => fresh?.addEventListener('statechange', done, { once: true }));
  }
  return registration;
}

/**
 * Subscribes at the browser's push service, or at the emulator if there is one and the other cannot be reached.
 * @param {import('../app.js').Page} page
 * @param {ServiceWorkerRegistration} registration
 * @param {string} key
 * @returns {Promise<{channel: Channel, isStandIn: boolean}>}
 */
async function subscribed({ hub, signal }, { pushManager }, key) {
  const identity = api.who();
  const standsIn = async () => {
    const { endpoint, p256dh, auth } = await standIn.subscribe(hub, key);
    return { channel: { endpoint, p256dh, auth }, isStandIn: true };
  };
  const isLocal = identity?.kind === 'key' && identity.local;
  if (isLocal && await standIn.kept(hub)) return standsIn();
  const limit = pause(patience, signal).then(() => { throw new Error(`no answer within ${patience / 1000} s`); });
  try {
    const one = await Promise.race([limit, own(pushManager, key)]);
    return { channel: { endpoint: one.endpoint, p256dh: encoded(one.getKey('p256dh')), auth: encoded(one.getKey('auth')) }, isStandIn: false };
  } catch (error) {
    if (signal.aborted) throw error;
    const { name, message } = /** @type {Error} */ (error);
    if (name === 'NotAllowedError') throw new api.APIError(400, 'browser.blocked');
    console.info(`pushManager.subscribe: ${name}: ${message}`);
    if (!isLocal) throw new api.APIError(400, t('browser.unreachable', { reason: message }));
    return standsIn();
  }
}

/**
 * A subscription for the hub's key; one for another key, such as an earlier one, must be removed first.
 * @param {PushManager} pushManager
 * @param {string} key
 */
async function own(pushManager, key) {
  const old = await pushManager.getSubscription();
  if (old && encoded(old.options.applicationServerKey) === key) return old;
  await old?.unsubscribe();
  return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: decoded(key) });
}

/**
 * Passes a decrypted message to the worker, and waits until it has been shown.
 * @param {Uint8Array} bytes
 * @param {ServiceWorkerRegistration} registration
 */
const handed = (bytes, { active }) => new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = done;
  active?.postMessage(bytes, [port2]);
});

/**
 * The messages that the worker has kept, and each new one.
 * @param {import('../app.js').Page} page
 * @param {string} scope
 * @param {() => void} changed when the push service has replaced the subscription
 */
async function arrived(page, scope, changed) {
  const list = el('ol', { class: 'said', 'aria-live': 'polite' });
  const none = el('p', { class: 'soft' }, t('phones.noPushes'));
  const clear = button(t('browser.clear'), async () => {
    await caches.delete(scope);
    fill(list);
    sync();
  }, { class: 'quiet' });
  const sync = () => {
    none.hidden = list.childElementCount > 0;
    clear.hidden = !none.hidden;
  };
  /** @param {Message} message */
  const add = ({ title, body, at, isStandIn, isShown }) => list.prepend(el('li', null,
    el('span', { class: 'strong' }, data(title)), ' ', data(body), ' ', el('span', { class: 'soft' }, shortTime(at)), ' ',
    badge(t(isStandIn ? 'browser.byStandIn' : 'browser.byService')), ' ', !isShown && badge(t('browser.notShown'), 'note')));
  navigator.serviceWorker.addEventListener('message', ({ data: news }) => {
    if (news.scope !== scope) return;
    if (news.isChanged) return changed();
    add(news.arrived);
    sync();
  }, { signal: page.signal });
  for (const reply of await (await caches.open(scope)).matchAll()) add(await reply.json());
  sync();
  return section(t('browser.arrived'), none, list, el('div', { class: 'buttons' }, clear));
}
