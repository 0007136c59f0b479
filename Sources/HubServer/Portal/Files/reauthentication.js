// @ts-check
// For operators with a session: they show once more who they are before keys are shown or things deleted.
// With a key there is nothing to ask, for who has it can do all of that anyway. A request that is refused
// for want of it asks by itself (api.js); `freshly` asks first, for what else would be answered without keys.

import * as api from './api.js';
import { t } from './text.js';
import { button, dialog, el, field, form, input, submitButton } from './view.js';

/** What the page tells that the provider's page leads back to: it stands in a tab of its own. */
export const channel = 'belfry.confirmed';

/**
 * Does it, once the operator has shown who they are.
 * @template T
 * @param {() => Promise<T>} act
 * @returns {Promise<T | null>} null when the person gave up
 */
export async function freshly(act) {
  if (api.who()?.kind === 'session' && !(await api.readSession()).confirmed && !await prove()) return null;
  try {
    return await act();
  } catch (error) {
    if (error instanceof api.APIError && api.wantsProof(error)) return null;
    throw error;
  }
}

/** @type {Promise<boolean> | null} */
let asked = null;

/** Asks once, however many requests want it. */
export const prove = () => asked ??= ask().finally(() => { asked = null; });

/** @returns {Promise<boolean>} false when the person gave up */
async function ask() {
  const { confirmation, oidcName } = await api.readSession();
  return confirmation === 'oidc' ? atProvider(oidcName) : withPassword();
}

async function withPassword() {
  return await dialog(t('fresh.title'), (close) => {
    const password = input({ type: 'password', autocomplete: 'current-password', required: true, autofocus: true });
    return [form(async () => {
      if (!password.value) return password.focus();
      try {
        await api.request('/$portal/session/confirm', { method: 'POST', body: { password: password.value } });
      } catch (error) {
        password.value = '';
        password.focus();
        throw error instanceof api.APIError && error.status === 401 ? new api.APIError(400, 'fresh.wrong') : error;
      }
      close(true);
    }, el('p', null, t('fresh.text')), field(t('signin.password'), password),
    el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), submitButton(t('fresh.go'))))];
  }) === true;
}

/** @param {string | undefined} name */
async function atProvider(name) {
  const news = new BroadcastChannel(channel);
  const isDone = await dialog(t('fresh.again'), (close) => {
    news.onmessage = () => close(true);
    return [el('p', null, t('fresh.text')), el('p', null, t('fresh.provider')),
      el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)),
        // In a tab of its own: what was typed here stays.
        el('a', { href: '/$portal/oidc/start?fresh=1&to=/$portal/confirmed', target: '_blank', class: 'as-button main' },
          t('signin.withProvider', { name: name ?? t('signin.provider') })))];
  });
  news.close();
  return isDone === true;
}
