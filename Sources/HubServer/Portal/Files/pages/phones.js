// @ts-check
// The wall of virtual phones: devices of the emulator, drawn by type, which ring as pushes
// arrive; and switches for faults.

import * as api from '../api.js';
import { dress } from '../dress.js';
import { appOf, channelOf, control, decoded, events, kinds, nextRequest, platformOfService } from '../emulator.js';
import { tidy } from '../payloads.js';
import { platformName } from '../platforms.js';
import { read } from '../preview.js';
import { t, time } from '../text.js';
import { announce, badge, button, checkbox, choice, code, data, dialog, el, facts, field, form, heading, input, link, nothing, section, select, short, submitButton, svg } from '../view.js';

/** @typedef {import('../emulator.js').Device} Device */
/** @typedef {import('../emulator.js').Arrival} Arrival */

/** More would only flicker. */
const most = 36;
/** Interval at which the journal is polled for pushes, in ms. */
const beat = 700;
/** Number of requests read at a time. */
const stretch = 2000;

/** @typedef {{device: Device, node: HTMLElement, screen: HTMLElement, state: HTMLElement, toggle: HTMLButtonElement, seq: number}} Phone */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('phones.title'));
  dress('phones.css');
  const wall = el('div', { class: 'wall' });
  const rest = el('p', { class: 'hint' });
  const empty = nothing(t('phones.none'), el('p', null, t('phones.noneAdvice')),
    el('div', { class: 'buttons' }, button(t('phones.add'), () => add(page, refresh), { class: 'main' })));
  const bell = checkbox(t('phones.sound'), false);
  /** @type {Map<string, Phone>} */
  const phones = new Map();

  const refresh = async () => {
    const { devices, total } = await control('devices', { query: { newest: most }, signal: page.signal });
    /** @type {Device[]} */
    const shown = devices.reverse();
    for (const [id, phone] of phones) {
      if (shown.some((device) => device.deviceId === id)) continue;
      phone.node.remove();
      phones.delete(id);
    }
    /** @type {Phone[]} */
    const fresh = [];
    for (const device of shown) {
      const phone = phones.get(device.deviceId);
      if (phone) {
        setState(phone, device);
        continue;
      }
      const made = draw(page, device, refresh);
      phones.set(device.deviceId, made);
      fresh.push(made);
    }
    await Promise.all(fresh.map((phone) => take(phone, false)));
    wall.replaceChildren(...shown.map((device) => /** @type {Phone} */ (phones.get(device.deviceId)).node));
    rest.textContent = total > shown.length ? t('phones.rest', { n: total - shown.length }) : '';
    empty.hidden = shown.length > 0;
  };
  /**
   * Fetches the new messages of a phone.
   * @param {Phone} phone
   * @param {boolean} rings
   */
  const take = async (phone, rings) => {
    const { notifications } = await control(`devices/${phone.device.deviceId}/notifications`, {
      query: { after: phone.seq }, signal: page.signal,
    });
    for (const arrival of notifications) arrive(phone, arrival, rings);
    if (notifications.length && rings && bell.input.checked) ring();
  };

  page.main.append(
    heading(t('phones.title'), bell, button(t('phones.add'), () => add(page, refresh), { class: 'main' })),
    quickSend(page), empty, wall, rest, await faults(page));
  await refresh();
  follow(page, phones, refresh, take).catch(() => {});
}

/**
 * Reads the journal with one request, regardless of the number of phones, when there is something new.
 * @param {import('../app.js').Page} page
 * @param {Map<string, Phone>} phones
 * @param {() => Promise<void>} refresh
 * @param {(phone: Phone, rings: boolean) => Promise<void>} take
 */
async function follow(page, phones, refresh, take) {
  let seq = (await control('requests', { query: { newest: 1 }, signal: page.signal })).requests[0]?.seq ?? 0;
  const next = nextRequest(page.signal);
  // When the devices, and when the inboxes of all phones were last read.
  let [refreshed, looked] = [Date.now(), Date.now()];
  let isMore = false;
  for (;;) {
    // After a large broadcast there is more than one reply holds.
    if (!isMore) await next(beat);
    try {
      const { requests } = await control('requests', { query: { after: seq, limit: stretch }, signal: page.signal });
      isMore = requests.length === stretch;
      if (requests.length) seq = requests[requests.length - 1].seq;
      const services = new Set(requests.map((/** @type {any} */ one) => one.pns));
      const now = Date.now();
      const [isOld, isTurn] = [now - refreshed > 6 * beat, now - looked > 12 * beat];
      if (isOld) refreshed = now;
      if (isTurn) looked = now;
      if (isOld) await refresh();
      for (const phone of phones.values()) {
        // A phone that was offline gets stored pushes without a request.
        if (services.has(phone.device.pns) || isTurn) await take(phone, true);
      }
    } catch (error) {
      // The frame shows that the server is unreachable; when it is back, the journal is read from the start.
      if (page.signal.aborted) throw error;
      [seq, isMore] = [0, false];
    }
  }
}

/**
 * @param {import('../app.js').Page} page
 * @param {Device} device
 * @param {() => Promise<void>} refresh
 * @returns {Phone}
 */
function draw(page, device, refresh) {
  const platform = platformOfService(device.pns);
  const kind = kinds[platform];
  const screen = el('ol', { class: 'shelf', 'aria-label': t('phones.screen'), 'aria-live': 'polite', tabindex: 0 });
  const state = el('span');
  const toggle = button('', async () => {
    await control(`devices/${device.deviceId}`, { method: 'PATCH', body: { presence: 'flag', online: !phone.device.online } });
    await refresh();
  }, { class: 'quiet' });
  const node = el('article', { class: `phone ${kind?.look ?? 'android'} of-${platform}`, 'aria-label': `${kind?.name ?? platform} ${device.deviceId}` },
    el('div', { class: 'case' }, ornament(kind?.look ?? 'android'), el('div', { class: 'glass' },
      el('div', { class: 'status', 'aria-hidden': 'true' }, el('span', { class: 'clock' }), el('span', null, platformName(platform))), screen)),
    el('div', { class: 'plate' }, el('span', { class: 'strong' }, data(device.deviceId)), ' ', el('span', { class: 'soft' }, platformName(platform)), state),
    el('div', { class: 'buttons' }, toggle,
      button(t('phones.inbox'), () => inbox(page, phone), { class: 'quiet', 'aria-label': `${t('phones.inbox')} ${device.deviceId}` }),
      button(t('phones.kill'), async () => {
        await control(`devices/${device.deviceId}/unregister`, { method: 'POST', body: {} });
        announce(t('phones.killed', { name: device.deviceId }));
        await refresh();
      }, { class: 'quiet', 'aria-label': `${t('phones.kill')} ${device.deviceId}` })));
  /** @type {Phone} */
  const phone = { device, node, screen, state, toggle, seq: 0 };
  setState(phone, device);
  return phone;
}

/** Shows a push as a phone does. */
const clock = (/** @type {number} */ at) => new Date(at).toTimeString().slice(0, 5);

/**
 * @param {Phone} phone
 * @param {Device} device as it is now
 */
function setState(phone, device) {
  phone.device = device;
  const { online } = device;
  const isDead = device.state !== 'registered';
  phone.node.classList.toggle('offline', !online);
  phone.node.classList.toggle('dead', isDead);
  phone.state.replaceChildren(isDead ? badge(t('phones.dead'), 'bad') : badge(t(online ? 'phones.online' : 'phones.offline'), online ? 'good' : 'note'));
  phone.toggle.textContent = t(online ? 'phones.goOffline' : 'phones.goOnline');
  phone.toggle.setAttribute('aria-label', `${phone.toggle.textContent} ${phone.device.deviceId}`);
  const shown = phone.node.querySelector('.clock');
  if (shown) shown.textContent = clock(Date.now());
}

/**
 * @param {Device} device
 * @param {Arrival} arrival
 */
const shownOf = (device, arrival) => read(platformOfService(device.pns), decoded(arrival.payloadBase64));

/**
 * @param {Phone} phone
 * @param {Arrival} arrival
 * @param {boolean} rings
 */
function arrive(phone, arrival, rings) {
  if (arrival.seq <= phone.seq) return;
  phone.seq = arrival.seq;
  const shown = shownOf(phone.device, arrival);
  const note = el('li', { class: shown.isSilent ? 'silent' : null },
    shown.isSilent ? [el('span', null, t('phones.silent')), el('span', { class: 'at' }, clock(arrival.deliveredAt))] : [
      el('span', { class: 'from' }, shown.title ? data(shown.title) : t('phones.app'), el('span', { class: 'at' }, clock(arrival.deliveredAt))),
      shown.subtitle && el('span', { class: 'strong' }, data(shown.subtitle)), data(shown.body),
    ]);
  phone.screen.prepend(note);
  while (phone.screen.children.length > 12) phone.screen.lastElementChild?.remove();
  if (!rings || shown.isSilent) return;
  phone.node.classList.remove('ringing');
  // Restarts the animation.
  void phone.node.offsetWidth;
  phone.node.classList.add('ringing');
  note.classList.add('fresh');
}

/**
 * The drawing on the case.
 * @param {string} look
 */
function ornament(look) {
  if (look === 'browser') return el('div', { class: 'ornament', 'aria-hidden': 'true' }, el('i'), el('i'), el('i'), el('span'));
  if (look === 'windows') return svg('svg', { class: 'ornament', viewBox: '0 0 60 14', 'aria-hidden': 'true' },
    svg('path', { d: 'M26 0h8l2 10h8v3H16v-3h8z' }));
  return el('div', { class: 'ornament', 'aria-hidden': 'true' });
}

/** A bell of two tones. */
function ring() {
  const context = new AudioContext();
  for (const [at, pitch] of [[0, 1318], [0.12, 1046]]) {
    const tone = context.createOscillator();
    const volume = context.createGain();
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0.12, context.currentTime + at);
    volume.gain.exponentialRampToValueAtTime(0.001, context.currentTime + at + 0.7);
    tone.connect(volume).connect(context.destination);
    tone.start(context.currentTime + at);
    tone.stop(context.currentTime + at + 0.7);
  }
  setTimeout(() => context.close(), 1500);
}

/**
 * @param {import('../app.js').Page} page
 * @param {Phone} phone
 */
async function inbox(page, phone) {
  const { deviceId, pns } = phone.device;
  const ended = new AbortController();
  const list = el('div', { class: 'stack', 'aria-live': 'polite' });
  const about = el('div');
  const say = (/** @type {Arrival} */ arrival, isOpen = !list.querySelector('details')) => {
    const shown = shownOf(phone.device, arrival);
    list.querySelector('.soft')?.remove();
    list.prepend(el('details', { open: isOpen },
      el('summary', null, time(arrival.deliveredAt), ' ', shown.isSilent ? t('phones.silent') : data(shown.title || shown.body),
        arrival.from === 'store' && [' ', badge(t('phones.waited'), 'note')]),
      el('div', { class: 'stack' }, el('h3', null, t('phones.payload')), code(tidy(decoded(arrival.payloadBase64)), t('phones.payload')),
        el('h3', null, t('phones.headers')), code(Object.entries(arrival.headers).map((pair) => pair.join(': ')).join('\n'), t('phones.headers')),
        el('p', { class: 'hint' }, data(arrival.id)))));
  };
  const shown = dialog(t('phones.inboxOf', { name: deviceId }), (close) => [about,
    list, el('div', { class: 'buttons' }, button(t('view.close'), () => close(null)))]);
  shown.then(() => ended.abort());
  const device = await control(`devices/${deviceId}`);
  about.replaceChildren(facts([
    [t('devices.state'), t(device.state === 'registered' ? 'devices.alive' : 'phones.dead')], [t('phones.got'), String(device.counters.delivered)],
    [t('phones.waiting'), String(device.counters.stored)],
    [t('phones.handle'), short(JSON.stringify(channelOf(kinds[platformOfService(pns)], device.handle)).replace(/^"|"$/g, ''), 30)],
    [t('phones.atHub'), link(page.to('devices', installationOf(deviceId)), installationOf(deviceId))],
  ]));
  const { notifications } = await control(`devices/${deviceId}/notifications`);
  if (notifications.length === 0) list.append(el('p', { class: 'soft' }, t('phones.noPushes')));
  const latest = notifications.slice(-50);
  latest.forEach((/** @type {Arrival} */ arrival) => say(arrival, arrival === latest.at(-1)));
  events(deviceId, (event, value) => { if (event === 'notification') say(value); }, ended.signal).catch(() => {});
  await shown;
}

/** @param {string} device */
const installationOf = (device) => `virtual-${device}`;

/**
 * @param {import('../app.js').Page} page
 * @param {() => Promise<void>} done
 */
async function add(page, done) {
  let platform = 'apns';
  const tags = input({ value: 'news', autocapitalize: 'off' });
  const user = input({ autocapitalize: 'off' });
  const count = input({ type: 'number', min: 1, max: 20, value: '1' });
  const made = await dialog(t('phones.add'), (close) => [form(async () => {
    const wanted = tags.value.split(/[\s,]+/).filter(Boolean);
    const number = Math.min(20, Math.max(1, Number(count.value) || 1));
    const { apps } = await control('apps');
    const app = appOf(apps, kinds[platform].pns);
    if (!app) throw new api.APIError(404, 'phones.noApp');
    const { devices } = await control('devices', { method: 'POST', body: { appId: app.appId, count: number } });
    for (const device of devices) await register(page, platform, device, wanted, user.value.trim());
    close(devices.length);
  }, choice(t('phones.platform'), Object.keys(kinds).map((key) => [key, platformName(key)]), platform, (value) => { platform = value; }),
  el('div', { class: 'row' }, field(t('phones.tags'), tags, t('phones.tagsHint')), field(t('phones.user'), user)),
  field(t('phones.count'), count),
  el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), submitButton(t('phones.add'))))]);
  if (!made) return;
  announce(t('phones.added', { n: Number(made) }));
  await done();
}

/**
 * As its app would.
 * @param {import('../app.js').Page} page
 * @param {string} platform
 * @param {Device} device
 * @param {string[]} tags
 * @param {string} userId
 */
const register = (page, platform, device, tags, userId) => {
  const id = installationOf(device.deviceId);
  return api.request(api.at(page.hub, 'installations', id), { method: 'PUT', body: {
    installationId: id, platform, pushChannel: channelOf(kinds[platform], device.handle), tags,
    ...(userId ? { userId } : {}), templates: { genericTemplate: kinds[platform].template },
  } });
};

/** @param {import('../app.js').Page} page */
function quickSend(page) {
  const message = input({ value: t('phones.hello'), required: true, maxlength: 500 });
  const tags = input({ value: 'news', autocapitalize: 'off', required: true });
  const answer = el('span', { class: 'hint', role: 'status' });
  return section(t('phones.send'), form(async () => {
    if (!tags.value.trim()) return tags.focus();
    answer.textContent = '';
    const reply = await api.request(api.at(page.hub, 'messages'), {
      method: 'POST', body: { message: message.value },
      headers: { 'ServiceBusNotification-Format': 'template', 'ServiceBusNotification-Tags': tags.value.trim() },
    });
    const id = reply.headers.get('Location')?.replace(/\?.*$/, '').split('/').pop() ?? '';
    answer.replaceChildren(t('phones.sent'), ' ', link(page.to('notifications', id), t('phones.watch')));
  }, el('div', { class: 'row' }, field(t('phones.message'), message), field(t('phones.sendTo'), tags),
    el('div', { class: 'buttons' }, submitButton(t('phones.sendNow')))), answer));
}

// --- Faults ----------------------------------------------------------------------------------

/** @type {Record<string, object>} */
const actions = {
  tooMany: { type: 'reply', status: 429, headers: { 'Retry-After': '5' } },
  away: { type: 'reply', status: 503, headers: { 'Retry-After': '5' } },
  slow: { type: 'latency', ms: 2000 },
  goaway: { type: 'goaway', lastStreamId: 'previous' },
  garbage: { type: 'garbage' },
  reset: { type: 'reset', at: 'reply' },
};

/**
 * The rules that a switch stands for.
 * @param {string} key
 * @param {string} service '*' is all
 * @returns {{pns: string, action: any}[]}
 */
const rulesOf = (key, service) => key === 'dead'
  ? Object.values(kinds).filter(({ pns }) => service === '*' || service === pns).map(({ pns, dead }) => ({ pns, action: { type: 'reply', ...dead } }))
  : [{ pns: service, action: actions[key] }];

/** @param {import('../app.js').Page} page */
async function faults(page) {
  const list = el('ul', { class: 'faults' });
  const service = select([['*', t('phones.allServices')], ...Object.keys(kinds).map(
    (key) => /** @type {[string, string]} */ ([kinds[key].pns, platformName(key)]))], '*', () => refresh());
  const switches = el('div', { class: 'switches', role: 'group', 'aria-label': t('phones.faults') });
  const refresh = async () => {
    const { faults } = await control('faults', { signal: page.signal });
    switches.replaceChildren(...[...Object.keys(actions), 'dead'].map((key) => {
      const wanted = rulesOf(key, service.value);
      const found = wanted.map(({ pns, action }) => faults.find((/** @type {any} */ rule) => (rule.pns ?? '*') === pns && same(rule.action, action)));
      const node = checkbox(t(`phones.fault.${key}`), found.every(Boolean), async (checked) => {
        try {
          for (const [index, body] of wanted.entries()) {
            if (checked && !found[index]) await control('faults', { method: 'POST', body });
            if (!checked && found[index]) await control(`faults/${found[index].faultId}`, { method: 'DELETE' });
          }
        } finally {
          await refresh();
        }
      });
      node.input.setAttribute('role', 'switch');
      return node;
    }));
    list.replaceChildren(...faults.map((/** @type {any} */ rule) => el('li', null, badge(data(rule.pns ?? '*').textContent ?? '', 'note'), ' ',
      el('code', null, JSON.stringify(rule.action)), ' ', t('phones.fired', { n: rule.fired ?? 0 }), ' ',
      button(t('phones.end'), async () => {
        await control(`faults/${rule.faultId}`, { method: 'DELETE' });
        await refresh();
      }, { class: 'quiet', 'aria-label': `${t('phones.end')} ${rule.faultId}` }))));
  };
  await refresh();
  return section(t('phones.faults'), el('p', { class: 'hint' }, t('phones.faultsHint')), field(t('phones.service'), service), switches, list);
}

/**
 * Whether a rule's action is that of a switch.
 * @param {any} action
 * @param {any} wanted
 */
const same = (action, wanted) => action?.type === wanted.type
  && (action.status ?? null) === (wanted.status ?? null) && (action.reason ?? null) === (wanted.reason ?? null);
