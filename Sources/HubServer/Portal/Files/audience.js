// @ts-check
// Whom a message reaches: everyone, an expression of tags, a person, a device or a raw handle, and the number of
// their devices, counted after the last key.

import * as api from './api.js';
import { deviceTag, mine, userTag, whoseTag } from './devices.js';
import { replaced, sentLately, unknownTag } from './lately.js';
import { platformWord } from './platforms.js';
import { number, t } from './text.js';
import { bare, button, calmly, el, failure, fill, input, labelled, ratio } from './view.js';

/** @typedef {'everyone' | 'tags' | 'person' | 'device' | 'mine'} Target */
/** @typedef {{target: Target, tags: string, person: string, device: string, handle: string}} Whom `handle`: in place of `device` */
/** @typedef {{isFor: string | null, counts: {platform: string, template: string | null, devices: number}[], isAbout: boolean}} Counted */

/** @type {Target[]} */
const targets = ['everyone', 'tags', 'person', 'device', 'mine'];

/**
 * As an address gives it.
 * @param {URLSearchParams} query
 * @returns {Whom}
 */
export function whomIn(query) {
  const tags = query.get('tags') ?? '';
  const handle = query.get('handle') ?? '';
  const { user: person, device } = whoseTag(tags);
  const target = handle || device ? 'device' : person ? 'person' : query.get('to') === 'everyone' ? 'everyone' : 'tags';
  return { target, tags: person || device ? '' : tags, person, device, handle };
}

/**
 * The hub's expression; null for everyone, '' for nobody yet.
 * @param {string} hub
 * @param {Whom} whom
 */
function expressionOf(hub, { target, tags, person, device }) {
  if (target === 'everyone') return null;
  if (target === 'mine') return mine(hub);
  if (target === 'tags') return tags;
  return target === 'person' ? person && userTag(person) : device && deviceTag(device);
}

/**
 * @param {{hub: string, signal: AbortSignal, whom: Whom, changed: () => void, counted: () => void}} options
 *   `changed` by the person; `counted`: there is a number, or a fault
 */
export function audience({ hub, signal, whom, changed, counted }) {
  /** @type {Counted | null} */
  let known = null;
  let fault = '';
  let asked = new AbortController();

  const tags = labelled(t('send.tags'), input({ value: whom.tags, class: 'mono', autocapitalize: 'off', placeholder: 'news && !muted' }), { hint: t('send.tagsHint') });
  const person = labelled(t('compose.person'), input({ value: whom.person, autocapitalize: 'off', placeholder: 'ann' }), { hint: t('compose.personHint') });
  const device = labelled(t('compose.device'), input({ value: whom.device, autocapitalize: 'off' }), { hint: t('compose.deviceHint') });
  const handle = labelled(t('send.handle'), input({ value: whom.handle, class: 'mono', autocapitalize: 'off' }), { hint: t('send.handleHint') });
  const raw = el('details', { open: whom.handle !== '' }, el('summary', null, t('compose.rawHandle')), handle.node);
  const noMine = el('p', { class: 'hint' }, t('compose.mineHint'));
  const reach = el('div', { role: 'status' });
  const trouble = el('div');
  const lately = el('p', { class: 'hint chips' });
  const meant = el('div', { role: 'status' });
  /** @param {string} expression */
  const take = (expression) => {
    whom.tags = expression;
    tags.control.value = expression;
    tags.control.focus();
    recount();
    changed();
  };
  let isLatelyAsked = false;
  const offerLately = async () => {
    if (isLatelyAsked || whom.target !== 'tags') return;
    isLatelyAsked = true;
    const found = await sentLately(hub, signal).catch(() => []);
    fill(lately, found.length > 0 && t('compose.lately'), found.map((expression) =>
      button(expression, () => take(expression), { class: 'small-button mono' })));
  };
  /**
   * Of an expression that nobody satisfies: the tag that nobody has, and the one that may be meant.
   * @param {string} expression
   * @param {AbortSignal} asked
   */
  const offerNear = async (expression, asked) => {
    const found = await unknownTag(hub, expression, asked).catch(() => null);
    if (!found || asked.aborted) return;
    const { tag, near, devices } = found;
    fill(meant, el('p', { class: 'hint' }, near === null ? t('compose.unknownTag', { tag }) : t('compose.nearTag', { tag, near, n: devices }), near !== null && ' ',
      near !== null && button(t('compose.useTag', { near }), () => take(replaced(expression, tag, near)), { class: 'small-button' })));
  };

  const count = async () => {
    asked.abort();
    const own = asked = new AbortController();
    signal.addEventListener('abort', () => own.abort(), { once: true });
    const isFor = expressionOf(hub, whom);
    try {
      const { counts, estimate } = await api.json(api.at(hub, 'audience'), { query: { tags: isFor }, signal: own.signal });
      if (own.signal.aborted) return;
      known = { isFor, counts, isAbout: Boolean(estimate) };
      if (counts.length === 0 && whom.target === 'tags' && isFor) void offerNear(isFor, own.signal);
    } catch (error) {
      if (own.signal.aborted) return;
      if (error instanceof api.APIError && error.status === 400) fault = error.message;
      else fill(trouble, failure(error, recount));
    }
    draw();
    counted();
  };
  const calm = calmly(() => void count(), 300);
  /** Counts again; until then the number is not known. */
  function recount() {
    asked.abort();
    known = null;
    fault = '';
    fill(trouble);
    fill(meant);
    draw();
    if (isCounting()) calm();
    return counted();
  }
  function draw() {
    tags.node.hidden = lately.hidden = whom.target !== 'tags';
    void offerLately();
    person.node.hidden = whom.target !== 'person';
    device.node.hidden = whom.target !== 'device';
    raw.hidden = whom.target !== 'device';
    noMine.hidden = whom.target !== 'mine';
    const [field] = { tags: [tags], person: [person], device: [device], everyone: [], mine: [] }[whom.target];
    for (const one of [tags, person, device]) one.fault(one === field ? fault : '');
    if (fault && !field) fill(trouble, el('p', { class: 'hint bad-text' }, fault));
    reach.hidden = !known && !isCounting();
  }
  const isCounting = () => !known && !fault && !trouble.firstChild && !(whom.target === 'device' && whom.handle) && expressionOf(hub, whom) !== '';

  for (const [name, one] of /** @type {[('tags' | 'person' | 'device' | 'handle'), typeof tags][]} */ (
    Object.entries({ tags, person, device, handle }))) {
    one.control.addEventListener('input', () => {
      whom[name] = one.control.value.trim();
      handle.fault('');
      recount();
      changed();
    });
  }
  const node = el('div', { class: 'stack' },
    bare(t('compose.sendTo'), targets.map((name) => [name, t(`compose.to.${name}`)]), whom.target, (name) => {
      whom.target = /** @type {Target} */ (name);
      recount();
      changed();
    }),
    tags.node, lately, person.node, device.node, raw, noMine, reach, meant, trouble);
  draw();
  return {
    node, recount, whom, isCounting,
    known: () => known,
    handle: () => whom.target === 'device' ? whom.handle : '',
    expression: () => expressionOf(hub, whom),
    /** Shows the number in the form of the message. */
    show: (/** @type {(Node | null | false)[]} */ ...children) => fill(reach, children),
    /**
     * Says what is missing, at its field; false if nothing is.
     * @param {string} [handleFault]
     */
    complain(handleFault = '') {
      const [one, text] = whom.target === 'device' && whom.handle ? [handle, handleFault]
        : expressionOf(hub, whom) !== '' ? [{ tags, person, device }[/** @type {'tags'} */ (whom.target)] ?? null, fault]
          : { tags: [tags, t('send.needTags')], person: [person, t('compose.needPerson')], device: [device, t('compose.needDevice')], mine: [null, t('compose.noMine')], everyone: [null, ''] }[whom.target];
      if (!text) return false;
      if (one && typeof one !== 'string') {
        one.fault(String(text));
        one.control.focus();
      }
      return true;
    },
  };
}

/**
 * The devices by platform that a send reaches, the most first.
 * @param {Counted['counts']} counts
 * @param {boolean} isTemplate
 * @param {string[]} [chosen] platforms
 */
export function reached(counts, isTemplate, chosen) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const count of counts) {
    if ((count.template !== null) !== isTemplate || chosen && !chosen.includes(count.platform)) continue;
    sums.set(count.platform, (sums.get(count.platform) ?? 0) + count.devices);
  }
  const rows = [...sums].sort((one, other) => other[1] - one[1]);
  return { rows, total: rows.reduce((all, row) => all + row[1], 0) };
}

/**
 * @param {ReturnType<typeof reached>} found
 * @param {boolean} isAbout
 * @param {...(Node | string | null | false)} more
 */
export function reachView({ rows, total }, isAbout, ...more) {
  return el('div', { class: 'reach' },
    el('p', { class: 'figure' }, t(isAbout ? 'compose.about' : 'compose.exactly', { n: total }), ' ', el('small', null, t('compose.getIt', { n: total }))),
    total > 0 && ratio(rows.map(([, n], index) => [`s-${index}`, n / total * 100])),
    rows.length > 0 && el('ul', null, rows.map(([platform, n], index) =>
      el('li', { class: `s-${index}` }, el('span', { class: 'swatch' }), platformWord(platform), ' ', el('b', null, number(n))))),
    ...more);
}
