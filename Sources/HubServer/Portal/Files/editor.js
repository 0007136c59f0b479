// @ts-check
// Shared by the pages that send: the editor of a payload, and the field for a tag expression
// with the number of devices it reaches.

import * as api from './api.js';
import { check, headerNames, samples, tidy } from './payloads.js';
import { platformName, platformOf, platforms } from './platforms.js';
import { bytes, number, t } from './text.js';
import { button, calmly, el, failure, field, fill, freshID, input, select } from './view.js';

/** @typedef {{format: string, body: string, headers: Record<string, string>}} Content */

/**
 * Template first, then every platform that is still in service.
 * @returns {[string, string][]}
 */
export const formats = () => [['template', t('payload.template')],
  ...Object.values(platforms).filter((platform) => !platform.isRetired)
    .map((platform) => /** @type {[string, string]} */ ([platform.format, platform.name])),
  ...Object.values(platforms).filter((platform) => platform.isRetired)
    .map((platform) => /** @type {[string, string]} */ ([platform.format, `${platform.name} (${t('payload.retired')})`]))];

/**
 * @param {{format: string, body?: string, changed: () => void, only?: string[]}} options
 */
export function editor({ format, body, changed, only }) {
  let current = Object.hasOwn(samples, format) ? format : 'template';
  const id = freshID();
  const text = el('textarea', {
    class: 'code', id, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', rows: 11,
    'aria-describedby': `${id}-size ${id}-said`, wrap: 'soft',
  });
  const meter = el('meter', { min: 0, class: 'fill', 'aria-hidden': 'true' });
  const sizeText = el('span', { id: `${id}-size`, class: 'hint' });
  const said = el('ul', { id: `${id}-said`, class: 'said', 'aria-live': 'polite' });
  const sample = el('select', { 'aria-label': t('payload.sample') });
  const rows = el('div', { class: 'stack' });
  const headerBox = el('details', null, el('summary', null, t('payload.headers')), el('div', { class: 'stack' },
    el('p', { class: 'hint' }, t('payload.headersHint')), rows,
    el('div', { class: 'buttons' }, button(t('payload.addHeader'), () => addHeader('', '').focus()))));
  let isSample = true;

  /**
   * @param {string} name
   * @param {string} value
   */
  function addHeader(name, value) {
    const names = headerNames[current] ?? {};
    const listed = freshID();
    const values = freshID();
    const nameBox = input({ value: name, list: listed, 'aria-label': t('payload.headerName'), placeholder: Object.keys(names)[0] ?? 'name' });
    const valueBox = input({ value, list: values, 'aria-label': t('payload.headerValue') });
    const valueList = el('datalist', { id: values });
    const suggest = () => fill(valueList, (names[nameBox.value] ?? []).map((value) => el('option', { value })));
    suggest();
    const row = el('div', { class: 'pair' }, nameBox, valueBox,
      button('×', () => { row.remove(); update(); }, { 'aria-label': t('payload.removeHeader'), class: 'quiet' }),
      el('datalist', { id: listed }, Object.keys(names).map((value) => el('option', { value }))), valueList);
    nameBox.addEventListener('input', () => { suggest(); update(); });
    valueBox.addEventListener('input', update);
    rows.append(row);
    return nameBox;
  }

  /** @param {import('./platforms.js').Sample | undefined} given */
  function take(given) {
    text.value = given?.body ?? '';
    rows.replaceChildren();
    for (const [name, value] of Object.entries(given?.headers ?? {})) addHeader(name, value);
    headerBox.open = rows.childElementCount > 0;
    isSample = true;
    update();
  }

  const headers = () => {
    /** @type {Record<string, string>} */
    const all = {};
    for (const row of rows.children) {
      const [name, value] = [...row.querySelectorAll('input')].map((box) => box.value.trim());
      if (name) all[name] = value;
    }
    return all;
  };
  /** @returns {Content} */
  const value = () => ({ format: current, body: text.value, headers: headers() });
  const verdict = () => check(current, text.value, headers());

  function update() {
    const { size, limit, faults, hints } = verdict();
    const most = limit ?? 0;
    meter.hidden = most === 0;
    meter.max = Math.max(most, 1);
    meter.high = Math.max(most * 0.9, 1);
    meter.value = size;
    sizeText.textContent = limit === null ? bytes(size) : t('payload.size', { size: bytes(size), limit: bytes(limit) });
    text.setAttribute('aria-invalid', String(faults.length > 0));
    fill(said, faults.map((fault) => el('li', { class: 'bad' }, fault)), hints.map((hint) => el('li', { class: 'note' }, hint)));
    changed();
  }

  function offerSamples() {
    fill(sample, samples[current].map(({ name }, index) => el('option', { value: index }, t(name))));
    sample.disabled = samples[current].length < 2;
  }

  const formatBox = select(formats().filter(([format]) => !only || only.includes(format)), current, (format) => {
    const kept = text.value;
    const wasSample = isSample;
    current = format;
    offerSamples();
    // Written text stays; a sample is replaced by one of the other format.
    if (wasSample || kept.trim() === '') take(samples[format][0]);
    else update();
  });
  sample.addEventListener('change', () => take(samples[current][Number(sample.value)]));
  text.addEventListener('input', () => { isSample = false; update(); });

  offerSamples();
  take(samples[current][0]);
  if (body !== undefined) {
    text.value = body;
    isSample = false;
    update();
  }
  const node = el('div', { class: 'stack' },
    el('div', { class: 'row' }, field(t('payload.format'), formatBox), field(t('payload.sample'), sample)),
    el('div', { class: 'field' }, el('div', { class: 'over' }, el('label', { for: id }, t('payload.title')),
      button(t('payload.tidy'), () => { text.value = tidy(text.value); update(); }, { class: 'quiet' })),
    text, el('div', { class: 'under' }, meter, sizeText), said), headerBox);
  return { node, value, verdict, format: () => current };
}

/**
 * A tag expression, with its audience counted while typing.
 * @param {{hub: string, value: string, signal: AbortSignal, format: () => string, hint?: string,
 *   changed: (value: string) => void}} options
 */
export function audienceField({ hub, value, signal, format, changed, hint }) {
  const box = input({ value, autocapitalize: 'off', placeholder: 'news && !muted' });
  const result = el('div', { class: 'audience', 'aria-live': 'polite' });
  /** @type {{total: number, isFor: string | null} | null} */
  let known = null;
  let asked = new AbortController();

  const count = async (/** @type {string | null} */ tags) => {
    asked.abort();
    const own = asked = new AbortController();
    signal.addEventListener('abort', () => own.abort(), { once: true });
    known = null;
    try {
      const reply = await api.json(api.at(hub, 'audience'), { query: { tags }, signal: own.signal });
      if (own.signal.aborted) return;
      const { total, rows } = reached(reply.counts, format());
      known = { total, isFor: tags };
      box.setAttribute('aria-invalid', 'false');
      fill(result, el('strong', null, t(reply.estimate ? 'send.reachesAbout' : 'send.reaches', { n: total })),
        rows.map(([platform, n]) => el('span', { class: 'badge' }, `${platformName(platform)} ${number(n)}`)));
    } catch (error) {
      if (own.signal.aborted) return;
      box.setAttribute('aria-invalid', 'true');
      fill(result, error instanceof api.APIError && error.status === 400
        ? el('span', { class: 'fault' }, error.message) : failure(error));
    }
  };
  const calm = calmly((/** @type {string | null} */ tags) => void count(tags), 250);
  /**
   * Counts again; null means everyone.
   * @param {string | null} tags
   */
  const recount = (tags) => {
    known = null;
    if (tags === '') fill(result, el('span', { class: 'hint' }, t('send.noTags')));
    else calm(tags);
  };
  box.addEventListener('input', () => { changed(box.value.trim()); recount(box.value.trim()); });
  return {
    field: field(t('send.tags'), box, hint ?? t('send.tagsHint')), box, result, recount,
    value: () => box.value.trim(),
    /**
     * The last count, if it was for this expression.
     * @param {string | null} tags
     */
    known: (tags) => known?.isFor === tags ? known.total : null,
  };
}

/**
 * The audience counts that a send of this format reaches.
 * @param {{platform: string, template: string | null, devices: number}[]} counts
 * @param {string} format
 */
export function reached(counts, format) {
  const platform = platformOf(format);
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const count of counts) {
    const isMeant = platform === null ? count.template !== null : count.template === null && count.platform === platform;
    if (isMeant) sums.set(count.platform, (sums.get(count.platform) ?? 0) + count.devices);
  }
  const rows = [...sums].sort((one, other) => other[1] - one[1]);
  return { rows, total: rows.reduce((all, row) => all + row[1], 0) };
}
