// @ts-check
// The list of hubs.

import * as api from '../api.js';
import { hubAddress } from '../app.js';
import { allHubs, createHub, credentialsOf, oneHub } from '../hubs.js';
import { failures, total } from '../outcomes.js';
import { platformName } from '../platforms.js';
import { t } from '../text.js';
import { badge, button, chips, data, dialog, el, field, form, heading, input, later, link, nothing, section, submitButton, table } from '../view.js';

/** @typedef {import('../hubs.js').Hub} Hub */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('hubs.title'));
  const { hubs, isWhole } = await find(page.signal);
  page.main.append(heading(t('hubs.title'), isWhole && button(t('hubs.create'), () => create(page), { class: 'main' })));
  if (hubs.length === 0) {
    page.main.append(isWhole
      ? nothing(t('hubs.none'), el('p', null, t('hubs.noneAdvice')))
      : section(t('hubs.which'), el('p', { class: 'soft' }, t('hubs.whichAdvice')), openForm(page)));
    return;
  }
  /** @type {Map<string, Promise<import('../hubs.js').Credential[] | null>>} null for who may not see them */
  const asked = new Map();
  /** @param {string} name */
  const credentials = (name) => {
    const found = asked.get(name) ?? (api.role(name) === 'manager' ? credentialsOf(name, page.signal).catch(() => null) : Promise.resolve(null));
    asked.set(name, found);
    return found;
  };
  page.main.append(table(t('hubs.title'), [
    { head: t('hubs.name'), cell: (hub) => link(hubAddress(hub.name), data(hub.name)) },
    { head: t('hubs.health'), cell: (hub) => later(page.signal, () => health(hub, credentials(hub.name), page.signal).catch((error) => {
      if (page.signal.aborted) throw error;
      return badge(t('hubs.unknown'), 'plain');
    }), 1) },
    { head: t('hubs.platforms'), cell: (hub) => later(page.signal, async () => {
      const found = await credentials(hub.name);
      return found ? chips(found.map(({ platform }) => platformName(platform))) : '–';
    }, 1) },
  ], hubs));
}

/**
 * The hubs that this person may see: the whole list needs a key of the namespace.
 * @param {AbortSignal} signal
 * @returns {Promise<{hubs: (Partial<Hub> & {name: string})[], isWhole: boolean}>}
 */
async function find(signal) {
  const who = api.who();
  if (who?.kind === 'session' && !('*' in who.hubs)) {
    return { hubs: Object.keys(who.hubs).map((name) => ({ name })), isWhole: false };
  }
  try {
    return { hubs: await allHubs(signal), isWhole: true };
  } catch (error) {
    const isOfOneHub = error instanceof api.APIError && [401, 403].includes(error.status);
    if (!isOfOneHub || who?.kind !== 'key') throw error;
    if (!who.hub) return { hubs: [], isWhole: false };
    const hub = await oneHub(who.hub, signal).catch((error) => {
      // Without Manage the description is not readable, but the rest of the hub may be.
      if (error.message?.startsWith('Manage claim') || error.status === 403) return { name: who.hub };
      throw error;
    });
    return { hubs: [hub], isWhole: false };
  }
}

/**
 * The state of a hub, as text.
 * @param {Partial<Hub> & {name: string}} hub
 * @param {Promise<import('../hubs.js').Credential[] | null>} credentials
 * @param {AbortSignal} signal
 */
async function health(hub, credentials, signal) {
  if (hub.isDisabled) return badge(t('hubs.disabled'), 'note');
  if ((await credentials)?.length === 0) return badge(t('hubs.noCredential'), 'note');
  const { points } = await api.json(api.at(hub.name, 'statistics'), { query: { step: 3600 }, signal });
  const delivered = total(points.map((/** @type {any} */ point) => point.delivered));
  const failed = points.reduce((/** @type {number} */ all, /** @type {any} */ point) => all + failures(point.failed), 0);
  if (delivered + failed === 0) return badge(t('hubs.quiet'), 'plain');
  if (failed / (delivered + failed) > 0.1) return badge(t('hubs.failing', { n: failed }), 'bad');
  return badge(t('hubs.well', { n: delivered }), 'good');
}

/** @param {import('../app.js').Page} page */
async function create(page) {
  const name = await dialog(t('hubs.create'), (close) => {
    const name = input({ required: true, autofocus: true, maxlength: 260, pattern: '[A-Za-z][A-Za-z0-9._\\-]*', autocapitalize: 'off' });
    return [form(async () => {
      if (!name.reportValidity()) return;
      await createHub(name.value, {});
      close(name.value);
    }, field(t('hubs.name'), name, t('hubs.nameHint')),
    el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), submitButton(t('hubs.create'))))];
  });
  if (name) page.go(hubAddress(name));
}

/** @param {import('../app.js').Page} page */
function openForm(page) {
  const name = input({ required: true, autocapitalize: 'off' });
  return form(() => { if (name.value.trim()) page.go(hubAddress(name.value.trim())); },
    field(t('hubs.name'), name), el('div', { class: 'buttons' }, submitButton(t('hubs.open'))));
}
