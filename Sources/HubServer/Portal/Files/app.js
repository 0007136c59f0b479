// @ts-check
// The frame around the pages: addresses, navigation, the person who is signed in.
//
// To add a page: a module pages/NAME.js with `export async function show(page)`, a line in
// `routes` (its address below /$portal/, the module, and for the navigation of a hub the key of its
// name in texts/*.js and the least role that can use it), its words in texts/*.js, and its file
// in Sources/CWebFiles/files.c. `page` is a Page, below; view.js has its building blocks.
// Modules are loaded when they are first shown, so unused pages cost nothing.

import * as api from './api.js';
import * as keys from './keys.js';
import { chooseLanguage, currentLanguage, languages, loadTexts, t } from './text.js';
import { announce, button, el, failure, fill, heading, notice, pause, select, skeleton, svg } from './view.js';

/**
 * @typedef {object} Page
 * @property {HTMLElement} main container of the page; empty at first
 * @property {string} hub the hub's name, '' outside of one
 * @property {Record<string, string>} params the parts of the address that a route names with ':'
 * @property {URLSearchParams} query
 * @property {AbortSignal} signal aborted when the person leaves the page
 * @property {(name: string) => void} title sets the window's title
 * @property {(...segments: string[]) => string} to the address of another page of this hub
 * @property {(address: string) => void} go
 * @property {(values: Record<string, string | null>) => void} keep writes them into the query of the
 *   address without leaving the page, so that it can be shared and comes back
 * @property {() => void} reload renders the page again
 *
 * @typedef {object} RoutePlace
 * @property {string} path
 * @property {() => Promise<{show: (page: Page) => Promise<void> | void}>} load
 * @property {string} [name] key of its name; those with a name and ':hub' are in the navigation
 * @property {string} [group] key of the heading above it there, where a new group begins
 * @property {'sender' | 'manager'} [role]
 * @property {boolean} [isLocal] only where the server runs an emulator for this machine's user
 * @property {boolean} [isOpen] whether it can be seen without being signed in
 */

/** @type {RoutePlace[]} */
const routes = [
  { path: '', load: () => import('./pages/hubs.js') },
  { path: 'hub/:hub', load: () => import('./pages/overview.js'), name: 'overview.title' },
  { path: 'hub/:hub/compose', load: () => import('./pages/compose.js'), name: 'compose.title', group: 'app.sending' },
  { path: 'hub/:hub/notifications', load: () => import('./pages/notifications.js'), name: 'notifications.title' },
  { path: 'hub/:hub/notifications/:id', load: () => import('./pages/notification.js') },
  { path: 'hub/:hub/schedules', load: () => import('./pages/schedules.js'), name: 'schedules.title' },
  { path: 'hub/:hub/channels', load: () => import('./pages/channels.js'), name: 'channels.title' },
  { path: 'hub/:hub/devices', load: () => import('./pages/devices.js'), name: 'devices.title', group: 'app.audience' },
  { path: 'hub/:hub/removals', load: () => import('./pages/removals.js'), name: 'removals.title', role: 'manager' },
  { path: 'hub/:hub/devices/:id', load: () => import('./pages/device.js') },
  { path: 'hub/:hub/users/:id', load: () => import('./pages/user.js') },
  { path: 'hub/:hub/jobs', load: () => import('./pages/jobs.js'), name: 'jobs.title', role: 'manager' },
  { path: 'hub/:hub/browser', load: () => import('./pages/browser.js'), name: 'browser.title', role: 'manager' },
  { path: 'hub/:hub/credentials', load: () => import('./pages/credentials.js'), name: 'credentials.title', group: 'app.settings', role: 'manager' },
  { path: 'hub/:hub/policies', load: () => import('./pages/policies.js'), name: 'policies.title', role: 'manager' },
  { path: 'hub/:hub/activity', load: () => import('./pages/activity.js'), name: 'activity.title' },
  { path: 'hub/:hub/phones', load: () => import('./pages/phones.js'), name: 'phones.title', group: 'app.development', isLocal: true },
  { path: 'hub/:hub/traffic', load: () => import('./pages/traffic.js'), name: 'traffic.title', isLocal: true },
  { path: 'activity', load: () => import('./pages/activity.js') },
  { path: 'sign-in', load: () => import('./pages/signin.js'), isOpen: true },
  { path: 'oidc/callback', load: () => import('./pages/signin.js'), isOpen: true },
  { path: 'confirmed', load: () => import('./pages/confirmed.js') },
];

/** Pages that are now another one, which takes their query: people keep addresses. */
const moved = /^(hub\/[^/]+)\/(send|test)\/?$/;

const root = '/$portal/';
const bar = /** @type {HTMLElement} */ (document.getElementById('bar'));
const side = /** @type {HTMLElement} */ (document.getElementById('side'));
const main = /** @type {HTMLElement} */ (document.getElementById('main'));
/** Of the page that is shown. */
let shown = new AbortController();
let shownPath = '';
/** Its address, without the part after '#'. */
let shownAddress = '';

// --- Addresses -------------------------------------------------------------------------------

const ranks = { viewer: 0, sender: 1, manager: 2 };
/** @param {string} hub */
const rank = (hub) => ranks[/** @type {keyof typeof ranks} */ (api.role(hub))] ?? 0;

/** @param {...string} segments */
const address = (...segments) => root + segments.map(api.encoded).join('/');

/**
 * @param {string} hub
 * @param {...string} segments
 */
export const hubAddress = (hub, ...segments) => address('hub', hub, ...segments);

/** @param {string} path below the root */
function match(path) {
  const given = path.split('/').filter((part) => part !== '');
  for (const route of routes) {
    const wanted = route.path.split('/').filter((part) => part !== '');
    if (wanted.length !== given.length) continue;
    /** @type {Record<string, string>} */
    const params = {};
    const fits = wanted.every((part, index) => {
      if (!part.startsWith(':')) return part === given[index];
      try {
        params[part.slice(1)] = decodeURIComponent(given[index]);
        return true;
      } catch {
        return false;
      }
    });
    if (fits) return { route, params };
  }
  return null;
}

/** @param {string} to */
function go(to) {
  history.pushState(null, '', to);
  return render(true);
}

/**
 * @param {boolean} [isFresh] whether the person has come from another address
 * @returns {Promise<void>}
 */
async function render(isFresh = false) {
  shown.abort();
  shown = new AbortController();
  const path = location.pathname.slice(root.length);
  if (moved.test(path)) history.replaceState(null, '', root + path.replace(moved, '$1/compose') + location.search);
  shownAddress = location.pathname + location.search;
  const { signal } = shown;
  const found = match(location.pathname.slice(root.length));
  if (!api.who() && !found?.route.isOpen) {
    const back = location.pathname + location.search;
    history.replaceState(null, '', address('sign-in') + (back === root ? '' : '?to=' + encodeURIComponent(back)));
    return render(isFresh);
  }
  const hub = found?.params.hub ?? '';
  frame(hub, found?.route ?? null);
  const place = el('div', { class: 'page' });
  /** @type {Page} */
  const page = {
    main: place, hub, params: found?.params ?? {}, query: new URLSearchParams(location.search), signal,
    title: (name) => { document.title = [name, hub, 'Belfry'].filter(Boolean).join(' · '); },
    to: (...segments) => hubAddress(hub, ...segments),
    go: (to) => void go(to),
    keep: (values) => {
      const query = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(values)) {
        if (value === null || value === '') query.delete(name);
        else query.set(name, value);
      }
      const text = query.toString();
      shownAddress = location.pathname + (text ? '?' + text : '');
      history.replaceState(null, '', shownAddress);
    },
    reload: () => void render(),
  };
  page.title(found?.route.name ? t(found.route.name) : '');
  // Not over a page that the person has opened meanwhile.
  const slow = setTimeout(() => { if (!signal.aborted) fill(main, skeleton(6)); }, 150);
  try {
    if (!found) throw new api.APIError(404, 'app.noPage');
    if (found.route.role && rank(hub) < ranks[found.route.role]) throw new api.APIError(403, 'app.notYourRole');
    const module = await found.route.load();
    if (signal.aborted) return;
    await module.show(page);
    if (signal.aborted) return;
    fill(main, place);
  } catch (error) {
    if (signal.aborted) return;
    fill(main, heading(t('error.title')), failure(error, () => void render()));
  } finally {
    clearTimeout(slow);
  }
  if (isFresh && shownPath !== location.pathname) {
    scrollTo(0, 0);
    // Tells a screen reader the new page; without this it stays at the link that is gone.
    /** @type {HTMLElement} */ (main.querySelector('[autofocus]') ?? main.querySelector('h1') ?? main).focus();
  }
  shownPath = location.pathname;
}

// --- The frame -------------------------------------------------------------------------------

/**
 * @param {string} hub
 * @param {RoutePlace | null} current
 */
function frame(hub, current) {
  const identity = api.who();
  /** @type {HTMLElement} */ (document.getElementById('skip')).textContent = t('app.skip');
  side.classList.remove('open');
  side.hidden = !hub || !identity;
  // On a narrow screen the pages are behind it; elsewhere it is not shown.
  const menu = el('button', { type: 'button', class: 'quiet menu', 'aria-label': t('app.menu'), 'aria-expanded': 'false', 'aria-controls': side.id },
    svg('svg', { viewBox: '0 0 16 16', width: 20, height: 20, 'aria-hidden': 'true' }, svg('path', { d: 'M2 4h12M2 8h12M2 12h12' })));
  menu.addEventListener('click', () => {
    menu.setAttribute('aria-expanded', String(side.classList.toggle('open')));
    if (side.classList.contains('open')) side.querySelector('a')?.focus();
  });
  fill(bar, !side.hidden && menu,
    el('a', { href: root, class: 'brand', 'aria-label': 'Belfry' }, el('img', { src: root + 'icon.svg', alt: '', width: 24, height: 24 }), el('span', null, 'Belfry')),
    hub && el('span', { class: 'crumb' }, el('span', { 'aria-hidden': 'true' }, '/'),
      el('a', { href: hubAddress(hub) }, el('bdi', null, hub))),
    el('span', { class: 'space' }),
    themeButton(),
    select(Object.entries(languages), currentLanguage(), async (language) => {
      chooseLanguage(language);
      await loadTexts();
      await render();
    }, { 'aria-label': t('app.language'), class: 'quiet' }),
    identity && el('span', { class: 'who' }, el('bdi', { title: t('app.signedIn') },
      identity.kind === 'key' ? identity.policy : identity.user)),
    identity && button(t('app.signOut'), async () => {
      // An expired session keeps them: somebody comes back to what they wrote.
      (await import('./drafts.js')).forgetDrafts();
      await api.signOut();
      await go(address('sign-in'));
    }, { class: 'quiet' }));
  side.setAttribute('aria-label', t('app.pages'));
  if (side.hidden) return;
  /** @type {HTMLElement[]} */
  const items = [];
  // Kept until a page follows it: this person may not use the one at which it is set.
  let group = '';
  for (const route of routes) {
    if (route.group) group = route.group;
    if (!route.name || !route.path.startsWith('hub/:hub')) continue;
    if (route.role && ranks[route.role] > rank(hub)) continue;
    if (route.isLocal && !(identity?.kind === 'key' && identity.local)) continue;
    if (group) items.push(el('p', { class: 'group' }, t(group)));
    group = '';
    const there = route.path.split('/').slice(2);
    const isHere = current?.path === route.path
      || (there.length > 0 && current?.path.startsWith(route.path + '/'));
    items.push(el('a', {
      href: hubAddress(hub, ...there), 'aria-current': isHere ? 'page' : null,
    }, t(route.name)));
  }
  items.push(button(t('keys.title'), keys.showKeys, { class: 'quiet keys-button' }));
  fill(side, items);
  side.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
}

// --- Light and dark --------------------------------------------------------------------------

/** '' is the system's. */
const themes = ['', 'light', 'dark'];
const theme = () => localStorage.getItem('belfry.theme') ?? '';
/** For styles; without it the system decides. */
function markTheme() {
  if (theme()) document.documentElement.dataset.theme = theme();
  else delete document.documentElement.dataset.theme;
}
markTheme();

/** Goes through the themes; says the one that is on. */
function themeButton() {
  const node = button('', () => {
    const next = themes[(themes.indexOf(theme()) + 1) % themes.length];
    if (next) localStorage.setItem('belfry.theme', next); else localStorage.removeItem('belfry.theme');
    markTheme();
    say();
    announce(node.title);
  }, { class: 'quiet theme' });
  const say = () => {
    node.title = t(`app.theme.${theme() || 'system'}`);
    node.setAttribute('aria-label', node.title);
  };
  node.append(svg('svg', { class: 'symbol', viewBox: '0 0 16 16', 'aria-hidden': 'true' },
    svg('circle', { cx: 8, cy: 8, r: 6 }), svg('path', { d: 'M8 2a6 6 0 0 1 0 12z', class: 'half' })));
  say();
  return node;
}

/** Announces that the server cannot be reached, and when it is back. */
async function watch() {
  const note = notice('note', el('p', null, t('app.lost')));
  note.classList.add('top');
  bar.after(note);
  const ended = new AbortController();
  api.events.addEventListener('back', () => ended.abort(), { once: true });
  try {
    for (;;) {
      await pause(2000, ended.signal);
      await api.knock();
    }
  } catch {
    note.remove();
    announce(t('app.back'));
    // Only if the page could not be shown at all; others may hold a filled-in form.
    if (main.querySelector(':scope > .notice')) await render();
  }
}

side.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !side.classList.contains('open')) return;
  side.classList.remove('open');
  const menu = /** @type {HTMLElement | null} */ (bar.querySelector('.menu'));
  menu?.setAttribute('aria-expanded', 'false');
  menu?.focus();
});
document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const anchor = event.target instanceof Element ? event.target.closest('a') : null;
  if (!anchor || anchor.target || anchor.hasAttribute('download') || anchor.origin !== location.origin) return;
  if (!anchor.pathname.startsWith(root) || anchor.getAttribute('href')?.startsWith('#')) return;
  event.preventDefault();
  void go(anchor.pathname + anchor.search + anchor.hash);
});
addEventListener('popstate', () => {
  // A jump within this page, such as the skip link's, does not change the page.
  if (location.pathname + location.search !== shownAddress) void render(true);
});
api.events.addEventListener('lost', () => void watch());
keys.listen(() => {
  const hub = match(location.pathname.slice(root.length))?.params.hub;
  if (!hub || !api.who()) return null;
  const find = () => [.../** @type {NodeListOf<HTMLElement>} */ (main.querySelectorAll('input[type=search]'))].find((box) => box.offsetParent);
  return {
    search: async () => {
      if (!find()) await go(hubAddress(hub, 'notifications'));
      find()?.focus();
    },
    compose: () => go(hubAddress(hub, 'compose')),
  };
});
let isEnding = false;
api.events.addEventListener('expired', async () => {
  // Concurrent requests are refused together; keep a form that is being filled in.
  if (isEnding || match(location.pathname.slice(root.length))?.route.isOpen) return;
  isEnding = true;
  await api.signOut().catch(() => {});
  await go(`${address('sign-in')}?expired=1&to=${encodeURIComponent(location.pathname + location.search)}`);
  isEnding = false;
});

/** Not awaited at the top level: pages import this module, and would wait for it to end. */
async function start() {
  // Fetched in parallel with the words and the session.
  match(location.pathname.slice(root.length))?.route.load().catch(() => {});
  await Promise.all([loadTexts(), api.restore().catch(() => {})]);
  await render();
  document.documentElement.dataset.ready = '';
}
void start();
