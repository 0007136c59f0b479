// @ts-check
// Test Send: a payload to at most ten devices, with the replies of their push services.

import * as api from '../api.js';
import { audienceField, editor } from '../editor.js';
import { requestHeaders, showAs } from '../copyas.js';
import { platformName, platformOf } from '../platforms.js';
import { preview } from '../preview.js';
import { t } from '../text.js';
import { badge, button, calmly, data, el, fill, form, heading, link, nothing, section, short, submitButton, table } from '../view.js';

/** @param {import('../app.js').Page} page */
export function show(page) {
  const result = el('div', { 'aria-live': 'polite', class: 'stack' });
  const drawn = el('div', { class: 'stack' });
  const draw = calmly(() => {
    const { format, body } = content.value();
    const platform = platformOf(format);
    fill(drawn, platform ? preview(platform, body) : el('p', { class: 'hint' }, t('test.templateHint')));
  }, 120);
  const content = editor({
    format: page.query.get('format') ?? 'template',
    changed: () => queueMicrotask(() => {
      draw();
      page.keep({ format: content.format() });
      audience.recount(audience.value() || null);
    }),
  });
  const audience = audienceField({
    hub: page.hub, value: page.query.get('tags') ?? '', signal: page.signal, format: content.format,
    hint: t('test.tagsHint'), changed: (tags) => page.keep({ tags }),
  });
  audience.box.addEventListener('input', () => { if (!audience.value()) audience.recount(null); });
  /** @returns {import('../copyas.js').Send} */
  const send = () => ({ hub: page.hub, ...content.value(), tags: audience.value() || null, isTest: true });

  const go = submitButton(t('test.go'));
  page.main.append(
    heading(t('test.title')),
    el('p', { class: 'soft lead' }, t('test.lead')),
    el('div', { class: 'split' },
      section(t('test.what'), form(async () => {
        if (content.verdict().faults.length) throw new api.APIError(400, 'send.needPayload');
        const { body, format } = content.value();
        const began = performance.now();
        const { document } = await api.xml(api.at(page.hub, 'messages'), {
          method: 'POST', query: { test: true, 'api-version': '2020-06' }, headers: requestHeaders(send()), body, signal: page.signal,
        });
        fill(result, report(page, document, format, performance.now() - began));
        result.scrollIntoView({ block: 'nearest' });
      }, content.node, audience.field, audience.result,
      el('div', { class: 'buttons' }, go, button(t('send.copyAs'), () => showAs(send()), { class: 'quiet' })))),
      section(t('preview.title'), drawn)),
    result);
  audience.recount(audience.value() || null);
}

/**
 * @param {import('../app.js').Page} page
 * @param {Document} document
 * @param {string} format
 * @param {number} ms
 */
export function report(page, document, format, ms) {
  const text = (/** @type {Element | Document} */ node, /** @type {string} */ name) => node.getElementsByTagName(name)[0]?.textContent ?? '';
  const results = [...document.getElementsByTagName('RegistrationResult')].map((node) => ({
    platform: text(node, 'ApplicationPlatform'), handle: text(node, 'PnsHandle'),
    registration: text(node, 'RegistrationId'), outcome: text(node, 'Outcome'),
    said: [Number(text(node, 'Status')) || '', text(node, 'Reason')].filter(Boolean).join(' '),
  }));
  if (results.length === 0) {
    return nothing(t('test.nobody'), el('p', null, t(platformOf(format) ? 'test.nobodyNative' : 'test.nobodyTemplate')));
  }
  const well = Number(text(document, 'Success'));
  const ill = Number(text(document, 'Failure'));
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
