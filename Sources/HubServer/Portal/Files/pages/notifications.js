// @ts-check
// The notifications of a hub, newest first, by what they say.

import { actorsOf } from '../activity.js';
import * as api from '../api.js';
import { dress } from '../dress.js';
import { notificationRows } from '../notificationrows.js';
import { allStates, isOver, stateName } from '../outcomes.js';
import { t } from '../text.js';
import { bare, button, calmly, el, field, fill, heading, input, nothing, pagedList, pause, select, svg } from '../view.js';

const kinds = ['single', 'tag', 'broadcast', 'direct', 'schedule'];
const names = ['kind', 'tag', 'actor', 'from', 'until'];

/** @param {import('../app.js').Page} page */
export function show(page) {
  dress('list.css');
  const list = el('div');
  const maySend = api.role(page.hub) !== 'viewer';
  let listed = new AbortController();
  page.signal.addEventListener('abort', () => listed.abort());
  const value = (/** @type {string} */ name) => page.query.get(name) ?? '';
  const compose = () => el('a', { class: 'as-button main', href: page.to('compose') }, t('compose.title'));

  const draw = () => {
    listed.abort();
    listed = new AbortController();
    const { signal } = listed;
    drawApplied();
    // A date means the whole day, in the viewer's time zone.
    const from = beginning(value('from'), 0);
    const until = beginning(value('until'), 86_400_000);
    const search = value('q');
    const query = { state: value('state'), kind: value('kind'), tag: value('tag'), q: search, from, until };
    /** @type {Set<string>} */
    const running = new Set();
    /** @type {ReturnType<typeof notificationRows> | null} */
    let rows = null;
    const watch = (/** @type {any[]} */ items) => {
      for (const item of items) if (!isOver(item.state) && item.state !== 'Scheduled') running.add(item.notificationId);
    };
    void keepUp(running, (item) => rows?.update(item), page.hub, signal);
    let unsearched = 0;
    const passed = el('p', { class: 'hint', role: 'status' });
    const isNarrow = [...Object.values(query), value('actor')].some((part) => part !== '');
    list.replaceChildren(pagedList({
      caption: t('notifications.title'), signal,
      empty: search ? nothing(t('list.noHit', { q: search }), el('p', null, t('list.noHitAdvice')))
        : isNarrow ? nothing(t('notifications.noMatch'), el('p', null, t('notifications.noMatchAdvice')))
          : nothing(t('notifications.none'), maySend && el('div', { class: 'buttons' }, compose())),
      load: async (from) => {
        const found = await api.list(api.at(page.hub, 'messages'), 'notifications', query, from, signal);
        const known = await actorsOf(page.hub, found.items, value('actor'), signal);
        unsearched += found.unsearched;
        passed.textContent = unsearched ? t('list.unsearched', { n: unsearched }) : '';
        for (const item of found.items) item.actor = known.get(item.notificationId);
        const items = value('actor') ? found.items.filter((item) => item.actor === value('actor')) : found.items;
        watch(items);
        return { ...found, items };
      },
      view: (items) => rows = notificationRows({ to: page.to, items, search }),
    }), passed);
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
  const calm = calmly(set, 300);

  // --- The search, and what narrows the list ---------------------------------------------------

  const search = input({ type: 'search', value: value('q'), placeholder: t('list.search'), 'aria-label': t('list.search'), maxlength: 200 });
  search.addEventListener('input', () => calm('q', search.value.trim()));
  const states = () => bare(t('notifications.state'), [['', t('list.all')], ['Scheduled', stateName('Scheduled')], ['Enqueued,Processing', t('list.running')]],
    value('state'), (given) => { stateBox.value = given; set('state', given); });
  const stateChoice = el('div');
  const stateBox = select([['', t('notifications.any')], ['Enqueued,Processing', t('list.running')],
    ...allStates.map((state) => /** @type {[string, string]} */ ([state, stateName(state)]))], value('state'), (given) => {
    set('state', given);
    fill(stateChoice, states());
  });
  const tag = input({ value: value('tag'), placeholder: 'news' });
  const actor = input({ value: value('actor'), placeholder: 'user/ann' });
  tag.addEventListener('input', () => calm('tag', tag.value.trim()));
  actor.addEventListener('input', () => calm('actor', actor.value.trim()));
  const dayBox = (/** @type {string} */ name) => {
    const box = el('input', { type: 'date', value: value(name) });
    box.addEventListener('change', () => set(name, box.value));
    return box;
  };
  /** @type {Record<string, HTMLInputElement | HTMLSelectElement>} */
  const boxes = {
    kind: select([['', t('notifications.any')], ...kinds.map((kind) => /** @type {[string, string]} */ ([kind, t(`notifications.kind.${kind}`)]))], value('kind'), (given) => set('kind', given)),
    tag, actor, from: dayBox('from'), until: dayBox('until'),
  };
  const folded = el('div', { class: 'folded row', id: 'list-filters', hidden: true },
    field(t('notifications.state'), stateBox), ...names.map((name) => field(t(`notifications.${name}`), boxes[name])));
  const filters = button(t('list.filters'), () => {
    folded.hidden = !folded.hidden;
    filters.setAttribute('aria-expanded', String(!folded.hidden));
  }, { 'aria-expanded': 'false', 'aria-controls': folded.id });
  const applied = el('div', { class: 'applied' });
  function drawApplied() {
    const given = names.filter((name) => value(name));
    applied.hidden = given.length === 0;
    filters.textContent = given.length ? t('list.filtersOn', { n: given.length }) : t('list.filters');
    fill(applied, given.map((name) => button(`${t(`notifications.${name}`)}: ${name === 'kind' ? t(`notifications.kind.${value(name)}`) : value(name)} ×`, () => {
      boxes[name].value = '';
      set(name, '');
    }, { 'aria-label': t('list.remove', { name: t(`notifications.${name}`) }) })));
  }

  fill(stateChoice, states());
  page.main.append(
    heading(t('notifications.title'), maySend && compose()),
    el('div', { class: 'find', role: 'search', 'aria-label': t('notifications.filter') },
      el('div', { class: 'search' }, svg('svg', { class: 'symbol', viewBox: '0 0 16 16', 'aria-hidden': 'true' }, svg('path', { d: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.500 4.500 0 0 0 0-9zM10.300 10.300 14 14' })),
        search, el('kbd', { 'aria-hidden': 'true' }, '/')), stateChoice, filters),
    folded, applied, list);
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
 * @param {Set<string>} running ids
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
      for (const item of items) {
        if (!running.has(item.notificationId)) continue;
        update(item);
        if (isOver(item.state)) running.delete(item.notificationId);
      }
    }
  } catch {
    // Page left, or server unreachable; the frame shows that.
  }
}
