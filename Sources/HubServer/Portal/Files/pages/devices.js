// @ts-check
// The devices of a hub: searched by part of an id, a tag or a user, or found by handle.

import * as api from '../api.js';
import { reached } from '../audience.js';
import { installationColumns, registrationColumns, registrations } from '../devices.js';
import { platformName, platforms } from '../platforms.js';
import { number, t } from '../text.js';
import { calmly, choice, el, field, fill, form, heading, input, nothing, pagedList, section, select, submitButton, table } from '../view.js';

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('devices.title'));
  const kind = page.query.get('list') === 'registrations' ? 'registrations' : 'installations';
  const isWhole = kind === 'registrations';
  const found = el('div', { class: 'stack' });
  const said = isWhole ? t('devices.byTag') : t('devices.searchFor');
  const text = input({ value: page.query.get('find') ?? '', type: 'search', autocapitalize: 'off', maxlength: 200 });
  const handle = input({ type: 'search', autocapitalize: 'off', maxlength: 8000 });
  const platform = select([['', t('devices.every')], ...Object.keys(platforms).map(
    (key) => /** @type {[string, string]} */ ([key, platformName(key)]))],
  page.query.get('platform') ?? '', () => search());
  const expired = select([['', t('devices.every')], ['false', t('devices.alive')], ['true', t('devices.dead')]],
    page.query.get('expired') ?? '', () => search());
  /**
   * Of how many; asked once, as a hub with millions counts for a while.
   * @type {ReturnType<typeof howMany> | undefined}
   */
  let all;

  const search = () => {
    page.keep({ find: text.value.trim(), platform: platform.value, expired: expired.value, list: isWhole ? kind : null });
    return list();
  };
  let listed = new AbortController();
  page.signal.addEventListener('abort', () => listed.abort());
  const list = () => {
    // What was searched for before is not waited for, here or in the hub.
    listed.abort();
    listed = new AbortController();
    const { signal } = listed;
    const value = text.value.trim();
    if (isWhole) return found.replaceChildren(pagedList({
      caption: t('devices.registrations'), columns: registrationColumns(page), signal, empty: t('devices.noneFound'),
      load: (from) => registrations(page.hub, value, from, signal),
    }));
    const isNarrow = Boolean(value || platform.value || expired.value);
    if (isNarrow) all ??= howMany(page);
    found.replaceChildren(pagedList({
      caption: t('devices.title'), columns: installationColumns(page), signal, of: isNarrow ? all : undefined,
      empty: isNarrow ? nothing(t('devices.noneFound'), value ? el('p', null, t('devices.searchAdvice')) : '')
        : nothing(t('devices.none'), el('p', null, t('devices.noneAdvice')), el('code', null, 'belfry phone --tags news')),
      load: (from) => api.list(api.at(page.hub, 'installations'), 'installations', {
        search: value, platform: platform.value, expired: expired.value,
      }, from, signal),
    }));
  };
  if (!isWhole) {
    const calm = calmly(search, 300);
    text.addEventListener('input', () => calm());
  }
  const go = el('div', { class: 'buttons' }, submitButton(t('devices.search')));
  page.main.append(
    heading(t('devices.title')),
    section(t('devices.find'),
      form(search, el('div', { class: 'row' }, isWhole ? field(said, text, t('devices.hint.tag')) : field(said, text),
        !isWhole && [field(t('devices.platform'), platform), field(t('devices.state'), expired)], go)),
      el('details', null, el('summary', null, t('devices.byHandle')),
        // A handle is secret: keep it out of the browser's history.
        form(async () => fill(found, await byHandle(page, handle.value.trim())),
          el('div', { class: 'row' }, field(t('devices.what'), handle, t('devices.hint.handle')), el('div', { class: 'buttons' }, submitButton(t('devices.searchHandle'))))))),
    choice(t('devices.list'), [
      ['installations', t('devices.installations')], ['registrations', t('devices.registrations')],
    ], kind, (value) => page.go(page.to('devices') + (value === 'installations' ? '' : '?list=registrations'))),
    found);
  list();
}

/**
 * How many devices the hub has, also in words.
 * @param {import('../app.js').Page} page
 */
async function howMany(page) {
  const { counts, estimate } = await api.json(api.at(page.hub, 'audience'), { signal: page.signal });
  const { total } = reached(counts, false);
  return { all: total, said: estimate ? t('compose.about', { n: total }) : number(total) };
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} handle
 */
async function byHandle(page, handle) {
  const reply = await api.json(api.at(page.hub, 'devices', 'search'), { method: 'POST', body: { handle }, signal: page.signal });
  const { installations = [], registrations: others = [] } = reply;
  if (installations.length + others.length === 0) {
    return [nothing(t('devices.noneFound'), el('p', null, t('devices.wholeHandle')))];
  }
  return [
    installations.length > 0 && section(t('devices.installations'), table(t('devices.installations'), installationColumns(page), installations)),
    others.length > 0 && section(t('devices.registrations'), table(t('devices.registrations'), registrationColumns(page), others)),
  ];
}
