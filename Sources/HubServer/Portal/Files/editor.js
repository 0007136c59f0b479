// @ts-check
// The editor of one payload and its headers.

import { check, headerNames, samples, tidy } from './payloads.js';
import { bytes, t } from './text.js';
import { button, el, field, fill, freshID, input } from './view.js';

/**
 * @param {{changed: (content: import('./message.js').Content) => void}} options `changed` by the person
 */
export function editor({ changed }) {
  let format = 'apple';
  const id = freshID();
  const text = el('textarea', {
    class: 'code', id, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', rows: 14,
    'aria-describedby': `${id}-size ${id}-said`, wrap: 'soft',
  });
  const meter = el('meter', { min: 0, class: 'fill', 'aria-hidden': 'true' });
  const sizeText = el('span', { id: `${id}-size`, class: 'hint' });
  const said = el('ul', { id: `${id}-said`, class: 'said', 'aria-live': 'polite' });
  const sample = el('select');
  const sampleField = field(t('payload.sample'), sample);
  const rows = el('div', { class: 'stack' });
  const headerBox = el('details', null, el('summary', null, t('payload.headers')), el('div', { class: 'stack' },
    el('p', { class: 'hint' }, t('payload.headersHint')), rows,
    el('div', { class: 'buttons' }, button(t('payload.addHeader'), () => addHeader('', '').focus()))));

  /**
   * @param {string} name
   * @param {string} value
   */
  function addHeader(name, value) {
    const names = headerNames[format] ?? {};
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

  const headers = () => {
    /** @type {Record<string, string>} */
    const all = {};
    for (const row of rows.children) {
      const [name, value] = [...row.querySelectorAll('input')].map((box) => box.value.trim());
      if (name) all[name] = value;
    }
    return all;
  };

  function draw() {
    const { size, limit, faults, hints } = check(format, text.value, headers());
    const most = limit ?? 0;
    meter.hidden = most === 0;
    meter.max = Math.max(most, 1);
    meter.high = Math.max(most * 0.9, 1);
    meter.value = size;
    sizeText.textContent = limit === null ? bytes(size) : t('payload.size', { size: bytes(size), limit: bytes(limit) });
    text.setAttribute('aria-invalid', String(faults.length > 0));
    fill(said, faults.map((fault) => el('li', { class: 'bad' }, fault)), hints.map((hint) => el('li', { class: 'note' }, hint)));
  }
  function update() {
    draw();
    changed({ body: text.value, headers: headers() });
  }

  /**
   * @param {string} wanted format
   * @param {import('./message.js').Content} content
   */
  function show(wanted, { body, headers: given }) {
    const isOther = format !== wanted || sample.childElementCount === 0;
    format = wanted;
    if (isOther) {
      const offered = samples[format] ?? [];
      fill(sample, el('option', { value: '' }, t('payload.ownText')), offered.map(({ name }, index) => el('option', { value: index }, t(name))));
      sampleField.hidden = offered.length === 0;
    }
    // Not under the cursor of somebody who writes.
    if (text.value !== body) text.value = body;
    if (JSON.stringify(headers()) !== JSON.stringify(given)) {
      rows.replaceChildren();
      for (const [name, value] of Object.entries(given)) addHeader(name, value);
      headerBox.open ||= rows.childElementCount > 0 && format !== 'windows';
    }
    draw();
  }

  sample.addEventListener('change', () => {
    const given = samples[format][Number(sample.value)];
    if (sample.value === '' || !given) return;
    sample.value = '';
    show(format, { body: given.body, headers: given.headers ?? {} });
    update();
  });
  text.addEventListener('input', update);

  const node = el('div', { class: 'stack' },
    el('div', { class: 'field' }, el('div', { class: 'over' }, el('label', { for: id }, t('payload.title')),
      button(t('payload.tidy'), () => { text.value = tidy(text.value); update(); }, { class: 'quiet' })),
    text, el('div', { class: 'under' }, meter, sizeText), said), headerBox, sampleField);
  return { node, show, focus: () => text.focus() };
}
