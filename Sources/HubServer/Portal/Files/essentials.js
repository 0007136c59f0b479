// @ts-check
// What an app needs to reach the hub: its address, its name, and a key that may register devices and nothing more.

import * as api from './api.js';
import { dress } from './dress.js';
import { oneHub } from './hubs.js';
import { connectionString, policiesOf } from './policies.js';
import { freshly } from './reauthentication.js';
import { t } from './text.js';
import { button, copyButton, dialog, el, facts, later, link, save, section } from './view.js';

/** @typedef {import('./policies.js').Policy} Policy */

/** The file from which the tutorial's app reads its settings (Examples/PushDemo). */
const fileName = 'devsettings.plist';

/**
 * @param {import('./app.js').Page} page
 * @param {Promise<import('./hubs.js').Hub>} description rejected for who may not read it
 */
export function essentials({ hub, signal, to }, description) {
  dress('overview.css');
  return section(t('essentials.title'),
    facts([row(t('essentials.address'), '', location.origin, copy(t('essentials.address'), () => location.origin)),
      row(t('essentials.hub'), '', hub, copy(t('essentials.hub'), () => hub))], 'one'),
    later(signal, async () => {
      const about = await description.catch((error) => {
        if (error instanceof api.APIError && [401, 403].includes(error.status)) return null;
        throw error;
      });
      if (!about) return el('p', { class: 'hint' }, t('essentials.ask'));
      const policies = link(to('policies'), t('policies.title'));
      const listening = listenOnly(about.description);
      if (!listening) return el('p', { class: 'hint' }, t('essentials.noPolicy'), ' ', policies);
      const { name } = listening;
      const whole = () => withKey(hub, name);
      const file = async () => {
        const text = await whole();
        return text && propertyList({ connectionString: text, notificationHubName: hub });
      };
      return [facts([
        row(t('essentials.app'), t('essentials.mayRegister'), connectionString(name, '••••••••'), copy(t('essentials.app'), whole)),
        row(t('essentials.sample'), '', fileName, copy(t('essentials.sample'), file),
          button(t('view.save'), async () => {
            const text = await file();
            if (text) save(fileName, text, 'application/x-plist');
          }, { class: 'quiet', 'aria-label': `${t('view.save')}: ${fileName}` }))], 'one'),
      el('p', { class: 'hint' }, t('essentials.backend'), ' ', policies)];
    }, 2));
}

/**
 * The policy for apps: one that may do nothing else than listen.
 * @param {Element} description
 * @returns {Policy | undefined}
 */
function listenOnly(description) {
  const found = policiesOf(description).filter(({ rights }) => rights.join() === 'Listen');
  return found.find(({ name }) => name === 'DefaultListenSharedAccessSignature') ?? found[0];
}

/**
 * The connection string of the policy, once an operator has confirmed their identity; its rights are looked at again.
 * @param {string} hub
 * @param {string} name
 * @returns {Promise<string | null>} null when they gave up
 */
async function withKey(hub, name) {
  const about = await freshly(() => oneHub(hub));
  const policy = about && policiesOf(about.description).find((one) => one.name === name && one.rights.join() === 'Listen');
  if (about && !policy?.primary) throw new api.APIError(409, 'hubs.conflict');
  return policy ? connectionString(name, policy.primary) : null;
}

/**
 * @param {string} label
 * @param {() => string | Promise<string | null>} text
 */
const copy = (label, text) => copyButton(async () => {
  const whole = await text();
  if (whole === null) return null;
  // A confirmation may have taken too long for the browser to see a press in it.
  if (await navigator.clipboard.writeText(whole).then(() => true, () => false)) return true;
  await dialog(label, (close) => [el('p', null, t('essentials.again')),
    el('div', { class: 'buttons' }, button(t('view.close'), () => close(null)), copyButton(whole))]);
  return null;
}, t('view.copy'), `${t('view.copy')}: ${label}`);

/**
 * @param {string} label
 * @param {string} hint
 * @param {string} shown
 * @param {...HTMLElement} buttons
 * @returns {[import('./view.js').Child[], HTMLElement]}
 */
const row = (label, hint, shown, ...buttons) => [[label, hint && el('span', null, hint)],
  el('span', { class: 'copy actions' }, el('bdi', { title: shown }, shown), ...buttons)];

/** @param {Record<string, string>} values */
function propertyList(values) {
  const escaped = (/** @type {string} */ text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  const lines = Object.entries(values).map(([key, value]) => `  <key>${key}</key>\n  <string>${escaped(value)}</string>\n`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0">
<dict>
${lines.join('')}</dict>
</plist>
`;
}
