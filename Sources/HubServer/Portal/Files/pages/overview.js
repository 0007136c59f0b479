// @ts-check
// A hub at a glance: devices, sends and outcomes over time, and warnings.

import * as api from '../api.js';
import { hubAddress } from '../app.js';
import { chart } from '../chart.js';
import { changeHub, deleteHub, oneHub, set, standing } from '../hubs.js';
import { freshly } from '../reauthentication.js';
import { notificationRows } from '../notificationrows.js';
import { advice, failures, kindOf, total } from '../outcomes.js';
import { platformName, platforms } from '../platforms.js';
import { number, percent, t } from '../text.js';
import { announce, badge, bare, button, checkbox, confirm, data, dialog, el, failure, field, fill, form, heading, input, later, link, moment, notice, section, skeleton, submitButton, table } from '../view.js';

/**
 * Time range, and the length of a step, in seconds.
 * @type {Record<string, [number, number]>}
 */
const ranges = { hour: [3600, 60], day: [86_400, 900], week: [604_800, 7200], month: [2_592_000, 28_800] };

/** @typedef {{total: number, counts: {platform: string, template: string | null, devices: number}[], estimate?: boolean}} Audience */
/** @typedef {{time: string, accepted: number, delivered: Record<string, number>, failed: Record<string, Record<string, number>>, registrations: Record<string, number>}} Point */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  const { signal, hub } = page;
  // A request that is fast for every hub: if it fails, there is no hub or no right, and one error says so.
  await api.list(api.at(hub, 'messages'), 'notifications', { $top: 1 }, null, signal).catch((error) => {
    throw error.status === 404 ? new api.APIError(404, 'hubs.gone', error.trackingId) : error;
  });
  // With millions of devices this may take a while; the rest of the page does not wait for it.
  /** @type {Promise<Audience>} */
  const audience = api.json(api.at(hub, 'audience'), { signal });
  audience.catch(() => {});
  let range = page.query.get('range') ?? 'day';
  if (!Object.hasOwn(ranges, range)) range = 'day';
  const isManager = api.role(hub) === 'manager';
  const description = isManager ? oneHub(hub, signal) : Promise.reject(new api.APIError(403, ''));
  description.catch(() => {});

  const figures = el('div', { class: 'stack' });
  const draw = () => {
    fill(figures, skeleton(5));
    const [length, step] = ranges[range];
    const to = Math.ceil(Date.now() / 1000 / step) * step;
    const iso = (/** @type {number} */ seconds) => new Date(seconds * 1000).toISOString();
    api.json(api.at(hub, 'statistics'), { query: { from: iso(to - length), to: iso(to), step }, signal })
      .then(({ points }) => fill(figures, statistics(points)), (error) => {
        if (!signal.aborted) fill(figures, failure(error, draw));
      });
  };
  page.main.append(
    heading(hub, isManager && button(t('overview.settings'), async () => settings(page, await oneHub(hub, signal))),
      api.role(hub) !== 'viewer' && el('a', { class: 'as-button main', href: page.to('compose') }, t('compose.title'))),
    later(signal, () => warnings(page, description, audience), 1),
    bare(t('overview.range'), Object.keys(ranges).map((key) => [key, t(`overview.${key}`)]), range, (value) => {
      range = value;
      page.keep({ range: value === 'day' ? null : value });
      draw();
    }),
    figures,
    el('div', { class: 'grid' },
      section(t('overview.devices'), later(signal, async () => devices(page, await audience))),
      section(t('overview.recent'), later(signal, () => recent(page)))));
  draw();
}

/** @param {Point[]} points */
function statistics(points) {
  const times = points.map((point) => point.time);
  const delivered = points.map((point) => total(point.delivered));
  const failed = points.map((point) => failures(point.failed));
  const whole = (/** @type {number[]} */ values) => values.reduce((all, value) => all + value, 0);
  const [well, ill, accepted] = [whole(delivered), whole(failed), whole(points.map((point) => point.accepted))];
  /** @type {Record<string, number>} */
  const outcomes = {};
  for (const point of points) {
    for (const byOutcome of Object.values(point.failed)) {
      for (const [name, count] of Object.entries(byOutcome)) {
        if (kindOf(name) === 'bad') outcomes[name] = (outcomes[name] ?? 0) + count;
      }
    }
  }
  const dead = (outcomes.BadChannel ?? 0) + (outcomes.ExpiredChannel ?? 0) + (outcomes.WrongChannel ?? 0);
  const last = [...points].reverse().find((point) => total(point.registrations) > 0);
  const registrations = Object.keys(last?.registrations ?? {}).sort((one, other) =>
    (last?.registrations[other] ?? 0) - (last?.registrations[one] ?? 0));
  const tile = (/** @type {string} */ label, /** @type {import('../view.js').Child} */ value, name = '') =>
    el('div', { class: 'tile' }, el('div', { class: 'label' }, label), el('div', { class: `value ${name}` }, value));
  return [
    el('div', { class: 'tiles' }, tile(t('overview.accepted'), number(accepted)), tile(t('overview.delivered'), number(well)),
      tile(t('overview.failed'), number(ill), ill > 0 ? 'fault' : ''),
      tile(t('overview.rate'), well + ill > 0 ? percent(ill / (well + ill)) : '–'),
      tile(t('overview.dead'), number(dead))),
    el('div', { class: 'grid' },
      section(t('overview.pushes'), chart({
        title: t('overview.pushesAbout', { well: number(well), ill: number(ill) }), times,
        series: [{ name: t('overview.delivered'), class: 's-good', values: delivered }, { name: t('overview.failed'), class: 's-bad', values: failed }],
      })),
      section(t('overview.sends'), chart({
        title: t('overview.sends'), times,
        series: [{ name: t('overview.accepted'), class: 's-accent', values: points.map((point) => point.accepted) }],
      }))),
    Object.keys(outcomes).length > 0 && section(t('overview.why'), table(t('overview.why'), [
      { head: t('notification.outcome'), cell: ([name]) => badge(name, kindOf(name)) },
      { head: t('notification.count'), class: 'number', cell: ([, count]) => count },
      { head: t('notification.meaning'), cell: ([name]) => el('span', { class: 'soft' }, advice(name)) },
    ], Object.entries(outcomes).sort((one, other) => other[1] - one[1]))),
    registrations.length > 0 && section(t('overview.growth'), chart({
      title: t('overview.growth'), times, isGauge: true,
      series: registrations.map((platform, index) => ({
        name: platformName(platform), class: `s-${index % 9}`, values: points.map((point) => point.registrations[platform] ?? 0),
      })),
    })),
  ];
}

/**
 * Registrations by platform, as bars with numbers.
 * @param {import('../app.js').Page} page
 * @param {Audience} audience
 */
function devices(page, { counts, estimate }) {
  /** @type {Map<string, {native: number, template: number}>} */
  const rows = new Map();
  for (const { platform, template, devices } of counts) {
    const row = rows.get(platform) ?? { native: 0, template: 0 };
    row[template === null ? 'native' : 'template'] += devices;
    rows.set(platform, row);
  }
  if (rows.size === 0) return [el('p', { class: 'hint' }, t('overview.noDevice')), el('p', { class: 'hint' }, t('overview.noDeviceAdvice'))];
  const all = [...rows].sort((one, other) => other[1].native - one[1].native);
  const most = Math.max(...all.map(([, row]) => Math.max(row.native, row.template)));
  return [table(t('overview.devices'), [
    { head: t('notification.platform'), cell: ([platform]) => link(page.to('devices') + '?platform=' + encodeURIComponent(platform), platformName(platform)) },
    { head: t('overview.native'), cell: ([, row]) => bar(row.native, most) },
    { head: t('overview.templates'), cell: ([, row]) => bar(row.template, most) },
  ], all), el('p', { class: 'hint' }, t('overview.devicesHint'), estimate ? ' ' + t('overview.estimate') : '')];
}

/**
 * @param {number} value
 * @param {number} most
 */
function bar(value, most) {
  const inner = el('span');
  inner.style.inlineSize = `${most > 0 ? (value / most) * 100 : 0}%`;
  return el('span', { class: 'measure' }, el('span', { class: 'amount' }, number(value)), el('span', { class: 'bar-of', 'aria-hidden': 'true' }, inner));
}

/** @param {import('../app.js').Page} page */
async function recent(page) {
  const { items } = await api.list(api.at(page.hub, 'messages'), 'notifications', { $top: 6 }, null, page.signal);
  if (items.length === 0) return el('p', { class: 'hint' }, t('notifications.none'));
  return [notificationRows({ to: page.to, items, isBrief: true }), el('p', { class: 'small' }, link(page.to('notifications'), t('overview.all')))];
}

/**
 * Warnings, with what to do; empty if there are none.
 * @param {import('../app.js').Page} page
 * @param {Promise<import('../hubs.js').Hub>} description
 * @param {Promise<Audience>} counted
 */
async function warnings(page, description, counted) {
  const { hub, signal } = page;
  const isManager = api.role(hub) === 'manager';
  const [audience, about, running, removals, ends] = await Promise.allSettled([
    counted,
    description,
    api.list(api.at(hub, 'messages'), 'notifications', { state: 'Enqueued,Processing', $top: 100 }, null, signal),
    isManager ? api.json(api.at(hub, 'removals'), { query: { since: new Date(Date.now() - 86_400_000).toISOString().replace(/\.\d+/, '') }, signal }) : null,
    isManager ? api.json(api.at(hub, 'credentials'), { signal }) : null,
  ]);
  /** @type {HTMLElement[]} */
  const found = [];
  /**
   * @param {'bad' | 'note' | 'plain'} kind
   * @param {string} text
   * @param {...any} more
   */
  const say = (kind, text, ...more) => found.push(notice(kind, el('p', null, text, ' ', ...more)));
  if (about.status === 'fulfilled') {
    const { isDisabled, credentials } = about.value;
    if (isDisabled) say('bad', t('overview.isDisabled'));
    const used = new Set(audience.status === 'fulfilled' ? audience.value.counts.map((count) => count.platform) : []);
    const lacking = [...used].filter((platform) => !credentials.includes(platform) && !platforms[platform]?.isRetired);
    if (credentials.length === 0) say('note', t('overview.noCredential'), link(page.to('credentials'), t('overview.addCredential')));
    else if (lacking.length > 0) say('bad', t('overview.lacksCredential', { platforms: lacking.map(platformName).join(', ') }), link(page.to('credentials'), t('overview.addCredential')));
    const retired = [...used].filter((platform) => platforms[platform]?.isRetired);
    if (retired.length > 0) say('note', t('overview.retired', { platforms: retired.map(platformName).join(', ') }));
  }
  if (ends.status === 'fulfilled' && ends.value) {
    for (const { platform, expiresAt } of ends.value.credentials) {
      const stands = standing(expiresAt);
      if (stands !== 'over' && stands !== 'soon') continue;
      say(stands === 'over' ? 'bad' : 'note', t(`overview.${stands}`, { platform: platformName(platform) }), moment(expiresAt), ' ', link(page.to('credentials'), t('credentials.title')));
    }
  }
  if (removals.status === 'fulfilled' && removals.value) {
    const waves = removals.value.removals.filter((/** @type {any} */ item) => item.registrations >= 100
      && item.registrations > 0.05 * (audience.status === 'fulfilled' ? audience.value.total : 0));
    for (const wave of waves.slice(0, 3)) {
      say('bad', t('overview.wave', { n: wave.registrations, platform: platformName(wave.platform) }), moment(wave.hour), ' ', link(page.to('removals'), t('overview.seeWave')));
    }
  }
  if (running.status === 'fulfilled' && running.value.items.length > 0) {
    const { items } = running.value;
    const left = await waiting(page, items.slice(0, 20).map((item) => item.notificationId));
    say('plain', t('overview.running', { n: items.length }), left > 0 && [t('overview.queue', { n: left }), ' '], link(
      page.to('notifications') + '?state=' + (items.some((item) => item.state === 'Processing') ? 'Processing' : 'Enqueued'), t('overview.seeRunning')));
  }
  return found;
}

/**
 * Number of devices that these notifications have yet to reach.
 * @param {import('../app.js').Page} page
 * @param {string[]} ids
 */
async function waiting(page, ids) {
  const all = await Promise.allSettled(ids.map((id) => api.json(api.at(page.hub, 'messages', id, 'progress'), { signal: page.signal })));
  return all.reduce((sum, one) => sum + (one.status === 'fulfilled' ? Math.max(0, (one.value.audience ?? 0) - one.value.done) : 0), 0);
}

/**
 * Changes or deletes the hub.
 * @param {import('../app.js').Page} page
 * @param {import('../hubs.js').Hub} hub
 */
async function settings(page, hub) {
  const days = /^P(\d+)D$/.exec(hub.ttl)?.[1] ?? '';
  const saved = await dialog(t('overview.settings'), (close) => {
    const ttl = input({ type: 'number', min: 1, max: 36500, value: days, inputmode: 'numeric', placeholder: t('overview.forEver') });
    const metadata = el('textarea', { maxlength: 1024, rows: 3 });
    metadata.value = hub.metadata;
    const disabled = checkbox(t('overview.disable'), hub.isDisabled);
    return [form(async () => {
      if (!ttl.reportValidity()) return;
      await changeHub(hub, (description) => {
        // A duration in another form is kept, unless days are given.
        if (ttl.value !== days) set(description, 'RegistrationTtl', ttl.value ? `P${ttl.value}D` : 'P10675199DT2H48M5.4775807S');
        set(description, 'UserMetadata', metadata.value);
        set(description, 'Status', disabled.input.checked ? 'true' : '');
      });
      close('saved');
    },
    field(t('overview.ttl'), ttl, t('overview.ttlHint')), field(t('overview.metadata'), metadata, t('overview.metadataHint')), disabled,
    el('div', { class: 'buttons' },
      button(t('overview.delete'), async () => {
        let isDeleted = false;
        const isDone = await confirm({
          title: t('overview.deleteTitle', { hub: hub.name }), text: t('overview.deleteText'), action: t('view.delete'), type: hub.name,
          act: async () => { isDeleted = await freshly(() => deleteHub(hub.name)) !== null; },
        });
        if (isDone && isDeleted) close('deleted');
      }, { class: 'danger start' }),
      button(t('view.cancel'), () => close(null)), submitButton(t('view.save'))))];
  });
  if (saved === 'deleted') {
    announce(t('overview.deleted'));
    page.go('/$portal/');
  } else if (saved) page.reload();
}
