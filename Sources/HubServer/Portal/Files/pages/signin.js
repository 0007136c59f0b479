// @ts-check
// Signing in: as an operator with a password or at an OpenID provider, as the developer of this machine, or
// with a connection string or a hub's policy and key.

import * as api from '../api.js';
import { readConnectionString, readSession, request, signInWithKey, takeLocal, takeSession } from '../api.js';
import { t } from '../text.js';
import { button, checkbox, el, field, form, heading, input, link, notice, section, submitButton } from '../view.js';

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('signin.title'));
  const wanted = page.query.get('to') ?? '';
  const next = () => page.go(wanted.startsWith('/$portal/') ? wanted : '/$portal/');
  const [session, isLocal] = await Promise.all([readSession(), hasLocal()]);
  page.main.classList.add('lone');
  page.main.append(
    heading(t('signin.title')),
    page.query.has('expired') && notice('note', el('p', null, t('signin.expired'))) || '',
    isLocal && local(next) || '',
    session.ways.includes('password') && password(next, session) || '',
    session.ways.includes('oidc') && !session.ways.includes('password') && section(t('signin.withPassword'), provider(session)) || '',
    key(next));
}

/** Whether `belfry up` runs for the user of this machine. */
async function hasLocal() {
  const reply = await fetch('/$portal/local').catch(() => null);
  return Boolean(reply?.ok);
}

/** @param {() => void} next */
const local = (next) => section(t('signin.local'), el('div', { class: 'buttons' }, button(t('signin.goLocal'), async () => {
  await takeLocal();
  next();
}, { class: 'main' })));

/** @param {{oidcName?: string}} session */
const provider = (session) => el('p', null, link('/$portal/oidc/start', t('signin.withProvider', { name: session.oidcName ?? t('signin.provider') })));

/**
 * @param {() => void} next
 * @param {{ways: string[], oidcName?: string}} session
 */
function password(next, session) {
  const user = input({ autocomplete: 'username', autocapitalize: 'off', required: true });
  const secret = input({ type: 'password', autocomplete: 'current-password', required: true });
  return section(t('signin.withPassword'), form(async () => {
    if (!user.value.trim()) return user.focus();
    if (!secret.value) return secret.focus();
    try {
      await request('/$portal/session', { method: 'POST', body: { user: user.value.trim(), password: secret.value } });
    } catch (error) {
      if (error instanceof api.APIError && error.status === 401) throw new api.APIError(401, 'signin.refused', error.trackingId);
      throw error;
    }
    await takeSession();
    next();
  }, field(t('signin.user'), user), field(t('signin.password'), secret),
  el('div', { class: 'buttons' }, submitButton(t('signin.go')))), session.ways.includes('oidc') && provider(session));
}

/** @param {() => void} next */
function key(next) {
  const connection = input({ type: 'password', placeholder: 'Endpoint=sb://…;SharedAccessKeyName=…;SharedAccessKey=…', autocomplete: 'off' });
  const hub = input({ autocapitalize: 'off' });
  const policy = input({ autocapitalize: 'off' });
  const secret = input({ type: 'password' });
  const keep = checkbox(t('signin.keep'), false);
  return section(t('signin.withKey'),
    form(async () => {
      const given = connection.value.trim()
        ? readConnectionString(connection.value)
        : { policy: policy.value.trim(), key: secret.value.trim(), hub: '' };
      if (!given.policy || !given.key) return connection.focus();
      const wanted = hub.value.trim() || given.hub;
      await signInWithKey({ ...given, hub: wanted, keep: keep.input.checked });
      await verify(wanted);
      next();
    },
    field(t('signin.connection'), connection, t('signin.connectionHint')),
    field(t('signin.hub'), hub, t('signin.hubHint')),
    el('details', null, el('summary', null, t('signin.byParts')),
      el('div', { class: 'stack' }, field(t('signin.policy'), policy), field(t('signin.key'), secret))),
    keep,
    el('div', { class: 'buttons' }, submitButton(t('signin.go')))),
    el('p', { class: 'hint' }, t('signin.keyStays')));
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
