// @ts-check
// For operators with a session: the password again before keys are shown or things deleted. With a key
// there is nothing to ask, for whoever has it can do all of that anyway.

import * as api from './api.js';
import { t } from './text.js';
import { button, dialog, el, field, form, input, link, submitButton } from './view.js';

/**
 * Does it; where the server wants a fresh sign-in first, asks for the password and does it again.
 * @template T
 * @param {() => Promise<T>} act
 * @returns {Promise<T | null>} null when the person gave up
 */
export async function freshly(act) {
  try {
    return await act();
  } catch (error) {
    const wantsProof = error instanceof api.APIError && error.status === 403 && api.who()?.kind === 'session'
      && /confirm/i.test(error.message);
    if (!wantsProof) throw error;
  }
  const { ways } = await api.readSession();
  const isDone = await dialog(t('fresh.title'), (close) => {
    const password = input({ type: 'password', autocomplete: 'current-password', required: true, autofocus: true });
    return ways.includes('password')
      ? [form(async () => {
        await api.json('/$portal/session/confirm', { method: 'POST', body: { password: password.value } });
        close(true);
      }, el('p', null, t('fresh.text')), field(t('signin.password'), password),
      el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), submitButton(t('fresh.go'))))]
      : [el('p', null, t('fresh.provider')), el('p', null, link('/$portal/oidc/start?fresh=1', t('signin.go')))];
  });
  return isDone ? act() : null;
}
