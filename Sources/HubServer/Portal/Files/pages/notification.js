// @ts-check
// One notification: progress, outcomes, content, and why a device did or did not
// get it. While it is in progress the page follows it, and can abort it.

import { actorsOf } from '../activity.js';
import * as api from '../api.js';
import { whoseTag } from '../devices.js';
import { explanationView } from '../explanation.js';
import { senderOf, wordsOf } from '../notificationrows.js';
import { advice, isOver, kindOf, outcomeBadges, sorted, stateBadge, stateName } from '../outcomes.js';
import { formatName, platformName, platformOf } from '../platforms.js';
import { preview } from '../preview.js';
import { bytes, duration, number, percent, t, time } from '../text.js';
import { announce, badge, button, code, confirm, copyButton, data, el, facts, failure, field, fill, form, heading, input, link, moment, notice, pagedList, pause, section, select, short, submitButton, table } from '../view.js';
import { textOf } from '../xml.js';

/** @typedef {{state: string, tags: string, format: string, body: string, title: string, text: string, textState: string, enqueueTime: string, startTime: string, endTime: string, dueTime: string, platforms: {platform: string, outcomes: Record<string, number>}[]}} Telemetry */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  const { id } = page.params;
  const path = api.at(page.hub, 'messages', id);
  let telemetry = await readTelemetry(path, page.signal);
  const { head, rest, isSaid } = wordsOf({ ...telemetry, notificationId: t('notification.title') });
  page.title(head);
  const stands = el('div', { class: 'stack', 'aria-live': 'polite' });
  const actions = el('div', { class: 'actions' });
  const outcomes = el('div');
  const devices = el('div');

  const drawActions = () => fill(actions,
    ['Enqueued', 'Processing'].includes(telemetry.state) && api.role(page.hub) !== 'viewer'
      && button(t('notification.abort'), () => abort(page, path, update), { class: 'danger' }),
    telemetry.state === 'Scheduled' && api.role(page.hub) !== 'viewer'
      && button(t('notification.cancel'), () => cancel(page, id, update), { class: 'danger' }),
    api.role(page.hub) !== 'viewer' && el('a', { class: 'as-button', href: page.to('compose') + '?' + new URLSearchParams({
      format: telemetry.format, ...telemetry.body ? { body: telemetry.body } : {}, ...telemetry.tags ? { tags: telemetry.tags } : {},
    }) }, t('notification.again')));
  let sender = '';
  const drawFacts = () => fill(described, facts([
    [t('notification.state'), stateBadge(telemetry.state)],
    [t('notification.to'), toWhom(page, telemetry.tags)],
    [t('notification.format'), formatName(telemetry.format)],
    [t('notification.due'), telemetry.dueTime && moment(telemetry.dueTime)],
    [t('notification.accepted'), moment(telemetry.enqueueTime)],
    [t('notifications.actor'), sender && senderOf(sender)],
    [t('notification.started'), telemetry.startTime && time(telemetry.startTime)],
    [t('notification.ended'), telemetry.endTime && time(telemetry.endTime)],
    [t('notification.took'), telemetry.startTime && telemetry.endTime
      && duration(Math.max(0, Date.parse(telemetry.endTime) - Date.parse(telemetry.startTime)) / 1000)],
  ]));
  const drawOutcomes = () => fill(outcomes, telemetry.platforms.length === 0
    ? el('p', { class: 'hint' }, t(telemetry.state === 'NoTargetFound' ? 'notification.nobody' : isOver(telemetry.state) ? 'notification.noOutcome' : 'notification.noOutcomeYet'))
    : table(t('notification.outcomes'), [
      { head: t('notification.platform'), cell: (row) => platformName(row.platform) },
      { head: t('notification.outcome'), cell: (row) => badge(row.outcome, kindOf(row.outcome)) },
      { head: t('notification.count'), class: 'number', cell: (row) => row.count },
      { head: t('notification.meaning'), cell: (row) => el('span', { class: 'soft' }, advice(row.outcome)) },
    ], telemetry.platforms.flatMap(({ platform, outcomes }) => sorted(outcomes).map(([outcome, count]) => ({ platform, outcome, count })))));
  /** Renders again everything that can change. */
  async function update() {
    telemetry = await readTelemetry(path, page.signal);
    drawActions();
    drawFacts();
    drawOutcomes();
    devices.replaceChildren(deviceList(page, path));
  }

  const described = el('div');
  page.main.append(
    el('p', { class: 'small' }, link(page.to('notifications'), '← ' + t('notifications.title'))),
    heading(head, actions),
    rest && el('p', { class: isSaid ? 'lead' : 'lead soft' }, data(rest)),
    el('p', { class: 'small soft' }, t('notification.id'), ' ', el('span', { class: 'mono' }, short(id, 22)), ' ',
      copyButton(id, t('view.copy'), `${t('view.copy')}: ${t('notification.id')}`)),
    stands,
    section(t('notification.facts'), described),
    section(t('notification.outcomes'), outcomes),
    section(t('notification.devices'), el('p', { class: 'hint' }, t('notification.devicesHint')), devices),
    explainSection(page, path),
    section(t('notification.payload'), payload(telemetry)));
  drawActions();
  drawFacts();
  drawOutcomes();
  devices.append(deviceList(page, path));
  void actorsOf(page.hub, [{ notificationId: id, enqueueTime: telemetry.enqueueTime }], '', page.signal).then((actors) => {
    sender = actors.get(id) ?? '';
    drawFacts();
  });
  void follow(page, path, telemetry.state, stands, update).catch((error) => {
    if (!page.signal.aborted) fill(stands, failure(error));
  });
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} tags
 */
function toWhom(page, tags) {
  const { user } = whoseTag(tags);
  if (user) return link(page.to('users', user), data(user));
  return tags ? el('span', { class: 'mono' }, data(tags)) : t('notification.noTags');
}

/**
 * @param {string} path
 * @param {AbortSignal} signal
 * @returns {Promise<Telemetry>}
 */
async function readTelemetry(path, signal) {
  const { document } = await api.xml(path, { query: { 'api-version': '2020-06' }, signal });
  const root = document.documentElement;
  const text = (/** @type {string} */ name) => textOf(root, name);
  const targets = text('TargetPlatforms').split(',').filter(Boolean);
  return {
    state: text('State'), tags: text('Tags'), body: text('NotificationBody'), enqueueTime: text('EnqueueTime'),
    title: text('Title'), text: text('Text'), textState: text('TextState'), startTime: text('StartTime'), endTime: text('EndTime'), dueTime: text('DueTime'),
    format: targets.length === 1 && platformOf(targets[0]) ? targets[0] : 'template',
    platforms: [...root.children].filter((node) => node.localName.endsWith('OutcomeCounts')).map((node) => ({
      platform: node.localName.replace('OutcomeCounts', '').toLowerCase(),
      outcomes: Object.fromEntries([...node.children].map((outcome) => [
        outcome.children[0]?.textContent ?? '', Number(outcome.children[1]?.textContent),
      ])),
    })),
  };
}

// --- While it is under way -------------------------------------------------------------------

/**
 * Shows the progress until it ends; starts again when the connection breaks.
 * @param {import('../app.js').Page} page
 * @param {string} path
 * @param {string} state as the page shows it
 * @param {HTMLElement} place
 * @param {() => Promise<void>} update
 */
async function follow(page, path, state, place, update) {
  const first = await api.json(path + '/progress', { signal: page.signal });
  if (isOver(first.state)) {
    draw(place, first, null);
    return first.state === state ? undefined : update();
  }
  /** @type {{at: number, done: number}[]} of the last ten seconds */
  let past = [];
  /** @param {any} progress */
  const step = (progress) => {
    const now = performance.now();
    past = [...past.filter((point) => now - point.at < 10_000), { at: now, done: progress.done }];
    const [oldest] = past;
    const rate = now - oldest.at > 400 ? (progress.done - oldest.done) / ((now - oldest.at) / 1000) : null;
    draw(place, progress, rate);
    if (progress.state !== state) {
      state = progress.state;
      announce(t('notification.isNow', { state: stateName(state) }));
      void update().catch(() => {});
    }
  };
  step(first);
  for (;;) {
    let isEnded = false;
    try {
      await api.stream(path + '/events', (event, progress) => {
        step(progress);
        if (event === 'end') isEnded = true;
      }, page.signal);
    } catch (error) {
      if (!(error instanceof api.APIError) || error.status !== 0) throw error;
    }
    if (isEnded || isOver(state)) break;
    await pause(1500, page.signal);
  }
  await update();
}

/**
 * @param {HTMLElement} place
 * @param {any} progress
 * @param {number | null} rate devices in a second
 */
function draw(place, progress, rate) {
  const { audience, done, succeeded, failed, retrying, state } = progress;
  if (state === 'Scheduled') return fill(place, notice('note', el('p', null, t('notification.waits'))));
  if (state === 'NoTargetFound') return fill(place, notice('plain', el('p', null, t('notification.nobody'))));
  const whole = isOver(state) ? done : Math.max(audience ?? 0, done);
  const left = whole - done;
  const share = (/** @type {number} */ count) => whole > 0 ? count / whole : 0;
  const bar = el('div', {
    class: 'progress', role: 'progressbar', 'aria-label': t('notification.progress'), 'aria-valuemin': 0,
    'aria-valuemax': whole, 'aria-valuenow': done,
  }, el('span', { class: 'good' }), el('span', { class: 'bad' }));
  const [well, ill] = /** @type {HTMLElement[]} */ ([...bar.children]);
  well.style.inlineSize = `${share(succeeded) * 100}%`;
  ill.style.inlineSize = `${share(failed) * 100}%`;
  fill(place, bar, el('p', { class: 'counts' },
    el('span', null, el('strong', null, number(done)), ` / ${audience === null || audience === undefined ? '?' : number(whole)} ${t('notification.done')}`),
    el('span', { class: 'fine' }, t('notification.succeeded', { n: succeeded })),
    failed > 0 && el('span', { class: 'fault' }, t('notification.failed', { n: failed }), whole > 0 && ` (${percent(share(failed))})`),
    retrying > 0 && el('span', null, t('notification.retrying', { n: retrying })),
    !isOver(state) && rate !== null && el('span', { class: 'soft' }, t('notification.rate', { rate: Math.round(rate) })),
    !isOver(state) && rate !== null && rate > 0 && left > 0 && el('span', { class: 'soft' }, t('notification.left', { time: duration(left / rate) })),
  ), Object.keys(progress.outcomes ?? {}).length > 0 && el('p', null, outcomeBadges(progress.outcomes)));
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} path
 * @param {() => Promise<void>} update
 */
async function abort(page, path, update) {
  let aborted = 0;
  const isDone = await confirm({
    title: t('notification.abortTitle'), text: t('notification.abortText'), action: t('notification.abort'),
    act: async () => {
      const reply = await api.request(path, { method: 'DELETE' });
      aborted = (await reply.json().catch(() => ({}))).aborted ?? 0;
    },
  });
  if (!isDone) return;
  // The rest of a large audience is counted after the reply.
  announce(aborted > 0 ? t('notification.aborted', { n: aborted }) : t('notification.abortTaken'));
  await update();
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} id
 * @param {() => Promise<void>} update
 */
async function cancel(page, id, update) {
  const isDone = await confirm({
    title: t('notification.cancelTitle'), text: t('notification.cancelText'), action: t('notification.cancel'),
    act: () => api.request(api.at(page.hub, 'schedulednotifications', id), { method: 'DELETE' }),
  });
  if (!isDone) return;
  announce(t('notification.canceled'));
  page.reload();
}

// --- Device by device ------------------------------------------------------------------------

/**
 * @param {import('../app.js').Page} page
 * @param {string} path
 */
function deviceList(page, path) {
  const outcome = page.query.get('outcome') ?? '';
  const node = el('div', { class: 'stack' });
  const draw = (/** @type {string} */ wanted) => {
    node.replaceChildren(pagedList({
      caption: t('notification.devices'), signal: page.signal,
      empty: el('p', { class: 'hint' }, t('notification.noDevice')),
      load: (from) => api.list(path + '/devices', 'devices', { outcome: wanted }, from, page.signal),
      columns: [
        { head: t('notification.platform'), cell: (item) => platformName(item.platform) },
        { head: t('notification.device'), cell: (item) => item.installationId
          ? link(page.to('devices', item.installationId), data(item.installationId))
          : el('span', { class: 'mono' }, short(item.registrationId ?? item.handle, 22)) },
        { head: t('notification.outcome'), cell: (item) => badge(item.outcome, kindOf(item.outcome)) },
        { head: t('notification.said'), cell: (item) => [item.status, item.status && ' ', item.reason && data(item.reason)] },
        { head: t('notification.attempts'), class: 'number', cell: (item) => item.attempts },
        { head: t('notification.when'), cell: (item) => moment(item.time) },
      ],
    }));
  };
  draw(outcome);
  return node;
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} path
 */
function explainSection(page, path) {
  if (api.role(page.hub) !== 'manager') return '';
  const device = input({ value: page.query.get('device') ?? '', autocapitalize: 'off' });
  const kind = select([['installation', t('notification.installation')], ['registration', t('notification.registration')]], 'installation', () => {});
  const answer = el('div', { class: 'stack', 'aria-live': 'polite' });
  const ask = async () => {
    const id = device.value.trim();
    if (!id) return device.focus();
    page.keep({ device: id });
    const found = await api.json(path + '/explain', { query: { [kind.value]: id }, signal: page.signal });
    fill(answer, explanationView(found));
  };
  const node = section(t('notification.explain'), el('p', { class: 'hint' }, t('notification.explainHint')),
    form(ask, el('div', { class: 'row' }, field(t('notification.idOf'), kind), field(t('notification.id'), device)), el('div', { class: 'buttons' }, submitButton(t('notification.ask'), { class: '' }))), answer);
  if (device.value) void ask().catch((error) => fill(answer, failure(error)));
  return node;
}

/** @param {Telemetry} telemetry */
function payload({ body, format }) {
  const platform = platformOf(format);
  return el('div', { class: platform ? 'split' : 'stack' }, el('div', { class: 'stack' },
    body ? code(body, t('notification.payload')) : el('p', { class: 'hint' }, t('notification.noPayload')),
    body && el('p', { class: 'hint' }, bytes(new TextEncoder().encode(body).length), ' ', copyButton(body))),
  platform && body && preview(platform, body, { isSmall: true }));
}
