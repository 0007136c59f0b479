// @ts-check
// Access policies: rights, connection strings, new keys. They are part of the hub's description.

import * as api from '../api.js';
import { dress } from '../dress.js';
import { changeHub, oneHub } from '../hubs.js';
import { connectionString, policiesOf } from '../policies.js';
import { freshly } from '../reauthentication.js';
import { t } from '../text.js';
import { announce, button, checkbox, confirm, copyButton, data, dialog, el, facts, field, form, heading, input, moment, notice, section, chips, submitButton, table } from '../view.js';
import { made, member } from '../xml.js';

const instance = 'http://www.w3.org/2001/XMLSchema-instance';
const rights = ['Listen', 'Manage', 'Send'];

/** @typedef {import('../policies.js').Policy} Policy */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  dress('settings.css');
  page.title(t('policies.title'));
  const hub = await freshly(() => oneHub(page.hub, page.signal));
  if (!hub) return page.go(page.to());
  const policies = policiesOf(hub.description);
  page.main.append(
    heading(t('policies.title'), button(t('policies.create'), () => create(page, hub), { class: 'main' })),
    section(t('policies.rights'), facts(['Listen', 'Send', 'Manage'].map((right) => [right, t(`policies.right.${right}`)]), 'beside'),
    el('p', { class: 'hint' }, t('policies.advice'))),
    table(t('policies.title'), [
      { head: t('policies.name'), cell: (policy) => data(policy.name) },
      { head: t('policies.rights'), cell: (policy) => chips(policy.rights) },
      { head: t('policies.modified'), cell: (policy) => moment(policy.modified) },
      { head: '', cell: (policy) => el('div', { class: 'buttons' },
        button(t('policies.show'), () => strings(page, policy), { 'aria-label': `${t('policies.show')} ${policy.name}` }),
        button(t('policies.rotate'), () => rotate(page, hub, policy), { 'aria-label': `${t('policies.rotate')} ${policy.name}` }),
        button(t('view.delete'), () => remove(page, hub, policy), { class: 'danger', 'aria-label': `${t('view.delete')} ${policy.name}` })) },
    ], policies));
}

/**
 * @param {import('../app.js').Page} page
 * @param {Policy} policy
 * @param {string} [note]
 */
const strings = (page, policy, note) => dialog(t('policies.stringsOf', { name: policy.name }), (close) => [
  note && notice('good', el('p', null, note)),
  el('div', { class: 'stack' }, [['policies.primary', policy.primary], ['policies.secondary', policy.secondary]].map(([label, key]) => {
    const text = connectionString(policy.name, key);
    const shown = input({ readOnly: true, value: text, class: 'mono' });
    return el('div', { class: 'stack' }, field(t(label), shown), el('div', { class: 'buttons' }, copyButton(text)));
  })),
  el('p', { class: 'hint' }, t('policies.keep')),
  el('div', { class: 'buttons' }, button(t('view.close'), () => close(null)))]);

/** @returns {string} a key as the hub makes them */
const freshKey = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));

/**
 * @param {import('../app.js').Page} page
 * @param {import('../hubs.js').Hub} hub
 */
async function create(page, hub) {
  const name = input({ required: true, autofocus: true, maxlength: 256, pattern: '[A-Za-z0-9._~\\-]+', autocapitalize: 'off' });
  const boxes = ['Listen', 'Send', 'Manage'].map((right) => ({ right, box: checkbox(`${right}: ${t(`policies.right.${right}`)}`, right === 'Listen') }));
  const manage = boxes[2].box.input;
  manage.addEventListener('change', () => {
    // Manage needs, and includes, the other two.
    for (const { box } of boxes.slice(0, 2)) {
      if (manage.checked) box.input.checked = true;
      box.input.disabled = manage.checked;
    }
  });
  const keys = { primary: freshKey(), secondary: freshKey() };
  const made = await dialog(t('policies.create'), (close) => [form(async () => {
    if (!name.reportValidity()) return;
    const chosen = boxes.filter(({ box }) => box.input.checked).map(({ right }) => right);
    if (chosen.length === 0) throw new api.APIError(400, 'policies.noRight');
    if (policiesOf(hub.description).some((policy) => policy.name === name.value)) throw new api.APIError(409, 'policies.taken');
    await freshly(() => changeHub(hub, (description) => {
      const rules = member(description, 'AuthorizationRules');
      rules?.append(rule(description, name.value, chosen, keys));
    }));
    close({ name: name.value, ...keys });
  }, field(t('policies.name'), name, t('policies.nameHint')),
  el('fieldset', { class: 'stack' }, el('legend', { class: 'label' }, t('policies.rights')), boxes.map(({ box }) => box)),
  el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), submitButton(t('policies.create'))))]);
  if (!made) return;
  page.reload();
  await strings(page, /** @type {Policy} */ (/** @type {unknown} */ (made)), t('policies.created'));
}

/**
 * @param {Element} description
 * @param {string} name
 * @param {string[]} chosen
 * @param {{primary: string, secondary: string}} keys
 */
function rule(description, name, chosen, keys) {
  const make = (/** @type {string} */ name, /** @type {string} */ text) => made(description, name, text);
  const node = make('AuthorizationRule', '');
  node.setAttributeNS(instance, 'i:type', 'SharedAccessAuthorizationRule');
  const granted = make('Rights', '');
  granted.append(...rights.filter((right) => chosen.includes(right)).map((right) => make('AccessRights', right)));
  node.append(make('ClaimType', 'SharedAccessKey'), make('ClaimValue', 'None'), granted, make('KeyName', name),
    make('PrimaryKey', keys.primary), make('SecondaryKey', keys.secondary));
  return node;
}

/**
 * The rule of that name in a description that was just read.
 * @param {Element} description
 * @param {string} name
 */
const nodeOf = (description, name) => policiesOf(description).find((policy) => policy.name === name)?.node ?? null;

/**
 * @param {import('../app.js').Page} page
 * @param {import('../hubs.js').Hub} hub
 * @param {Policy} policy
 */
async function rotate(page, hub, policy) {
  const next = { primary: freshKey(), secondary: policy.primary };
  const done = await confirm({
    title: t('policies.rotateTitle', { name: policy.name }), text: t('policies.rotateText'), action: t('policies.rotate'),
    act: () => freshly(() => changeHub(hub, (description) => {
      const node = nodeOf(description, policy.name);
      for (const child of node?.children ?? []) {
        if (child.localName === 'PrimaryKey') child.textContent = next.primary;
        if (child.localName === 'SecondaryKey') child.textContent = next.secondary;
      }
    })),
  });
  if (!done) return;
  page.reload();
  await strings(page, { ...policy, ...next }, t('policies.rotated'));
}

/**
 * @param {import('../app.js').Page} page
 * @param {import('../hubs.js').Hub} hub
 * @param {Policy} policy
 */
async function remove(page, hub, policy) {
  const done = await confirm({
    title: t('policies.deleteTitle', { name: policy.name }), text: t('policies.deleteText'), action: t('view.delete'), type: policy.name,
    act: () => freshly(() => changeHub(hub, (description) => { nodeOf(description, policy.name)?.remove(); })),
  });
  if (!done) return;
  announce(t('policies.deleted'));
  page.reload();
}
