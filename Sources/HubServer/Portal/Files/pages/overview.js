// @ts-check
// A hub at a glance: devices, sends and outcomes over time, and warnings.

import * as api from '../api.js';
import { chart } from '../chart.js';
import { dress } from '../dress.js';
import { essentials } from '../essentials.js';
import { changeHub, credentialsOf, deleteHub, oneHub, set, standing } from '../hubs.js';
import { freshly } from '../reauthentication.js';
import { notificationRows } from '../notificationrows.js';
import { advice, failures, kindOf, total } from '../outcomes.js';
import { platformName, platforms, platformWord } from '../platforms.js';
import { hour, number, percent, shortTime, t } from '../text.js';
import { announce, badge, bare, button, checkbox, confirm, dialog, el, failure, field, fill, form, heading, input, later, link, moment, notice, ratio, section, skeleton, submitButton, svg, table } from '../view.js';

/**
 * Length of a time range in seconds.
 * @type {Record<string, number>}
 */
const ranges = { hour: 3600, day: 86_400, week: 604_800, month: 2_592_000 };
/** Lengths of a step, in seconds. */
const steps = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400];
/** At most so many bars can be told from each other. */
const mostBars = 60;
/** Removed devices are known for a week. */
const removalsKept = 604_800;

/** @typedef {{total: number, counts: {platform: string, template: string | null, devices: number}[], estimate?: boolean}} Audience */
/** @typedef {import('../hubs.js').Credential} Credential */
/** @typedef {{time: string, accepted: number, delivered: Record<string, number>, failed: Record<string, Record<string, number>>, registrations: Record<string, number>}} Point */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  dress('overview.css');
  dress('list.css');
  const { signal, hub } = page;
  // A request that is fast for every hub: if it fails, there is no hub or no right, and one error says so.
  const newest = await api.list(api.at(hub, 'messages'), 'notifications', { $top: 6 }, null, signal).catch((error) => {
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
  const credentials = isManager ? credentialsOf(hub, signal) : Promise.reject(new api.APIError(403, ''));
  credentials.catch(() => {});
  // For a hub that has nothing yet, the way to a first push stands in place of figures.
  const isNew = newest.items.length === 0 && isManager
    && await audience.then((found) => found.total === 0, () => false);

  const tiles = el('div', { class: 'tiles wide' });
  const deliveries = el('div', { class: 'stack' });
  const why = el('div', { class: 'stack', id: 'why' });
  const growth = el('div');
  const draw = async () => {
    fill(deliveries, skeleton(5));
    const own = range;
    const read = statistics(hub, ranges[range], signal);
    read.catch(() => {});
    fill(tiles, figures(page, audience, read, ranges[range]));
    try {
      const points = await read;
      if (own !== range) return;
      const outcomes = failedOutcomes(points);
      fill(deliveries, pushes(points, ranges[range]));
      fill(why, Object.keys(outcomes).length > 0 && section(t('overview.why'), table(t('overview.why'), [
        { head: t('notification.outcome'), cell: ([name]) => badge(name, kindOf(name)) },
        { head: t('notification.count'), class: 'number', cell: ([, count]) => count },
        { head: t('notification.meaning'), cell: ([name]) => el('span', { class: 'soft' }, advice(name)) },
      ], Object.entries(outcomes).sort((one, other) => other[1] - one[1]))));
      fill(growth, registrations(points));
    } catch (error) {
      if (signal.aborted) return;
      fill(deliveries, failure(error, () => void draw()));
      fill(why);
      fill(growth);
    }
  };
  page.main.append(
    heading(hub, isManager && button(t('overview.settings'), async () => settings(page, await oneHub(hub, signal))),
      api.role(hub) !== 'viewer' && el('a', { class: 'as-button main', href: page.to('compose') }, t('compose.title'))),
    later(signal, () => warnings(page, description, credentials, audience, isNew), 1),
    ...isNew ? [el('div', { class: 'two' }, firstSteps(page, credentials), essentials(page, description))] : [
      bare(t('overview.range'), Object.keys(ranges).map((key) => [key, t(`overview.${key}`)]), range, (value) => {
        range = value;
        page.keep({ range: value === 'day' ? null : value });
        void draw();
      }),
      tiles,
      el('div', { class: 'two filling' }, section(t('overview.pushes'), deliveries), essentials(page, description)),
      why,
      el('div', { class: 'even' }, section(t('overview.byPlatform'), later(signal, async () => devices(page, await audience))),
        section(t('overview.growth'), growth)),
      section(t('overview.recent'), recent(page, newest.items))]);
  if (!isNew) void draw();
}

// --- Figures over time -----------------------------------------------------------------------

/**
 * The shortest step of which no more than can be told apart fit. Minutes are kept for a day.
 * @param {number} length in seconds
 */
const stepOf = (length) => steps.find((step) => length <= step * mostBars && (length <= 86_400 || step % 3600 === 0)) ?? 86_400;

/**
 * From the first figure on, in steps that suit what there is.
 * @param {string} hub
 * @param {number} length in seconds
 * @param {AbortSignal} signal
 * @returns {Promise<Point[]>}
 */
async function statistics(hub, length, signal) {
  const read = async (/** @type {number} */ from, /** @type {number} */ step) => {
    const to = Math.ceil(Date.now() / 1000 / step) * step;
    const iso = (/** @type {number} */ seconds) => new Date(seconds * 1000).toISOString();
    /** @type {{points: Point[]}} */
    const { points } = await api.json(api.at(hub, 'statistics'), { query: { from: iso(Math.max(from, to - length)), to: iso(to), step }, signal });
    const first = points.findIndex((point) => point.accepted + total(point.delivered) + total(point.failed) + total(point.registrations) > 0);
    return first < 0 ? [] : points.slice(first);
  };
  let step = stepOf(length);
  let points = await read(0, step);
  // A finer step finds the beginning closer, which may allow a finer one still.
  while (points.length > 0) {
    const from = Date.parse(points[0].time) / 1000;
    const finer = stepOf(Date.now() / 1000 - from);
    if (finer >= step) break;
    step = finer;
    points = await read(from, step);
  }
  return points;
}

/** @param {Point[]} points */
const failed = (points) => points.reduce((all, point) => all + failures(point.failed), 0);
/** @param {Point[]} points */
const delivered = (points) => points.reduce((all, point) => all + total(point.delivered), 0);

/**
 * Failures by outcome.
 * @param {Point[]} points
 */
function failedOutcomes(points) {
  /** @type {Record<string, number>} */
  const outcomes = {};
  for (const point of points) {
    for (const byOutcome of Object.values(point.failed)) {
      for (const [name, count] of Object.entries(byOutcome)) {
        if (kindOf(name) === 'bad') outcomes[name] = (outcomes[name] ?? 0) + count;
      }
    }
  }
  return outcomes;
}

/** @param {number} value in full up to 999,999 */
const figure = (value) => number(value, value > 999_999 ? { notation: 'compact', maximumFractionDigits: 1 } : {});

/**
 * @param {import('../app.js').Page} page
 * @param {Promise<Audience>} audience
 * @param {Promise<Point[]>} read
 * @param {number} length in seconds
 */
function figures(page, audience, read, length) {
  const { hub, signal } = page;
  /**
   * A figure that loads by itself; '–' where there is none.
   * @param {string} label
   * @param {() => Promise<[value: string, delta?: import('../view.js').Child, name?: string]>} load
   */
  const tile = (label, load) => {
    const value = el('div', { class: 'value' }, skeleton(1));
    const delta = el('div', { class: 'delta' });
    load().catch(() => /** @type {[string]} */ (['–'])).then(([text, more, name]) => {
      value.className = `value ${name ?? ''}`;
      fill(value, text);
      fill(delta, more);
    });
    return el('div', { class: 'tile' }, el('div', { class: 'label' }, label), value, delta);
  };
  const since = new Date(Date.now() - Math.min(length, removalsKept) * 1000).toISOString().replace(/\.\d+/, '');
  return [
    tile(t('overview.devices'), async () => {
      const found = await audience;
      const all = total(deviceCounts(found));
      return [found.estimate ? t('overview.about', { n: figure(all) }) : figure(all), t('overview.once')];
    }),
    tile(t('overview.accepted'), async () => [figure((await read).reduce((all, point) => all + point.accepted, 0))]),
    tile(t('overview.delivered'), async () => {
      const points = await read;
      const [well, ill] = [delivered(points), failed(points)];
      return [figure(well), well + ill > 0 && percent(well / (well + ill))];
    }),
    tile(t('overview.failed'), async () => {
      const ill = failed(await read);
      return [figure(ill), ill > 0 && link('#why', t('overview.seeWhy')), ill > 0 ? 'fault' : ''];
    }),
    api.role(hub) === 'manager' && tile(t('removals.title'), async () => {
      const { removals } = await api.json(api.at(hub, 'removals'), { query: { since }, signal });
      const all = removals.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.registrations, 0);
      return [figure(all), all > 0 && link(page.to('removals'), t(length > removalsKept ? 'overview.removedWeek' : 'overview.removed'))];
    }),
  ];
}

/**
 * @param {Point[]} points
 * @param {number} length of the range that was asked for, in seconds
 */
function pushes(points, length) {
  if (points.length === 0) return el('p', { class: 'hint' }, t('chart.nothing'));
  const [{ time: first }] = points;
  const isYoung = Date.now() - Date.parse(first) < length * 900;
  return [chart({
    title: t('overview.pushesAbout', { well: number(delivered(points)), ill: number(failed(points)) }), times: points.map((point) => point.time), end: t('chart.now'),
    series: [
      { name: t('overview.delivered'), class: 's-good', values: points.map((point) => total(point.delivered)) },
      { name: t('overview.failed'), class: 's-bad', values: points.map((point) => failures(point.failed)) },
    ],
    also: [{ name: t('overview.accepted'), values: points.map((point) => point.accepted) }],
  }), isYoung && el('p', { class: 'hint' }, t('overview.since', { time: Date.now() - Date.parse(first) < 43_200_000 ? hour(first) : shortTime(first) }))];
}

/** @param {Point[]} points */
function registrations(points) {
  const last = [...points].reverse().find((point) => total(point.registrations) > 0);
  const order = Object.keys(last?.registrations ?? {}).sort((one, other) =>
    (last?.registrations[other] ?? 0) - (last?.registrations[one] ?? 0));
  if (order.length === 0) return el('p', { class: 'hint' }, t('chart.nothing'));
  return [chart({
    title: t('overview.growth'), times: points.map((point) => point.time), isGauge: true, end: t('chart.now'),
    series: order.map((platform, index) => ({
      name: platformWord(platform), class: `s-${index % 9}`, values: points.map((point) => point.registrations[platform] ?? 0),
    })),
  }), el('p', { class: 'hint' }, t('overview.growthHint'))];
}

// --- Devices ---------------------------------------------------------------------------------

/**
 * Devices by platform, each once, the most first. An installation has one registration for messages of its platform,
 * and one for each template; an older client may have written a template's alone.
 * @param {Audience} audience
 * @returns {Record<string, number>}
 */
function deviceCounts({ counts }) {
  /** @type {Record<string, number>} */
  const most = {};
  for (const { platform, devices } of counts) most[platform] = Math.max(most[platform] ?? 0, devices);
  return Object.fromEntries(Object.entries(most).sort((one, other) => other[1] - one[1]));
}

/**
 * As bars with numbers and shares.
 * @param {import('../app.js').Page} page
 * @param {Audience} audience
 */
function devices(page, audience) {
  const rows = Object.entries(deviceCounts(audience));
  if (rows.length === 0) return [el('p', { class: 'hint' }, t('overview.noDevice')), el('p', { class: 'hint' }, t('overview.noDeviceAdvice'))];
  const all = rows.reduce((sum, [, count]) => sum + count, 0);
  const native = audience.counts.reduce((sum, { template, devices }) => sum + (template === null ? devices : 0), 0);
  return [
    el('ul', { class: 'share' }, rows.map(([platform, count], index) => el('li', null,
      link(page.to('devices') + '?platform=' + encodeURIComponent(platform), platformWord(platform)),
      ratio([[`s-${index % 9}`, count / rows[0][1] * 100]]),
      el('span', { class: 'number' }, figure(count)), el('span', { class: 'number soft' }, number(count / all, { style: 'percent', maximumFractionDigits: 0 }))))),
    el('p', { class: 'hint' }, t('overview.devicesHint', { native: number(native), templates: number(audience.total - native) }), audience.estimate ? ' ' + t('overview.estimate') : ''),
  ];
}

/**
 * What leads to the first push.
 * @param {import('../app.js').Page} page
 * @param {Promise<Credential[]>} credentials
 */
function firstSteps(page, credentials) {
  const identity = api.who();
  const phones = identity?.kind === 'key' && identity.local && link(page.to('phones'), t('overview.usePhones'));
  return section(t('overview.steps'), later(page.signal, async () => {
    const hasCredential = (await credentials).length > 0;
    const step = (/** @type {number} */ at, /** @type {boolean} */ isDone, /** @type {boolean} */ isNext, /** @type {string} */ key, /** @type {import('../view.js').Child[]} */ ...more) =>
      el('li', { class: isDone && 'done', 'aria-current': isNext && 'step' },
        el('span', { class: 'step-mark' }, isDone ? svg('svg', { class: 'symbol', viewBox: '0 0 16 16', role: 'img', 'aria-label': t('overview.stepDone') }, svg('path', { d: 'm3 8.5 3.2 3.2L13 5' })) : at),
        el('div', null, el('p', { class: 'strong' }, t(`overview.${key}`)), el('p', { class: 'hint' }, t(`overview.${key}Hint`)), isNext && el('div', { class: 'buttons' }, ...more)));
    const asButton = (/** @type {HTMLElement} */ node, name = '') => Object.assign(node, { className: `as-button ${name}` });
    return el('ol', { class: 'steps' },
      step(1, true, false, 'stepHub'),
      step(2, hasCredential, !hasCredential, 'stepCredential', asButton(link(page.to('credentials'), t('overview.addCredential')), 'main')),
      step(3, false, hasCredential, 'stepDevice', phones && asButton(phones, 'main')));
  }));
}

/**
 * @param {import('../app.js').Page} page
 * @param {import('../notificationrows.js').Summary[]} items
 */
const recent = (page, items) => items.length === 0 ? el('p', { class: 'hint' }, t('notifications.none'))
  : [notificationRows({ to: page.to, items, isBrief: true }), el('p', { class: 'small' }, link(page.to('notifications'), t('overview.all')))];

/**
 * Warnings, with what to do; empty if there are none.
 * @param {import('../app.js').Page} page
 * @param {Promise<import('../hubs.js').Hub>} description
 * @param {Promise<Credential[]>} credentials
 * @param {Promise<Audience>} counted
 * @param {boolean} isNew whether the page says already what is missing
 */
async function warnings(page, description, credentials, counted, isNew) {
  const { hub, signal } = page;
  const isManager = api.role(hub) === 'manager';
  const [audience, about, running, removals, own] = await Promise.allSettled([
    counted,
    description,
    api.list(api.at(hub, 'messages'), 'notifications', { state: 'Enqueued,Processing', $top: 100 }, null, signal),
    isManager ? api.json(api.at(hub, 'removals'), { query: { since: new Date(Date.now() - 86_400_000).toISOString().replace(/\.\d+/, '') }, signal }) : null,
    credentials,
  ]);
  /** @type {HTMLElement[]} */
  const found = [];
  /**
   * @param {'bad' | 'note' | 'plain'} kind
   * @param {string} text
   * @param {...any} more
   */
  const say = (kind, text, ...more) => found.push(notice(kind, el('p', null, text, ' ', ...more)));
  if (about.status === 'fulfilled' && about.value.isDisabled) say('bad', t('overview.isDisabled'));
  if (own.status === 'fulfilled') {
    const there = own.value.map(({ platform }) => platform);
    const used = new Set(audience.status === 'fulfilled' ? audience.value.counts.map((count) => count.platform) : []);
    const lacking = [...used].filter((platform) => !there.includes(platform) && !platforms[platform]?.isRetired);
    if (there.length === 0) isNew || say('note', t('overview.noCredential'), link(page.to('credentials'), t('overview.addCredential')));
    else if (lacking.length > 0) say('bad', t('overview.lacksCredential', { platforms: lacking.map(platformName).join(', ') }), link(page.to('credentials'), t('overview.addCredential')));
    const retired = [...used].filter((platform) => platforms[platform]?.isRetired);
    if (retired.length > 0) say('note', t('overview.retired', { platforms: retired.map(platformName).join(', ') }));
    for (const { platform, expiresAt } of own.value) {
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
      page.to('notifications') + '?state=' + 'Enqueued,Processing', t('overview.seeRunning')));
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
