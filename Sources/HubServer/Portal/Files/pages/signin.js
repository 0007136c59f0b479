// @ts-check
// Signing in: with a connection string, or with a hub's policy and key.

import * as api from '../api.js';
import { readConnectionString, signInWithKey } from '../api.js';
import { t } from '../text.js';
import { checkbox, el, field, form, heading, input, notice, section, submitButton } from '../view.js';

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
        const wanted = hub.value.trim() || given.hub;
        await signInWithKey({ ...given, hub: wanted, keep: keep.input.checked });
        await verify(wanted);
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

/**
 * Whether the server takes the key at all; what it opens is seen later.
 * @param {string} hub
 */
async function verify(hub) {
  try {
    await (hub ? api.json(api.at(hub, 'audience'), { query: { tags: 'portal' } }) : api.xml('/'));
  } catch (error) {
    const known = error instanceof api.APIError ? error : null;
    if (known?.status === 403) return;
    await api.signOut();
    if (known?.status === 404) throw new api.APIError(404, 'hubs.gone', known.trackingId);
    if (known?.status === 401) throw new api.APIError(400, hub ? 'signin.wrong' : 'signin.wrongOrHub', known.trackingId);
    throw error;
  }
}
