// @ts-check
// The devices of a hub: found by installation, user, tag, platform, or handle.

import * as api from '../api.js';
import { installationColumns, registrationColumns, registrations } from '../devices.js';
import { platformName, platforms } from '../platforms.js';
import { t } from '../text.js';
import { choice, el, field, fill, form, heading, input, nothing, pagedList, section, select, submitButton, table } from '../view.js';

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('devices.title'));
  const kind = page.query.get('list') === 'registrations' ? 'registrations' : 'installations';
  // The hub lists registrations by tag only.
  const ways = kind === 'registrations' ? ['tag', 'handle'] : ['installation', 'user', 'tag', 'handle'];
  const by = ways.find((way) => way === page.query.get('by')) ?? ways[0];
  const found = el('div', { class: 'stack' });
  const text = input({ value: by === 'handle' ? '' : page.query.get('find') ?? '', type: 'search', autocapitalize: 'off', maxlength: 8000 });
  /** @type {[string, string][]} */
  const names = [
    ['installation', t('devices.byInstallation')], ['user', t('devices.byUser')],
    ['tag', t('devices.byTag')], ['handle', t('devices.byHandle')],
  ];
  const way = select(names.filter(([name]) => ways.includes(name)), by, () => {
    hint.textContent = t(`devices.hint.${way.value}`);
    text.focus();
  });
  const hint = el('span', null, t(`devices.hint.${by}`));
  const platform = select([['', t('devices.every')], ...Object.keys(platforms).map(
    (key) => /** @type {[string, string]} */ ([key, platformName(key)]))],
  page.query.get('platform') ?? '', () => search());
  const expired = select([['', t('devices.every')], ['false', t('devices.alive')], ['true', t('devices.dead')]],
    page.query.get('expired') ?? '', () => search());

  const search = () => {
    // A handle is secret: keep it out of the browser's history.
    page.keep({
      by: way.value === ways[0] ? null : way.value, find: way.value === 'handle' ? null : text.value.trim(),
      platform: platform.value, expired: expired.value, list: kind === 'installations' ? null : kind,
    });
    return list();
  };
  const list = async () => {
    const value = text.value.trim();
    if (way.value === 'handle' && value) return fill(found, await byHandle(page, value));
    if (kind === 'registrations') return found.replaceChildren(pagedList({
      caption: t('devices.registrations'), columns: registrationColumns(page), signal: page.signal, empty: t('devices.noneFound'),
      load: (from) => registrations(page.hub, way.value === 'tag' ? value : '', from, page.signal),
    }));
    if (way.value === 'installation' && value) return found.replaceChildren(...await byID(page, value));
    found.replaceChildren(pagedList({
      caption: t('devices.title'), columns: installationColumns(page), signal: page.signal,
      empty: value || platform.value || expired.value ? t('devices.noneFound')
        : nothing(t('devices.none'), el('p', null, t('devices.noneAdvice')), el('code', null, 'belfry phone --tags news')),
      load: (from) => api.list(api.at(page.hub, 'installations'), 'installations', {
        user: way.value === 'user' ? value : '', tag: way.value === 'tag' ? value : '',
        platform: platform.value, expired: expired.value,
      }, from, page.signal),
    }));
  };

  const go = el('div', { class: 'buttons' }, submitButton(t('devices.search')));
  page.main.append(
    heading(t('devices.title')),
    section(t('devices.find'), form(search,
      el('div', { class: 'row' }, field(t('devices.by'), way), field(t('devices.what'), text, hint), kind === 'registrations' && go),
      kind === 'installations' && el('div', { class: 'row' }, field(t('devices.platform'), platform), field(t('devices.state'), expired), go))),
    choice(t('devices.list'), [
      ['installations', t('devices.installations')], ['registrations', t('devices.registrations')],
    ], kind, (value) => page.go(page.to('devices') + (value === 'installations' ? '' : '?list=registrations'))),
    found);
  await list();
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} id
 */
async function byID(page, id) {
  try {
    const reply = await api.request(api.at(page.hub, 'installations', id), { signal: page.signal });
    return [table(t('devices.title'), installationColumns(page), [JSON.parse(await reply.text())])];
  } catch (error) {
    if (!(error instanceof api.APIError) || ![400, 404].includes(error.status)) throw error;
    return [nothing(t('devices.noneFound'), el('p', null, t('devices.wholeID')))];
  }
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
