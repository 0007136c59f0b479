// @ts-check
// What a page does with a message: try it, test it, send it, and say what came of it.

import * as api from './api.js';
import { reached } from './audience.js';
import { requestHeaders } from './copyas.js';
import { platformName, platformOf } from './platforms.js';
import { bytes, duration, number, t } from './text.js';
import { badge, button, code, data, dialog, el, field, form, input, notice, nothing, section, short, submitButton, table } from './view.js';

/** @typedef {import('./copyas.js').Send} Send */

/**
 * A dry run of the hub's own: nothing is sent.
 * @param {Send} send
 * @param {AbortSignal} signal
 */
export function tried(send, signal) {
  const { at, key, ...now } = send;
  return api.json(api.at(send.hub, 'messages'), {
    method: 'POST', query: { 'dry-run': true, direct: Boolean(send.handle), 'api-version': '2020-06' },
    headers: requestHeaders(now), body: send.body, signal,
  });
}

/**
 * The id of the notification.
 * @param {Send} send
 */
export async function deliver(send) {
  const reply = await api.request(api.at(send.hub, send.at ? 'schedulednotifications' : 'messages'), {
    method: 'POST', query: { direct: Boolean(send.handle), 'api-version': '2020-06' }, headers: requestHeaders(send), body: send.body,
  });
  return decodeURIComponent(new URL(reply.headers.get('Location') ?? '', location.href).pathname.split('/').pop() ?? '');
}

/**
 * The hub's report of a test send.
 * @param {Send} send
 * @param {AbortSignal} signal
 */
export async function tested(send, signal) {
  const { document } = await api.xml(api.at(send.hub, 'messages'), {
    method: 'POST', query: { test: true, 'api-version': '2020-06' }, headers: requestHeaders(send), body: send.body, signal,
  });
  return document;
}

/**
 * A send that reaches everyone, even through an expression that all satisfy, asks for their number first.
 * The devices are counted now, not read from the screen.
 * @param {Send[]} sends of one audience
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>}
 */
export async function isMeant(sends, signal) {
  const [{ hub, tags, handle, at, format }] = sends;
  if (handle) return true;
  const platforms = sends.map((send) => platformOf(send.format) ?? '');
  const count = async (/** @type {string | null} */ tags) => {
    const { counts, estimate } = await api.json(api.at(hub, 'audience'), { query: { tags }, signal });
    return { total: reached(counts, format === 'template', format === 'template' ? undefined : platforms).total, isEstimate: Boolean(estimate) };
  };
  const all = await count(null);
  const some = tags === null ? all : await count(tags);
  const meant = some.total;
  // Two estimates of the same audience differ a little.
  const everyone = all.isEstimate || some.isEstimate ? 0.9 * all.total : all.total;
  if (tags !== null && (meant < everyone || meant < 2)) return true;
  return await dialog(t('send.everyoneTitle'), (close) => {
    const typed = input({ inputmode: 'numeric', autofocus: true });
    const sure = submitButton(t(at ? 'send.scheduleIt' : 'send.toAll', { n: meant }), { disabled: true });
    typed.addEventListener('input', () => { sure.disabled = typed.value.replace(/\D/g, '') !== String(meant); });
    return [form(() => close(true),
      el('p', null, t(tags === null ? 'send.everyoneText' : 'send.everyoneTags', { n: meant })),
      field(t('send.typeCount', { n: meant }), typed),
      el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), sure))];
  }) === true;
}

/**
 * What dry runs have found.
 * @param {any[]} all replies, of one audience
 */
export function findings(all) {
  const devices = all.reduce((sum, one) => sum + one.devices, 0);
  const examined = all.reduce((sum, one) => sum + one.examined, 0);
  const shares = all.flatMap((one) => one.audience).sort((one, other) => other.devices - one.devices);
  const duplicates = shares.reduce((sum, share) => sum + share.duplicates, 0);
  const seconds = all.reduce((sum, one) => sum + (one.estimatedSeconds ?? NaN), 0);
  /** @type {Map<string, any[]>} */
  const samples = new Map();
  for (const sample of all.flatMap((one) => one.samples)) samples.set(sample.platform, [...samples.get(sample.platform) ?? [], sample]);
  // The same message about several platforms is shown once.
  /** @type {Map<string, any>} */
  const problems = new Map();
  for (const problem of all.flatMap((one) => one.problems)) {
    const name = `${problem.fatal} ${problem.text}`;
    const known = problems.get(name) ?? { ...problem, platforms: new Set(), devices: 0, templates: [] };
    known.platforms.add(platformName(problem.platform));
    known.devices += problem.devices;
    if (problem.template) known.templates.push(problem.template);
    problems.set(name, known);
  }
  const node = section(t('send.dryRun'),
    el('div', { class: 'chips' }, el('strong', null, t('send.reaches', { n: devices })),
      shares.map((share) => badge(`${platformName(share.platform)} ${number(share.devices)}`))),
    duplicates > 0 && el('p', { class: 'hint' }, t('send.duplicates', { n: duplicates })),
    examined < devices && el('p', { class: 'hint' }, t('send.examined', { n: examined })),
    seconds >= 0 && el('p', { class: 'hint' }, t('send.estimate', { time: duration(seconds) })),
    problems.size === 0 && devices > 0 && notice('good', el('p', null, t('send.noProblem'))),
    ...[...problems.values()].map((problem) => notice(problem.fatal ? 'bad' : 'note',
      el('p', { class: 'strong' }, [...problem.platforms].join(', '), ': ', data(problem.text)),
      el('p', { class: 'small' }, t(problem.fatal ? 'send.fatal' : 'send.notFatal', { n: problem.devices })),
      problem.templates.length > 0 && el('details', null, el('summary', null, t('send.template')),
        problem.templates.slice(0, 20).map((/** @type {string} */ text) => code(text, t('send.template')))))),
    ...[...samples].map(([platform, all]) => el('details', null, el('summary', null, t('send.sampleOf', { platform: platformName(platform) })),
      all.map((sample) => el('div', { class: 'stack' },
        el('p', { class: 'hint' }, sample.registrationId, ' · ', bytes(sample.rendering.bytes),
          sample.rendering.limit ? ` / ${bytes(sample.rendering.limit)}` : '',
          sample.rendering.missingProperties?.length > 0 && ` · ${t('send.missing', { names: sample.rendering.missingProperties.join(', ') })}`),
        code(sample.rendering.payload, t('send.sampleOf', { platform: platformName(platform) })))))));
  return { node, said: t('send.dryRunSays', { n: devices, problems: problems.size }) };
}

/**
 * What became of test sends, device by device.
 * @param {Document[]} documents
 * @param {boolean} isTemplate
 * @param {number} ms
 */
export function report(documents, isTemplate, ms) {
  const text = (/** @type {Element | Document} */ node, /** @type {string} */ name) => node.getElementsByTagName(name)[0]?.textContent ?? '';
  const results = documents.flatMap((document) => [...document.getElementsByTagName('RegistrationResult')]).map((node) => ({
    platform: text(node, 'ApplicationPlatform'), handle: text(node, 'PnsHandle'),
    registration: text(node, 'RegistrationId'), outcome: text(node, 'Outcome'),
    said: [Number(text(node, 'Status')) || '', text(node, 'Reason')].filter(Boolean).join(' '),
  }));
  if (results.length === 0) return nothing(t('test.nobody'), el('p', null, t(isTemplate ? 'test.nobodyTemplate' : 'test.nobodyNative')));
  const count = (/** @type {string} */ name) => documents.reduce((sum, document) => sum + Number(text(document, name)), 0);
  const [well, ill] = [count('Success'), count('Failure')];
  return section(t('test.result'),
    el('p', null, badge(t('test.succeeded', { n: well }), well ? 'good' : 'plain'), ' ',
      ill > 0 && badge(t('test.failed', { n: ill }), 'bad'), ' ',
      el('span', { class: 'hint' }, t('test.took', { ms: Math.round(ms) }))),
    table(t('test.result'), [
      // Results name the platform by its format.
      { head: t('test.platform'), cell: (item) => platformName(platformOf(item.platform.replace(/template$/, '')) ?? item.platform) },
      { head: t('test.handle'), cell: (item) => el('span', { class: 'mono' }, short(item.handle, 22)) },
      { head: t('test.registration'), cell: (item) => el('span', { class: 'mono' }, short(item.registration, 22)) },
      { head: t('test.outcome'), cell: (item) => outcome(item.outcome) },
      { head: t('notification.said'), cell: (item) => item.said ? data(item.said) : '–' },
    ], results),
    ill > 0 && el('p', { class: 'hint' }, t('test.advice')));
}

/** @param {string} outcome the hub's sentence */
const outcome = (outcome) => el('span', { class: /successfully/.test(outcome) ? 'fine' : 'fault' }, data(outcome));
