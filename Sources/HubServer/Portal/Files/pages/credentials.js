// @ts-check
// Credentials of the push services: dropped as files, probed, and shown with their expiry.

import * as api from '../api.js';
import { dress } from '../dress.js';
import { endpoints, recognise, vapidPair } from '../credentials.js';
import { changeHub, oneHub, set, standing } from '../hubs.js';
import { platformName, platforms } from '../platforms.js';
import { freshly } from '../reauthentication.js';
import { has, t } from '../text.js';
import { announce, badge, button, choice, confirm, copyButton, data, dialog, dropZone, el, facts, field, form, heading, input, moment, notice, section, select, short, submitButton } from '../view.js';
import { made, member } from '../xml.js';

/** @typedef {{platform: string, kind: string, app?: string, endpoint?: string, modifiedAt: string, expiresAt?: string}} State */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  dress('settings.css');
  page.title(t('credentials.title'));
  const { credentials } = await api.json(api.at(page.hub, 'credentials'), { signal: page.signal });
  /** @type {Map<string, State>} */
  const present = new Map(credentials.map((/** @type {State} */ one) => [one.platform, one]));
  const shown = Object.keys(platforms).filter((key) => platforms[key].forms.length > 0 || present.has(key));
  page.main.append(
    heading(t('credentials.title')),
    drop(page),
    el('div', { class: 'grid' }, shown.map((platform) => card(page, platform, present.get(platform)))));
}

/** @param {import('../app.js').Page} page */
const drop = (page) => dropZone(t('credentials.drop'), t('credentials.dropHint'), async (file) => {
  const found = recognise(file.name, new Uint8Array(await file.arrayBuffer()));
  if (found.wrong) throw new api.APIError(400, found.wrong);
  await edit(page, found.platform ?? '', found.form, found.values);
});

/**
 * @param {import('../app.js').Page} page
 * @param {string} platform
 * @param {State | undefined} state
 */
function card(page, platform, state) {
  const answer = el('div', { role: 'status' });
  const canSet = platforms[platform].forms.length > 0;
  if (!state) {
    return section(platformName(platform), el('p', { class: 'soft' }, t('credentials.missing')),
      canSet && el('div', { class: 'buttons' }, button(t('credentials.set'), () => edit(page, platform), { 'aria-label': `${t('credentials.set')}: ${platformName(platform)}` })));
  }
  const probe = async () => {
    answer.replaceChildren();
    const { verdict, text } = await api.json(api.at(page.hub, 'credentials', platform, 'probe'), { method: 'POST' });
    answer.replaceChildren(notice(verdict === 'accepted' ? 'good' : verdict === 'untried' ? 'plain' : verdict === 'refused' ? 'bad' : 'note', el('p', null, text)));
  };
  return section(platformName(platform), facts([
    [t('credentials.kind'), has(`credentials.kind.${state.kind}`) ? t(`credentials.kind.${state.kind}`) : state.kind],
    [t('credentials.app'), state.app && short(state.app, 30)],
    [t('credentials.endpoint'), state.endpoint && data(state.endpoint)],
    [t('credentials.modified'), moment(state.modifiedAt)],
    [t('credentials.expires'), expiry(state.expiresAt)],
  ]), el('div', { class: 'buttons' },
    button(t('credentials.probe'), probe, { 'aria-label': `${t('credentials.probe')}: ${platformName(platform)}` }),
    canSet && button(t('credentials.replace'), () => edit(page, platform), { 'aria-label': `${t('credentials.replace')}: ${platformName(platform)}` }),
    button(t('view.delete'), () => remove(page, platform), { class: 'danger', 'aria-label': `${t('view.delete')}: ${platformName(platform)}` })), answer);
}

/** @param {string | undefined} at */
function expiry(at) {
  const stands = standing(at);
  return el('span', null, badge(t(`credentials.${stands}`), stands === 'over' ? 'bad' : stands === 'soon' ? 'note' : 'good'), ' ', at && moment(at));
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} platform
 * @param {string} [formKey]
 * @param {Record<string, string>} [values]
 */
async function edit(page, platform, formKey, values = {}) {
  const hub = await freshly(() => oneHub(page.hub, page.signal));
  if (!hub) return;
  const { forms, element } = platforms[platform];
  let chosen = forms.find((one) => one.key === formKey) ?? forms[0];
  /** @type {Record<string, HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement>} */
  let controls = {};
  const place = el('div', { class: 'stack' });
  const build = () => {
    controls = {};
    place.replaceChildren(...chosen.parts.map((part) => {
      const given = values[part.name] ?? '';
      const key = `credentials.part.${part.name}`;
      const label = (has(key) ? t(key) : part.name) + (part.isOptional ? ` (${t('credentials.optional')})` : '');
      const control = part.kind === 'lines' ? el('textarea', { class: 'code', rows: 5, value: given, spellcheck: 'false', autocomplete: 'off' })
        : part.kind === 'endpoint' ? select([[endpoints.production, t('credentials.production')], [endpoints.sandbox, t('credentials.sandbox')]], given || endpoints.production, () => {})
          : input({ value: given, type: part.kind === 'secret' ? 'password' : 'text', placeholder: part.example, autocapitalize: 'off', readOnly: part.kind === 'file' });
      controls[part.name] = control;
      return field(label, control, part.kind === 'file' && !given ? t('credentials.dropFirst') : null);
    }), ...(platform === 'browser' ? [el('div', { class: 'buttons' }, button(t('credentials.generate'), async () => {
      values = { ...read(), ...await vapidPair() };
      build();
    }))] : []));
  };
  const read = () => Object.fromEntries(Object.entries(controls).map(([name, control]) => [name, control.value.trim()]));
  build();
  const done = await dialog(t('credentials.setTitle', { name: platformName(platform) }), (close) => [form(async () => {
    const given = read();
    const missing = chosen.parts.find((part) => !part.isOptional && !given[part.name]);
    if (missing) return controls[missing.name].focus();
    await freshly(() => changeHub(hub, (description) => write(description, element, given)));
    close(given);
  }, forms.length > 1 && choice(t('credentials.kind'), forms.map((one) => [one.key, t(`credentials.form.${one.key}`)]), chosen.key, (key) => {
    values = { ...values, ...read() };
    chosen = forms.find((one) => one.key === key) ?? chosen;
    build();
  }), place, platform === 'browser' && el('p', { class: 'hint' }, t('credentials.pairHint')),
  el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), submitButton(t('credentials.save'))))]);
  if (!done) return;
  announce(t('credentials.saved', { name: platformName(platform) }));
  page.reload();
  if (platform === 'browser') await dialog(t('credentials.publicTitle'), (close) => [
    el('p', null, t('credentials.publicText')), el('p', null, data(done.VapidPublicKey)),
    el('div', { class: 'buttons' }, copyButton(done.VapidPublicKey), button(t('view.close'), () => close(null)))]);
}

/**
 * @param {Element} description
 * @param {string} element
 * @param {Record<string, string>} values
 */
function write(description, element, values) {
  const make = (/** @type {string} */ name, text = '') => made(description, name, text);
  const properties = make('Properties');
  for (const [name, value] of Object.entries(values)) {
    if (value === '' && name !== 'CertificateKey') continue;
    const property = make('Property');
    property.append(make('Name', name), make('Value', value));
    properties.append(property);
  }
  // Inserted at its place among the members, then filled.
  set(description, element, ' ');
  member(description, element)?.replaceChildren(properties);
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} platform
 */
async function remove(page, platform) {
  const { element } = platforms[platform];
  const done = await confirm({
    title: t('credentials.deleteTitle', { name: platformName(platform) }), text: t('credentials.deleteText'), action: t('view.delete'),
    act: async () => {
      const hub = await freshly(() => oneHub(page.hub));
      if (hub) await freshly(() => changeHub(hub, (description) => set(description, element, '')));
    },
  });
  if (done) page.reload();
}
