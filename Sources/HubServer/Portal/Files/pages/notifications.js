// @ts-check
// The notifications of a hub, newest first.

import { actorsOf } from '../activity.js';
import * as api from '../api.js';
import { allStates, isOver, outcomeBadges, stateBadge, stateName } from '../outcomes.js';
import { formatName } from '../platforms.js';
import { t } from '../text.js';
import { calmly, data, el, field, fill, heading, input, link, moment, nothing, pagedList, pause, select, short } from '../view.js';

const kinds = ['single', 'tag', 'broadcast', 'direct', 'schedule'];

/** @param {import('../app.js').Page} page */
export function show(page) {
  const list = el('div');
  const maySend = api.role(page.hub) !== 'viewer';
  let listed = new AbortController();
  page.signal.addEventListener('abort', () => listed.abort());
  const value = (/** @type {string} */ name) => page.query.get(name) ?? '';

  const draw = () => {
    listed.abort();
    listed = new AbortController();
    const { signal } = listed;
    // A date means the whole day, in the viewer's time zone.
    const from = beginning(value('from'), 0);
    const until = beginning(value('until'), 86_400_000);
    const query = { state: value('state'), kind: value('kind'), tag: value('tag'), from, until };
    /** @type {Map<string, {state: HTMLElement, outcomes: HTMLElement}>} */
    const running = new Map();
    /** @param {any} item */
    const parts = (item) => {
      const cells = running.get(item.notificationId) ?? { state: el('span'), outcomes: el('span') };
      fill(cells.state, stateBadge(item.state));
      fill(cells.outcomes, Object.keys(item.outcomes).length ? outcomeBadges(item.outcomes) : '–');
      if (isOver(item.state) || item.state === 'Scheduled') running.delete(item.notificationId);
      else running.set(item.notificationId, cells);
      return cells;
    };
    void keepUp(running, parts, page.hub, signal);
    const isNarrow = [...Object.values(query), value('actor')].some((part) => part !== '');
    list.replaceChildren(pagedList({
      caption: t('notifications.title'), signal,
      empty: isNarrow ? nothing(t('notifications.noMatch'), el('p', null, t('notifications.noMatchAdvice')))
        : nothing(t('notifications.none'), maySend && el('div', { class: 'buttons' }, el('a', { class: 'as-button main', href: page.to('compose') }, t('compose.title')))),
      load: async (from) => {
        const found = await api.list(api.at(page.hub, 'messages'), 'notifications', query, from, signal);
        const known = await actorsOf(page.hub, found.items, value('actor'), signal);
        for (const item of found.items) item.actor = known.get(item.notificationId);
        return value('actor') ? { ...found, items: found.items.filter((item) => item.actor === value('actor')) } : found;
      },
      columns: [
        { head: t('notifications.when'), cell: (item) => link(page.to('notifications', item.notificationId), moment(item.dueTime ?? item.enqueueTime)) },
        { head: t('notifications.state'), cell: (item) => (item.parts = parts(item)).state },
        { head: t('notifications.kind'), cell: (item) => [t(`notifications.kind.${item.kind}`), ' ', el('span', { class: 'soft' }, formatName(item.format))] },
        { head: t('notifications.to'), cell: (item) => item.tags ? el('span', { class: 'mono' }, data(item.tags)) : el('span', { class: 'soft' }, item.kind === 'direct' ? '–' : t('notifications.everyone')) },
        { head: t('notifications.outcomes'), cell: (item) => item.parts.outcomes },
        { head: t('notifications.actor'), cell: (item) => item.actor ? short(item.actor, 20) : '–' },
      ],
    }));
  };
  /**
   * @param {string} name
   * @param {string} given
   */
  const set = (name, given) => {
    if (given) page.query.set(name, given); else page.query.delete(name);
    page.keep({ [name]: given });
    draw();
  };
  const tag = input({ value: value('tag'), placeholder: 'news' });
  const actor = input({ value: value('actor'), placeholder: 'user/ann' });
  const calm = calmly(set);
  tag.addEventListener('input', () => calm('tag', tag.value.trim()));
  actor.addEventListener('input', () => calm('actor', actor.value.trim()));
  const day = (/** @type {string} */ name) => {
    const box = el('input', { type: 'date', value: value(name) });
    box.addEventListener('change', () => set(name, box.value));
    return box;
  };

  page.main.append(
    heading(t('notifications.title'), maySend && el('a', { class: 'as-button main', href: page.to('compose') }, t('compose.title'))),
    el('div', { class: 'row filters', role: 'search', 'aria-label': t('notifications.filter') },
      field(t('notifications.state'), select([['', t('notifications.any')], ...allStates.map((state) => /** @type {[string, string]} */ ([state, stateName(state)]))], value('state'), (given) => set('state', given))),
      field(t('notifications.kind'), select([['', t('notifications.any')], ...kinds.map((kind) => /** @type {[string, string]} */ ([kind, t(`notifications.kind.${kind}`)]))], value('kind'), (given) => set('kind', given))),
      field(t('notifications.tag'), tag), field(t('notifications.actor'), actor),
      field(t('notifications.from'), day('from')), field(t('notifications.until'), day('until'))),
    list);
  draw();
}

/**
 * The start of a day, or the given time later; '' for no date or an invalid one.
 * @param {string} day
 * @param {number} later in ms
 */
function beginning(day, later) {
  const time = Date.parse(day + 'T00:00:00');
  return Number.isNaN(time) ? '' : new Date(time + later).toISOString();
}

/**
 * Rows of notifications in progress are updated.
 * @param {Map<string, unknown>} running by id
 * @param {(item: any) => void} update
 * @param {string} hub
 * @param {AbortSignal} signal
 */
async function keepUp(running, update, hub, signal) {
  try {
    for (;;) {
      await pause(3000, signal);
      if (running.size === 0 || document.hidden) continue;
      const { items } = await api.list(api.at(hub, 'messages'), 'notifications', { $top: 100 }, null, signal);
      for (const item of items) if (running.has(item.notificationId)) update(item);
    }
  } catch {
    // Page left, or server unreachable; the frame shows that.
  }
}
