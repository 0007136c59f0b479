// @ts-check
// For operators with a session: they confirm their identity before keys are shown or things deleted.
// A key needs no confirmation, since its holder can do all of that anyway. A request refused
// without confirmation asks by itself (api.js); `freshly` asks first, for replies that would lack the keys.

import * as api from './api.js';
import { t } from './text.js';
import { button, dialog, el, field, form, input, submitButton } from './view.js';

/** The message of the page that the provider redirects to, which is in its own tab. */
export const channel = 'belfry.confirmed';

/**
 * Performs an action once the operator has confirmed their identity.
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

/** Asks once, regardless of the number of requests. */
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
        // In a separate tab, so that typed text stays.
        el('a', { href: '/$portal/oidc/start?fresh=1&to=/$portal/confirmed', target: '_blank', class: 'as-button main' },
          t('signin.withProvider', { name: name ?? t('signin.provider') })))];
  });
  news.close();
  return isDone === true;
}
