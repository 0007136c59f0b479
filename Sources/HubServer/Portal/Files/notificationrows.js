// @ts-check
// Notifications in a list, the message first: what it says, whom it went to, what came of it, who sent it.

import { whoseTag } from './devices.js';
import { dress } from './dress.js';
import { isOver, kindOf, stateBadge, total } from './outcomes.js';
import { ago, day, has, hour, t, time } from './text.js';
import { badge, el, fill, moment, ratio } from './view.js';

/**
 * @typedef {object} Summary
 * @property {string} notificationId
 * @property {string} state
 * @property {string} kind
 * @property {string} format
 * @property {string} [tags]
 * @property {string} [title]
 * @property {string} [text]
 * @property {string} [textState]
 * @property {string} enqueueTime
 * @property {string} [dueTime]
 * @property {Record<string, number>} outcomes
 * @property {string} [actor]
 */

/**
 * A text with the places where a search found something.
 * @param {string} text
 * @param {string} search
 */
function marked(text, search) {
  const at = search ? text.toLowerCase().indexOf(search.toLowerCase()) : -1;
  return el('bdi', null, at < 0 ? text : [text.slice(0, at), el('mark', null, text.slice(at, at + search.length)), text.slice(at + search.length)]);
}

/**
 * What a notification says, for a list or a heading.
 * @param {Pick<Summary, 'title' | 'text' | 'textState' | 'notificationId'>} item
 * @returns {{head: string, rest: string, isSaid: boolean}}
 */
export function wordsOf({ title, text, textState, notificationId }) {
  // A link needs words that can be read.
  if (title?.trim()) return { head: title, rest: text ?? '', isSaid: true };
  if (text?.trim()) return { head: text, rest: '', isSaid: true };
  return textState && has(`list.${textState}`) ? { head: t(`list.${textState}`), rest: has(`list.${textState}Hint`) ? t(`list.${textState}Hint`) : '', isSaid: false }
    : { head: notificationId, rest: '', isSaid: false };
}

/**
 * Who sent it, in words; the raw name is its title.
 * @param {string | undefined} actor
 */
export function senderOf(actor) {
  if (!actor) return '–';
  const [kind, ...rest] = actor.split('/');
  const name = rest.join('/');
  const words = kind === 'user' ? name.charAt(0).toUpperCase() + name.slice(1)
    : kind !== 'policy' ? actor : has(`list.key.${name}`) ? t(`list.key.${name}`) : t('list.key', { name });
  return el('bdi', { title: actor }, words);
}

/** @param {Summary} item */
function audienceOf({ kind, tags }) {
  if (tags && whoseTag(tags).user) return el('span', { title: tags }, t('list.person'));
  if (kind === 'single') return el('span', { title: tags }, t('list.device'));
  if (tags) return el('bdi', { class: 'chip' }, tags);
  return el('span', null, t(kind === 'direct' ? 'list.handle' : 'compose.to.everyone'));
}

/** @param {Summary} item */
function outcomeOf({ state, dueTime, outcomes }) {
  const all = total(outcomes);
  const well = outcomes.Success ?? 0;
  const ill = Object.entries(outcomes).reduce((sum, [name, count]) => sum + (kindOf(name) === 'bad' ? count : 0), 0);
  if (state === 'Scheduled') return [el('span', null, stateBadge(state), ' ', dueTime ? ago(dueTime) : '')];
  const isRunning = !isOver(state);
  if (all === 0) return [el('span', null, state === 'NoTargetFound' ? badge(t('list.nobody')) : stateBadge(state))];
  // What failed is seen, however little it is.
  const bad = ill === 0 ? 0 : Math.max(2, ill / all * 100);
  const good = Math.min(well / all * 100, 100 - bad);
  return [
    ratio([['s-good', good], ['s-bad', bad]]),
    el('span', null, isRunning && [el('span', { class: 'going' }, t('list.running')), ' · '],
      t('list.of', { n: well, all }), ill > 0 && [' · ', el('span', { class: 'fault' }, t('notification.failed', { n: ill }))],
      state === 'Canceled' || state === 'Abandoned' ? [' · ', stateBadge(state)] : ''),
  ].flat();
}

/** @param {string} at relative for an hour, then the time of the day, then the date with it */
function sentAt(at) {
  const date = new Date(at);
  const age = Date.now() - date.getTime();
  if (Math.abs(age) < 3_600_000 && !(age < 60_000 && age > -5000)) return moment(at);
  const text = Number.isNaN(age) ? at : Math.abs(age) < 3_600_000 ? t('list.justNow')
    : date.toDateString() === new Date().toDateString() ? hour(at) : `${day(at)}, ${hour(at)}`;
  return el('time', { class: 'hint', datetime: at, title: Number.isNaN(age) ? at : time(at) }, text);
}

/** @param {Summary} item */
function groupOf({ state, enqueueTime }) {
  if (state === 'Scheduled') return t('list.coming');
  const date = new Date(enqueueTime);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86_400_000);
  return Number.isNaN(days) ? '' : days <= 0 ? t('list.today') : days === 1 ? t('list.yesterday') : day(enqueueTime);
}

/**
 * The rows, under the days on which they were sent; `add` appends more, `update` draws one again that has gone on.
 * @param {{to: (...segments: string[]) => string, items: Summary[], search?: string, isBrief?: boolean,
 *   came?: (item: Summary) => import('./view.js').Child | import('./view.js').Child[]}} options `came`: the outcome, unless it is that of all devices
 */
export function notificationRows({ to, items, search = '', isBrief = false, came: outcome = outcomeOf }) {
  dress('list.css');
  const node = el('div', { class: isBrief ? '' : 'sheet' });
  /** @type {Map<string, HTMLElement>} by heading */
  const groups = new Map();
  /** @type {Map<string, HTMLElement>} by id: what changes while it is delivered */
  const cells = new Map();

  /** @param {Summary} item */
  function row(item) {
    const { head, rest, isSaid } = wordsOf(item);
    const came = el('div', { class: 'came' }, outcome(item));
    cells.set(item.notificationId, came);
    const all = total(item.outcomes);
    return el('li', null,
      el('div', { class: 'said-text' },
        el('a', { class: 'whole', href: to('notifications', item.notificationId) }, isSaid ? marked(head, search) : el('span', { class: 'unkept' }, el('bdi', null, head))),
        rest && el('div', { class: 'text' }, isSaid ? marked(rest, search) : rest)),
      !isBrief && el('div', { class: 'to' }, audienceOf(item), all > 0 && el('span', { class: 'hint' }, t('list.devices', { n: all }))),
      came,
      el('div', { class: 'by' }, !isBrief && senderOf(item.actor), ' ', sentAt(item.dueTime ?? item.enqueueTime)));
  }
  /** @param {Summary[]} more */
  function add(more) {
    for (const item of more) {
      const name = isBrief ? '' : groupOf(item);
      let list = groups.get(name);
      if (!list) {
        list = el('ol', { class: `rows${isBrief ? ' brief' : ''}${outcome === outcomeOf ? '' : ' ended'}` });
        groups.set(name, list);
        const part = [name && el('h2', null, name), list];
        if (item.state === 'Scheduled' && !isBrief) node.prepend(...part.filter((one) => one !== ''));
        else node.append(...part.filter((one) => one !== ''));
      }
      list.append(row(item));
    }
  }
  add(items);
  return Object.assign(node, {
    add,
    /** @param {Summary} item */
    update(item) {
      const cell = cells.get(item.notificationId);
      if (cell) fill(cell, outcome(item));
    },
  });
}
