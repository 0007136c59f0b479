// @ts-check
// Signing in: as an operator with a password or at an OpenID provider, as the developer of this machine, or
// with a connection string or a hub's policy and key.

import * as api from '../api.js';
import { readConnectionString, readSession, request, signInWithKey, takeLocal, takeSession } from '../api.js';
import { t } from '../text.js';
import { button, checkbox, code, copyButton, el, field, form, heading, input, notice, section, submitButton } from '../view.js';

/**
 * The reason a sign-in at the provider failed; the server puts it into the page (ProviderPages.swift).
 * @typedef {{kind: string, detail?: string, subject?: string, email?: string, to?: string, isFresh?: boolean}} Problem
 */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('signin.title'));
  const problem = readProblem();
  const wanted = page.query.get('to') ?? problem?.to ?? '';
  // The code in the address is no longer valid.
  if (problem) history.replaceState(null, '', '/$portal/sign-in' + (wanted ? '?to=' + encodeURIComponent(wanted) : ''));
  const next = () => page.go(wanted.startsWith('/$portal/') ? wanted : '/$portal/');
  const session = await readSession();
  const isLocal = session.ways.includes('local') && await hasLocal();
  page.main.classList.add('lone');
  page.main.append(
    heading(t('signin.title')),
    page.query.has('expired') && notice('note', el('p', null, t('signin.expired'))) || '',
    problem && trouble(problem) || '',
    isLocal && local(next, isLocal) || '',
    session.ways.includes('password') && password(next, session, wanted, problem) || '',
    session.ways.includes('oidc') && !session.ways.includes('password')
      && section(t('signin.withPassword'), provider(session, wanted, problem)) || '',
    key(next));
}

/**
 * Whether `belfry up` recognises this browser.
 * @returns {Promise<'known' | 'unknown' | null>}
 */
async function hasLocal() {
  const reply = await api.askLocal();
  return reply?.ok ? 'known' : reply?.status === 401 ? 'unknown' : null;
}

/**
 * @param {() => void} next
 * @param {'known' | 'unknown'} state
 */
const local = (next, state) => section(t('signin.local'), state === 'unknown' ? el('p', null, t('signin.printed'))
  : el('div', { class: 'buttons' }, button(t('signin.goLocal'), async () => {
    await takeLocal();
    next();
  }, { class: 'main' })));

/** @returns {Problem | null} */
function readProblem() {
  const meta = document.querySelector('meta[name="belfry-problem"]');
  if (!(meta instanceof HTMLMetaElement)) return null;
  // Ends once the person is signed in.
  api.events.addEventListener('change', () => meta.remove(), { once: true });
  return JSON.parse(meta.content);
}

/** @param {Problem} problem */
function trouble({ kind, detail, subject, email }) {
  const known = subject ?? email;
  const command = known && `belfry operator add ${shellWord(known)} --roles '*=viewer'`;
  return el('div', { class: 'notice bad', role: 'alert' },
    el('p', { class: 'strong' }, t(`oidc.${kind}`)),
    kind === 'unknown'
      ? [el('p', null, t('oidc.who')), el('ul', null, [subject, email].filter((one) => one).map((one) => el('li', null, el('bdi', null, el('code', null, one ?? ''))))),
        detail === 'unverified' && el('p', null, t('oidc.unverified')),
        command && el('p', null, t('oidc.command')), command && code(command), command && el('div', { class: 'buttons' }, copyButton(command))]
      : detail && el('p', { class: 'small' }, el('code', null, detail)));
}

/** @param {string} text */
const shellWord = (text) => `'${text.replace(/'/g, "'\\''")}'`;

/**
 * @param {{ways: string[], oidcName?: string}} session
 * @param {string} to
 * @param {Problem | null} problem
 */
const provider = (session, to, problem) => el('div', { class: 'buttons' },
  button(t('signin.withProvider', { name: session.oidcName ?? t('signin.provider') }), () => {
    api.forget();
    const query = new URLSearchParams({ ...(to ? { to } : {}), ...(problem?.isFresh ? { fresh: '1' } : {}) });
    location.assign(`/$portal/oidc/start?${query}`);
  }, { class: session.ways.includes('password') ? '' : 'main' }));

/**
 * @param {() => void} next
 * @param {{ways: string[], oidcName?: string}} session
 * @param {string} to
 * @param {Problem | null} problem
 */
function password(next, session, to, problem) {
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
  el('div', { class: 'buttons' }, submitButton(t('signin.go')))), session.ways.includes('oidc') && provider(session, to, problem));
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
 * Whether the server accepts the key; its rights are found out later.
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
