// @ts-check
// The fields of a message: those that platforms have in common, and those that templates ask for.

import { readSession } from './api.js';
import { faults, fieldsOf, isSilent, pack, unpack } from './message.js';
import { platformWord } from './platforms.js';
import { symbol } from './preview.js';
import { span, t } from './text.js';
import { button, dialog, el, field, fill, form, freshID, input, labelled, select, submitButton } from './view.js';

/** @typedef {import('./message.js').Fields} Fields */
/** @typedef {Exclude<import('./message.js').FieldName, 'silent'>} FieldName */

/** Length of a title and of a text that every phone shows whole. */
const lengths = { title: 50, text: 150 };
/** How long a service tries, in seconds; '' is the service's own. */
const times = ['', '0', '3600', '14400', '86400', '604800', '2419200'];

/** @param {string} seconds */
const timeName = (seconds) => seconds === '' ? t('compose.ttl.own') : seconds === '0' ? t('compose.ttl.once') : span(Number(seconds));

/**
 * @param {string} title
 * @param {Node} hint
 * @param {...Node} children
 */
export const fold = (title, hint, ...children) => el('details', { class: 'fold' },
  el('summary', null, symbol('into'), title, hint), el('div', { class: 'stack' }, ...children));

/**
 * @param {Fields} fields changed in place
 * @param {() => void} changed by the person
 */
export function messageForm(fields, changed) {
  const soundFile = input({ placeholder: 'bell.caf', 'aria-label': t('compose.soundFile') });
  const keeping = el('span');
  void readSession().then(({ keptText }) => {
    if (keptText !== undefined) keeping.textContent = keptText === 0 ? t('compose.textOff') : keptText ? t('compose.textKept', { time: span(keptText) }) : t('compose.textStays');
  });
  const options = (/** @type {[string, string][]} */ list, /** @type {FieldName} */ name) => select(list, fields[name], () => {});
  /**
   * Fields with one control.
   * @type {Record<Exclude<FieldName, 'data'>, ReturnType<typeof labelled<any>>>}
   */
  const single = {
    title: labelled(t('compose.title.label'), input({ class: 'title-box', spellcheck: 'true' }), { class: 'full' }),
    text: labelled(t('compose.text'), el('textarea', { class: 'message', spellcheck: 'true' }), { class: 'full', hint: keeping }),
    subtitle: labelled(t('compose.subtitle'), input({ spellcheck: 'true' })),
    link: labelled(t('compose.link'), input({ type: 'url', inputmode: 'url' }), { hint: t('compose.linkHint') }),
    image: labelled(t('compose.image'), input({ type: 'url', inputmode: 'url' }), { hint: t('compose.imageHint') }),
    button: labelled(t('compose.button'), input({ spellcheck: 'true' }), { hint: t('compose.buttonHint') }),
    badge: labelled(t('compose.badge'), input({ inputmode: 'numeric' }), { hint: t('compose.badgeHint') }),
    sound: labelled(t('compose.sound'), options([['default', t('compose.sound.default')], ['none', t('compose.sound.none')], ['file', t('compose.sound.file')]], 'sound')),
    ttl: labelled(t('compose.ttl'), el('select'), { hint: t('compose.ttlHint') }),
    replaces: labelled(t('compose.replaces'), input({ placeholder: 'weekend-list' }), { hint: t('compose.replacesHint') }),
    urgency: labelled(t('compose.urgency'), options([['normal', t('compose.urgency.normal')], ['quiet', t('compose.urgency.quiet')], ['urgent', t('compose.urgency.urgent')]], 'urgency')),
    group: labelled(t('compose.group'), input({ placeholder: 'lists' }), { hint: t('compose.groupHint') }),
  };
  single.sound.node.append(soundFile);
  const names = /** @type {Exclude<FieldName, 'data'>[]} */ (Object.keys(single));
  /** @param {() => void} said */
  const edited = (said) => {
    said();
    fields.silent = isSilent(fields) ? '1' : '';
    say();
    changed();
  };
  const data = dataField((text) => edited(() => { fields.data = text; }));
  const all = { ...single, data };
  const moreHint = el('span', { class: 'hint' });

  /** Texts that depend on what stands in the fields. */
  const say = () => {
    for (const name of /** @type {('title' | 'text')[]} */ (['title', 'text'])) {
      single[name].beside.textContent = fields[name] ? t('compose.length', { n: [...fields[name]].length, most: lengths[name] }) : '';
    }
    soundFile.hidden = single.sound.control.value !== 'file';
    moreHint.textContent = [timeName(fields.ttl), fields.replaces && t('compose.replacesIt', { name: fields.replaces }),
      t(`compose.urgency.${fields.urgency}`)].filter(Boolean).join(' · ');
  };
  /** Shows the fields as they are. */
  const show = () => {
    fill(single.ttl.control, [...new Set([...times, fields.ttl])].map((value) => el('option', { value }, timeName(value))));
    for (const name of names) {
      const { control } = single[name];
      const value = name !== 'sound' || ['default', 'none'].includes(fields.sound) ? fields[name] : 'file';
      if (control.value !== value) control.value = value;
    }
    data.show(fields.data);
    if (single.sound.control.value === 'file' && soundFile.value !== fields.sound) soundFile.value = fields.sound;
    say();
  };
  for (const name of names) {
    const { control, fault } = single[name];
    const take = () => edited(() => {
      const value = control.value;
      fields[name] = name === 'sound' && value === 'file' ? soundFile.value.trim() || 'default'
        : ['title', 'text', 'subtitle', 'button'].includes(name) ? value : value.trim();
      fault('');
    });
    control.addEventListener('input', take);
    if (name === 'sound') soundFile.addEventListener('input', take);
  }
  show();
  const more = fold(t('compose.more'), moreHint, el('div', { class: 'fields' }, all.ttl.node, all.replaces.node, all.urgency.node, all.group.node, data.node));
  const first = el('div', { class: 'fields' }, names.slice(0, 8).map((name) => all[name].node));
  return {
    first, more, show,
    /**
     * The fields that these can show; those that only some can show say which.
     * @param {string[]} platforms or 'template'
     */
    offer(platforms) {
      const [isTemplate] = platforms.map((one) => one === 'template');
      first.hidden = isTemplate;
      for (const name of /** @type {FieldName[]} */ (Object.keys(all))) {
        const able = platforms.filter((platform) => fieldsOf(platform).includes(name));
        all[name].node.hidden = able.length === 0;
        if (name !== 'title' && name !== 'text') {
          all[name].beside.textContent = able.length === platforms.length ? '' : able.map(platformWord).join(', ');
        }
      }
    },
    /**
     * Says at its field what is wrong in the form, and goes to the first of these.
     * @param {Partial<Record<FieldName, string>>} more
     * @returns {boolean} whether there is something
     */
    complain(more) {
      const found = { ...faults(fields), ...more };
      const known = /** @type {FieldName[]} */ (Object.keys(all));
      const wrong = known.filter((name) => found[name] && !all[name].node.hidden);
      for (const name of known) all[name].fault(wrong.includes(name) ? t(String(found[name])) : '');
      const [one] = wrong;
      if (!one) return false;
      all[one].control.closest('details')?.setAttribute('open', '');
      all[one].control.focus();
      return true;
    },
  };
}
/**
 * Names and texts for the app, as many as wanted.
 * @param {(data: string) => void} changed
 */
function dataField(changed) {
  const rows = el('div', { class: 'stack' });
  const beside = el('span', { class: 'only' });
  const [hintID, faultID] = [freshID(), freshID()];
  const wrong = el('div', { class: 'hint bad-text', id: faultID, hidden: true });
  const pairs = () => /** @type {[string, string][]} */ ([...rows.children].map((row) => {
    const [name, text] = row.querySelectorAll('input');
    return [name.value.trim(), text.value];
  }).filter(([name, text]) => name !== '' || text !== ''));
  /** @param {string} text */
  const fault = (text) => {
    wrong.textContent = text;
    wrong.hidden = text === '';
    control.setAttribute('aria-describedby', text ? `${hintID} ${faultID}` : hintID);
  };
  const told = () => {
    fault('');
    changed(pack(pairs()));
  };
  const add = (name = '', text = '') => {
    const nameBox = input({ value: name, 'aria-label': t('compose.dataName'), placeholder: 'order', autocapitalize: 'off' });
    const textBox = input({ value: text, 'aria-label': t('compose.dataText') });
    const row = el('div', { class: 'pair' }, nameBox, textBox, button('×', () => {
      row.remove();
      told();
      adder.focus();
    }, { 'aria-label': t('compose.dataRemove'), class: 'quiet' }));
    for (const box of [nameBox, textBox]) box.addEventListener('input', told);
    rows.append(row);
    return nameBox;
  };
  const adder = button(t('compose.dataAdd'), () => add().focus(), { class: 'small-button' });
  const control = el('fieldset', { class: 'stack', 'aria-describedby': hintID }, el('legend', { class: 'unseen' }, t('compose.data')), rows, el('div', null, adder));
  // Of the group, the first that can be written into.
  control.focus = () => /** @type {HTMLElement} */ (rows.querySelector('input') ?? adder).focus();
  const node = el('div', { class: 'field full' },
    el('div', { class: 'label-row' }, el('span', { class: 'strong', 'aria-hidden': 'true' }, t('compose.data')), beside), control,
    el('div', { class: 'hint', id: hintID }, t('compose.dataHint')), wrong);
  return {
    node, control, beside, fault,
    /** @param {string} data */
    show(data) {
      if (pack(pairs()) === data) return;
      rows.replaceChildren();
      for (const [name, text] of unpack(data)) add(name, text);
    },
  };
}

// --- Properties of templates -----------------------------------------------------------------

/** Names of properties that are sentences. */
const long = new Set(['message', 'body', 'text', 'msg', 'alert', 'content', 'description']);

/**
 * A field for each property that the templates of the audience name.
 * @param {(name: string, value: string) => void} changed
 */
export function propertyForm(changed) {
  const list = el('div', { class: 'fields' });
  /** @type {Set<string>} */
  const added = new Set();
  /** @type {Map<string, ReturnType<typeof labelled<any>>>} by name in lower case */
  let shown = new Map();
  let last = /** @type {Parameters<typeof show> | null} */ (null);

  /**
   * @param {Record<string, any>} values
   * @param {Record<string, number>} uses devices by the name of a property
   * @param {number} total
   */
  function show(values, uses, total) {
    last = [values, uses, total];
    const given = new Map(Object.entries(values).map(([name, value]) => [name.toLowerCase(), { name, value }]));
    const names = [...Object.keys(uses).sort((one, other) => uses[other] - uses[one] || (one < other ? -1 : 1)),
      ...[...given.values()].map(({ name }) => name), ...added];
    if (names.length === 0) names.push('title', 'message');
    const wanted = [...new Map(names.map((name) => [name.toLowerCase(), given.get(name.toLowerCase())?.name ?? name])).values()].slice(0, 60);
    if (wanted.map((name) => name.toLowerCase()).join() !== [...shown.keys()].join()) {
      const active = document.activeElement?.id;
      const before = shown;
      shown = new Map(wanted.map((name) => {
        const key = name.toLowerCase();
        const known = before.get(key);
        if (known) return [key, known];
        const control = long.has(key) ? el('textarea', { class: 'message', spellcheck: 'true' }) : input({ spellcheck: 'true' });
        const made = labelled(name, control, { class: long.has(key) || key === 'title' ? 'full' : '' });
        control.addEventListener('input', () => changed(name, control.value));
        return [key, made];
      }));
      fill(list, [...shown.values()].map(({ node }) => node));
      if (active) document.getElementById(active)?.focus();
    }
    for (const [key, { control, beside }] of shown) {
      const value = given.get(key)?.value;
      const text = value === undefined || value === null ? '' : String(value);
      if (control.value !== text) control.value = text;
      beside.textContent = total > 0 ? t('compose.usedBy', { n: uses[key] ?? 0, total }) : '';
    }
  }
  const add = button(t('compose.addProperty'), async () => {
    const name = await /** @type {Promise<string | null>} */ (dialog(t('compose.addProperty'), (close) => {
      const box = input({ required: true, autofocus: true, maxlength: 200 });
      return [form(() => close(box.value.trim()), field(t('compose.property'), box),
        el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), submitButton(t('compose.addProperty'))))];
    }));
    if (!name || !last) return;
    added.add(name);
    show(...last);
    shown.get(name.toLowerCase())?.control.focus();
  }, { class: 'small-button' });
  return {
    node: el('div', { class: 'stack' }, el('p', { class: 'hint' }, t('compose.templateHint')), list, el('div', null, add)), show,
    /** @param {string} text */
    complain(text) {
      const [first] = shown.values();
      first?.fault(text);
      first?.control.focus();
    },
    clear: () => { for (const { fault } of shown.values()) fault(''); },
  };
}
