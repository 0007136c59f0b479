// @ts-check
// Send: to a tag expression, to everyone or to one handle; now or later; with a dry run as preview.
// The query may set `tags`, `format`, `body`, `handle` and `when`, so that other pages can link here.

import * as api from '../api.js';
import { audienceField, editor, reached } from '../editor.js';
import { requestHeaders, showAs } from '../copyas.js';
import { platformName, platformOf } from '../platforms.js';
import { preview } from '../preview.js';
import { announce, badge, button, calmly, choice, code, data, dialog, el, failure, field, fill, form, heading, input, notice, section, submitButton } from '../view.js';
import { bytes, duration, number, t, time } from '../text.js';

/** @param {import('../app.js').Page} page */
export function show(page) {
  let target = page.query.has('handle') ? 'handle' : page.query.get('to') === 'everyone' ? 'everyone' : 'tags';
  let when = page.query.get('when') === 'later' ? 'later' : 'now';
  // Unchanged until a send succeeds: the hub recognises the second of two clicks, or a repeat after a
  // lost reply.
  let key = freshKey();
  let isOwnKey = false;
  const side = el('div', { class: 'stack' });

  const content = editor({
    format: page.query.get('format') ?? 'template', body: page.query.get('body') ?? undefined,
    changed: () => queueMicrotask(() => {
      page.keep({ format: content.format() });
      recount();
      draw();
    }),
  });
  const audience = audienceField({
    hub: page.hub, value: page.query.get('tags') ?? '', signal: page.signal, format: content.format,
    changed: (tags) => { page.keep({ tags }); draw(); },
  });
  const handle = input({ value: page.query.get('handle') ?? '', autocapitalize: 'off' });
  const handleField = field(t('send.handle'), handle, t('send.handleHint'));
  const timeBox = input({ type: 'datetime-local', step: 60, value: inAnHour() });
  const timeField = field(t('send.time'), timeBox, t('send.timeHint', { zone: Intl.DateTimeFormat().resolvedOptions().timeZone }));
  const keyBox = input({ value: key, maxlength: 255 });
  keyBox.addEventListener('input', () => {
    key = keyBox.value.trim();
    isOwnKey = true;
  });

  const recount = () => {
    if (target === 'handle') fill(audience.result);
    else audience.recount(target === 'everyone' ? null : audience.value());
  };
  const draw = calmly(() => {
    const { format, body } = content.value();
    const platform = platformOf(format);
    fill(side, platform ? preview(platform, body) : el('p', { class: 'hint' }, t('send.previewHint')));
  }, 150);
  const refresh = () => {
    audience.field.hidden = target !== 'tags';
    handleField.hidden = target !== 'handle';
    timeField.hidden = when === 'now';
    whenBox.hidden = target === 'handle';
    recount();
  };

  /** @returns {import('../copyas.js').Send} */
  const send = () => ({
    hub: page.hub, ...content.value(), key,
    tags: target === 'tags' ? audience.value() : null,
    handle: target === 'handle' ? handle.value.trim() : undefined,
    at: target !== 'handle' && when === 'later' ? new Date(timeBox.value).toISOString().replace(/\.\d+Z$/, 'Z') : undefined,
  });
  /** What is missing is said before the hub is asked. */
  const ready = () => {
    if (target === 'tags' && !audience.value()) { audience.box.focus(); throw new api.APIError(400, 'send.needTags'); }
    if (target === 'handle' && !handle.value.trim()) { handle.focus(); throw new api.APIError(400, 'send.needHandle'); }
    if (target === 'handle' && content.format() === 'template') throw new api.APIError(400, 'send.needNative');
    if (when === 'later' && target !== 'handle' && Number.isNaN(Date.parse(timeBox.value))) { timeBox.focus(); throw new api.APIError(400, 'send.needTime'); }
    if (when === 'later' && target !== 'handle' && Date.parse(timeBox.value) < Date.now()) { timeBox.focus(); throw new api.APIError(400, 'send.past'); }
    if (content.verdict().faults.length) throw new api.APIError(400, 'send.needPayload');
    return send();
  };

  const whenBox = choice(t('send.when'), [['now', t('send.now')], ['later', t('send.later')]], when, (value) => {
    when = value;
    page.keep({ when: value === 'now' ? null : value });
    refresh();
  });
  const go = submitButton(t('send.go'));
  page.main.append(
    heading(t('send.title')),
    el('div', { class: 'split' },
      form(async () => {
        const what = ready();
        if (!await isMeant(page, what)) return;
        await deliver(page, what, () => {
          key = freshKey();
          isOwnKey = false;
          keyBox.value = key;
        });
      },
      section(t('send.what'), content.node),
      section(t('send.toWhom'),
        choice(t('send.target'), [['tags', t('send.toTags')], ['everyone', t('send.toEveryone')], ['handle', t('send.toHandle')]], target, (value) => {
          target = value;
          page.keep({ to: value === 'everyone' ? value : null, handle: null });
          refresh();
        }), audience.field, handleField, audience.result,
        whenBox, timeField,
        el('details', null, el('summary', null, t('send.once')), field(t('send.key'), keyBox, t('send.keyHint')))),
      el('div', { class: 'buttons' }, go,
        button(t('send.dryRun'), async () => {
          fill(side, await dryRun(page, ready()));
          const card = side.closest('section');
          if (card && card.getBoundingClientRect().top > innerHeight - 120) card.scrollIntoView();
        }),
        // With a key of this page a script that runs each night would send only once.
        button(t('send.copyAs'), () => showAs({ ...ready(), key: isOwnKey ? key : undefined }), { class: 'quiet' }))),
      section(t('preview.title'), side)));
  refresh();
}

function freshKey() {
  return 'portal-' + crypto.randomUUID();
}

function inAnHour() {
  const date = new Date(Date.now() + 3_600_000);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/**
 * A send that reaches everyone, even through an expression that all satisfy, asks for their number first.
 * The devices are counted now, not read from the screen.
 * @param {import('../app.js').Page} page
 * @param {import('../copyas.js').Send} what
 * @returns {Promise<boolean>}
 */
async function isMeant(page, what) {
  if (what.handle) return true;
  const count = async (/** @type {string | null} */ tags) => {
    const { counts, estimate } = await api.json(api.at(page.hub, 'audience'), { query: { tags }, signal: page.signal });
    return { total: reached(counts, what.format).total, isEstimate: Boolean(estimate) };
  };
  const all = await count(null);
  const some = what.tags === null ? all : await count(what.tags);
  const meant = some.total;
  // Two estimates of the same audience differ a little.
  const everyone = all.isEstimate || some.isEstimate ? 0.9 * all.total : all.total;
  if (what.tags !== null && (meant < everyone || meant < 2)) return true;
  return await dialog(t('send.everyoneTitle'), (close) => {
    const typed = input({ inputmode: 'numeric', autofocus: true });
    const sure = submitButton(t(what.at ? 'send.scheduleIt' : 'send.toAll', { n: meant }), { disabled: true });
    typed.addEventListener('input', () => { sure.disabled = typed.value.replace(/\D/g, '') !== String(meant); });
    return [form(() => close(true),
      el('p', null, t(what.tags === null ? 'send.everyoneText' : 'send.everyoneTags', { n: meant })),
      field(t('send.typeCount', { n: meant }), typed),
      el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), sure))];
  }) === true;
}

/**
 * @param {import('../app.js').Page} page
 * @param {import('../copyas.js').Send} what
 * @param {() => void} sent
 */
async function deliver(page, what, sent) {
  try {
    const reply = await api.request(api.at(page.hub, what.at ? 'schedulednotifications' : 'messages'), {
      method: 'POST', query: { direct: Boolean(what.handle), 'api-version': '2020-06' }, headers: requestHeaders(what), body: what.body,
    });
    const id = decodeURIComponent(new URL(reply.headers.get('Location') ?? '', location.href).pathname.split('/').pop() ?? '');
    sent();
    announce(t(what.at ? 'send.scheduled' : 'send.sent'));
    page.go(page.to('notifications', id));
  } catch (error) {
    if (!(error instanceof api.APIError)) throw error;
    // The key is remembered for another request; use a new one for the current form.
    if (error.status === 422) {
      sent();
      throw new api.APIError(422, 'send.keyUsed', error.trackingId);
    }
    if (error.status === 0) throw new api.APIError(0, 'send.lost');
    throw error;
  }
}

/**
 * @param {import('../app.js').Page} page
 * @param {import('../copyas.js').Send} what
 */
async function dryRun(page, what) {
  const { at, key, ...now } = what;
  const found = await api.json(api.at(page.hub, 'messages'), {
    method: 'POST', query: { 'dry-run': true, direct: Boolean(what.handle), 'api-version': '2020-06' },
    headers: requestHeaders(now), body: what.body, signal: page.signal,
  });
  const duplicates = found.audience.reduce((/** @type {number} */ all, /** @type {any} */ share) => all + share.duplicates, 0);
  /** @type {Map<string, any[]>} */
  const samples = new Map();
  for (const sample of found.samples) samples.set(sample.platform, [...samples.get(sample.platform) ?? [], sample]);
  // The same message about several platforms is shown once.
  /** @type {Map<string, any>} */
  const problems = new Map();
  for (const problem of found.problems) {
    const name = `${problem.fatal} ${problem.text}`;
    const known = problems.get(name) ?? { ...problem, platforms: new Set(), devices: 0, templates: [] };
    known.platforms.add(platformName(problem.platform));
    known.devices += problem.devices;
    if (problem.template) known.templates.push(problem.template);
    problems.set(name, known);
  }
  announce(t('send.dryRunSays', { n: found.devices, problems: problems.size }));
  const shares = found.audience.sort((/** @type {any} */ one, /** @type {any} */ other) => other.devices - one.devices);
  return [
    el('div', { class: 'audience' }, el('strong', null, t('send.reaches', { n: found.devices })),
      shares.map((/** @type {any} */ share) => badge(`${platformName(share.platform)} ${number(share.devices)}`))),
    duplicates > 0 && el('p', { class: 'hint' }, t('send.duplicates', { n: duplicates })),
    found.examined < found.devices && el('p', { class: 'hint' }, t('send.examined', { n: found.examined })),
    found.estimatedSeconds != null && el('p', { class: 'hint' }, t('send.estimate', { time: duration(found.estimatedSeconds) })),
    problems.size === 0 && found.devices > 0 && notice('good', el('p', null, t('send.noProblem'))),
    ...[...problems.values()].map((problem) => notice(problem.fatal ? 'bad' : 'note',
      el('p', { class: 'strong' }, [...problem.platforms].join(', '), ': ', data(problem.text)),
      el('p', { class: 'small' }, t(problem.fatal ? 'send.fatal' : 'send.notFatal', { n: problem.devices })),
      problem.templates.length > 0 && el('details', null, el('summary', null, t('send.template')),
        problem.templates.slice(0, 20).map((/** @type {string} */ text) => code(text, t('send.template')))))),
    ...[...samples].map(([platform, all]) => el('div', { class: 'stack' },
      preview(platform, all[0].rendering.payload),
      el('details', null, el('summary', null, t('send.sampleOf', { platform: platformName(platform) })),
        all.map((sample) => el('div', { class: 'stack' },
          el('p', { class: 'hint' }, sample.registrationId, ' · ', bytes(sample.rendering.bytes),
            sample.rendering.limit ? ` / ${bytes(sample.rendering.limit)}` : '',
            sample.rendering.missingProperties?.length > 0 && ` · ${t('send.missing', { names: sample.rendering.missingProperties.join(', ') })}`),
          code(sample.rendering.payload, t('send.sampleOf', { platform: platformName(platform) }))))))),
  ];
}
