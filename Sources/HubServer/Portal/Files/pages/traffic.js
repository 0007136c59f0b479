// @ts-check
// Requests of the hub to the push services' stand-ins, searchable, with the payloads that arrived.

import { control, decoded, kinds, nextRequest, platformOfService } from '../emulator.js';
import { tidy } from '../payloads.js';
import { platformName } from '../platforms.js';
import { shortTime, t, time } from '../text.js';
import { badge, button, calmly, checkbox, code, confirm, data, dialog, el, facts, failure, field, fill, form, heading, input, nothing, section, select, short, skeleton, table } from '../view.js';

/** Number of requests shown, and of devices whose inboxes are read for their payloads. */
const most = 400;
const mostDevices = 60;

/**
 * @typedef {object} Entry
 * @property {number} seq
 * @property {number} time
 * @property {string} pns
 * @property {string} method
 * @property {string} path
 * @property {Record<string, string>} headers
 * @property {any} auth
 * @property {number} bodyBytes
 * @property {number | null} status
 * @property {string | null} reason
 * @property {string | null} faultId
 * @property {string | null} storeAction
 * @property {number} durationMs
 */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('traffic.title'));
  /** @type {Entry[]} */
  let entries = [];
  /** Number of requests that the stand-ins keep, and of their devices. */
  let [total, devices] = [0, 0];
  /** @type {Map<number, {device: string, text: string}[]>} by the request that brought it */
  let payloads = new Map();
  const place = el('div', null, skeleton(5));
  const said = el('p', { class: 'hint', role: 'status' });
  const text = input({ type: 'search', value: page.query.get('find') ?? '', autocapitalize: 'off' });
  const service = select([['', t('traffic.every')], ...Object.keys(kinds).map(
    (key) => /** @type {[string, string]} */ ([kinds[key].pns, platformName(key)]))], page.query.get('service') ?? '', () => load());
  const only = select([['', t('traffic.every')], ['good', t('traffic.good')], ['bad', t('traffic.bad')]], page.query.get('answer') ?? '', () => draw());
  const live = checkbox(t('traffic.live'), true);

  const draw = () => {
    page.keep({ find: text.value.trim(), service: service.value, answer: only.value });
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = entries.filter((entry) => {
      const isGood = entry.status !== null && entry.status < 300;
      if (only.value && (only.value === 'good') !== isGood) return false;
      if (words.length === 0) return true;
      const all = (JSON.stringify(entry) + (payloads.get(entry.seq) ?? []).map((one) => one.device + one.text).join(' ')).toLowerCase();
      return words.every((word) => all.includes(word));
    }).reverse();
    fill(said, t('traffic.shown', { n: found.length, last: entries.length, of: total }),
      words.length > 0 && devices > mostDevices && ' ' + t('traffic.payloadsOf', { n: mostDevices, of: devices }));
    if (found.length === 0) return place.replaceChildren(nothing(t(entries.length ? 'traffic.noneFound' : 'traffic.none'), el('p', null, t('traffic.noneAdvice'))));
    place.replaceChildren(table(t('traffic.title'), [
      { head: t('traffic.time'), cell: (entry) => el('time', { datetime: new Date(entry.time).toISOString() }, shortTime(entry.time)) },
      { head: t('traffic.service'), cell: (entry) => platformName(platformOfService(entry.pns)) },
      { head: t('traffic.request'), cell: (entry) => [el('strong', null, entry.method), ' ', short(entry.path, 36)] },
      { head: t('traffic.status'), cell: (entry) => [badge(String(entry.status ?? t('traffic.noAnswer')), entry.status !== null && entry.status < 300 ? 'good' : 'bad'),
        ' ', entry.reason && data(entry.reason), ' ', entry.faultId && badge(t('traffic.fault'), 'note')] },
      { head: t('traffic.became'), cell: (entry) => entry.storeAction ?? '–' },
      { head: t('traffic.size'), class: 'number', cell: (entry) => entry.bodyBytes },
      { head: '', cell: (entry) => button(t('traffic.open'), () => open(entry), { class: 'quiet', 'aria-label': `${t('traffic.open')} ${entry.seq}` }) },
    ], found));
  };
  const load = async () => {
    const { requests, total: kept } = await control('requests', { query: { newest: most, pns: service.value }, signal: page.signal });
    total = kept;
    const isSame = requests.length === entries.length && requests[requests.length - 1]?.seq === entries[entries.length - 1]?.seq;
    entries = requests;
    if (!isSame) [payloads, devices] = await read(page.signal);
    draw();
  };
  /** @param {Entry} entry */
  const open = async (entry) => {
    const arrived = payloads.get(entry.seq) ?? await arrivedBy(entry, page.signal);
    return dialog(`${entry.method} ${platformName(platformOfService(entry.pns))}`, (close) => [
    el('div', { class: 'stack' },
      facts([
        [t('traffic.time'), time(entry.time)], [t('traffic.path'), data(entry.path)],
        [t('traffic.status'), data([entry.status ?? t('traffic.noAnswer'), entry.reason].filter(Boolean).join(' '))],
        [t('traffic.became'), entry.storeAction && data(entry.storeAction)],
        [t('traffic.took'), data(`${entry.durationMs} ms`)],
        [t('traffic.auth'), entry.auth && data(JSON.stringify(entry.auth))],
      ]),
      el('h3', null, t('traffic.headers')), code(Object.entries(entry.headers).map((pair) => pair.join(': ')).join('\n'), t('traffic.headers')),
      arrived.map((one) => [el('h3', null, t('traffic.arrived', { device: one.device })), code(tidy(one.text), t('traffic.payload'))])
        .flat()),
    el('div', { class: 'buttons' }, button(t('view.close'), () => close(null)))]);
  };

  text.addEventListener('input', calmly(draw));
  page.main.append(
    heading(t('traffic.title'), live, button(t('traffic.clear'), async () => {
      const done = await confirm({ title: t('traffic.clear'), text: t('traffic.clearText'), action: t('traffic.clear'), act: () => control('requests', { method: 'DELETE' }) });
      if (done) await load();
    })),
    section(t('traffic.filter'), form(draw, el('div', { class: 'row' }, field(t('traffic.find'), text, t('traffic.findHint')),
      field(t('traffic.service'), service), field(t('traffic.answers'), only)))),
    said, place);
  void load().catch((error) => { if (!page.signal.aborted) place.replaceChildren(failure(error, () => void load())); });
  (async () => {
    const next = nextRequest(page.signal);
    for (;;) {
      await next(2000);
      // Not while a person is reading.
      if (live.input.checked && !document.querySelector('dialog')) await load().catch(() => {});
    }
  })().catch(() => {});
}

/**
 * What arrived at these devices.
 * @param {{deviceId: string}[]} devices
 * @param {AbortSignal} signal
 * @returns {Promise<import('../emulator.js').Arrival[]>}
 */
const inboxes = async (devices, signal) => (await Promise.all(devices.map(({ deviceId }) =>
  control(`devices/${deviceId}/notifications`, { signal })))).flatMap(({ notifications }) => notifications.slice(-most));

/** @param {import('../emulator.js').Arrival} arrival */
const shownOf = (arrival) => ({ device: arrival.deviceId, text: decoded(arrival.payloadBase64) });

/**
 * Payloads that arrived at the newest devices, by request; and the number of all devices.
 * @param {AbortSignal} signal
 * @returns {Promise<[Map<number, {device: string, text: string}[]>, number]>}
 */
async function read(signal) {
  /** @type {Map<number, {device: string, text: string}[]>} */
  const found = new Map();
  const { devices, total } = await control('devices', { query: { newest: mostDevices }, signal });
  for (const arrival of await inboxes(devices, signal)) {
    found.set(arrival.requestSeq, [...found.get(arrival.requestSeq) ?? [], shownOf(arrival)]);
  }
  return [found, total];
}

/**
 * What one request brought to a device that is not among the newest, where its address names the device.
 * @param {Entry} entry
 * @param {AbortSignal} signal
 */
async function arrivedBy({ seq, path, status }, signal) {
  if (status === null || status >= 300) return [];
  const { devices } = await control('devices', { query: { handle: path.split('/').at(-1), limit: 2 }, signal }).catch(() => ({ devices: [] }));
  return (await inboxes(devices, signal)).filter(({ requestSeq }) => requestSeq === seq).map(shownOf);
}
