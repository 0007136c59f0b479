// @ts-check
// Signing in: with a connection string, or with a hub's policy and key.

import { readConnectionString, signInWithKey, takeLocal } from '../api.js';
import { has, t } from '../text.js';
import { button, checkbox, el, field, form, heading, input, later, notice, section, submitButton } from '../view.js';

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('signin.title'));
  const wanted = page.query.get('to') ?? '';
  const next = () => page.go(wanted.startsWith('/$portal/') ? wanted : '/$portal/');

  const connection = input({ type: 'password', placeholder: 'Endpoint=sb://…;SharedAccessKeyName=…;SharedAccessKey=…', autofocus: true });
  const hub = input({ autocapitalize: 'off' });
  const policy = input({ autocapitalize: 'off' });
  const key = input({ type: 'password' });
  const keep = checkbox(t('signin.keep'), false);

  page.main.classList.add('lone');
  page.main.append(
    heading(t('signin.title')),
    page.query.has('expired') && notice('note', el('p', null, t('signin.expired'))) || '',
    section(t('signin.withKey'),
      form(async () => {
        const given = connection.value.trim()
          ? readConnectionString(connection.value)
          : { policy: policy.value.trim(), key: key.value.trim(), hub: '' };
        if (!given.policy || !given.key) return connection.focus();
        await signInWithKey({ ...given, hub: hub.value.trim() || given.hub, keep: keep.input.checked });
        next();
      },
      field(t('signin.connection'), connection, t('signin.connectionHint')),
      field(t('signin.hub'), hub, t('signin.hubHint')),
      el('details', null, el('summary', null, t('signin.byParts')),
        el('div', { class: 'stack' }, field(t('signin.policy'), policy), field(t('signin.key'), key))),
      keep,
      el('div', { class: 'buttons' }, submitButton(t('signin.go')))),
      el('p', { class: 'hint' }, t('signin.keyStays'))),
  );
}
