// @ts-check
// The activity log: actor, action, time and address.

import * as api from '../api.js';
import { has, t } from '../text.js';
import { badge, data, el, field, form, heading, input, moment, nothing, pagedList, section, select, short, submitButton } from '../view.js';

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('activity.title'));
  const place = el('div');
  const actor = input({ value: page.query.get('actor') ?? '', type: 'search', autocapitalize: 'off' });
  const action = input({ value: page.query.get('action') ?? '', type: 'search', autocapitalize: 'off' });
  const since = select([['', t('activity.always')], ['1', t('activity.hour')], ['24', t('activity.day')], ['168', t('activity.week')]],
    page.query.get('hours') ?? '', () => search());
  const search = () => {
    page.keep({ actor: actor.value.trim(), action: action.value.trim(), hours: since.value });
    const from = since.value ? new Date(Date.now() - Number(since.value) * 3_600_000).toISOString() : '';
    place.replaceChildren(pagedList({
      caption: t('activity.title'), signal: page.signal, empty: nothing(t('activity.none'), el('p', null, t('activity.noneAdvice'))),
      load: (next) => api.list(page.hub ? api.at(page.hub, 'activity') : '/$activity', 'activity', {
        actor: actor.value.trim(), action: action.value.trim(), from,
      }, next, page.signal),
      columns: [
        { head: t('activity.when'), cell: (item) => moment(item.time) },
        { head: t('activity.actor'), cell: (item) => [data(item.actor), el('div', { class: 'hint' }, has(`activity.via.${item.via}`) ? t(`activity.via.${item.via}`) : data(item.via))] },
        ...(page.hub ? [] : [{ head: t('activity.hub'), cell: (/** @type {any} */ item) => data(item.hub) }]),
        { head: t('activity.action'), cell: (item) => data(item.action) },
        { head: t('activity.object'), cell: (item) => short(item.object, 30) },
        { head: t('activity.address'), cell: (item) => data(item.address) },
        { head: t('activity.status'), cell: (item) => item.status ? badge(String(item.status), item.status < 400 ? 'good' : 'bad') : '–' },
      ],
    }));
  };
  page.main.append(heading(t('activity.title')), section(t('activity.filter'), form(search, el('div', { class: 'row' },
    field(t('activity.actor'), actor, t('activity.actorHint')), field(t('activity.action'), action), field(t('activity.since'), since),
    el('div', { class: 'buttons' }, submitButton(t('activity.search')))))), place);
  search();
}
