// @ts-check
// A payload as the device would show it: drawn, not sent. In the end the phone and its owner decide
// whether and how it is shown.

import { platforms } from './platforms.js';
import { t } from './text.js';
import { el, svg } from './view.js';

/** @typedef {{title: string, subtitle?: string, body: string, badge?: string, actions: string[], isSilent: boolean}} Shown silent: for the app alone */

/**
 * @param {string} platform
 * @param {string} payload as it goes to the push service
 * @param {string} [app] what stands for the app's name
 */
export function preview(platform, payload, app = t('preview.app')) {
  const shown = read(platform, payload);
  const kind = platform === 'apns' ? 'ios' : ['wns', 'mpns'].includes(platform) ? 'windows' : platform === 'browser' ? 'web' : 'android';
  const name = platforms[platform]?.name ?? platform;
  return el('figure', { class: 'device' },
    el('div', { class: `screen ${kind}` }, shown.isSilent
      ? el('p', { class: 'silent' }, t('preview.silent')) : draw(kind, shown, app)),
    el('figcaption', null, t(`preview.${kind}`, { platform: name })));
}

/**
 * @param {string} kind
 * @param {Shown} shown
 * @param {string} app
 */
function draw(kind, { title, subtitle, body, badge, actions }, app) {
  const icon = svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' },
    svg('path', { d: 'M12 3a5 5 0 0 0-5 5c0 5-2 6-2 8h14c0-2-2-3-2-8a5 5 0 0 0-5-5zm-2 15a2 2 0 0 0 4 0z' }));
  const line = (/** @type {string} */ text, /** @type {string} */ name) => text && el('bdi', { class: name }, text);
  const head = el('span', { class: 'head' }, el('span', { class: 'app' }, app), el('span', { class: 'when' }, t('preview.now')));
  const words = [line(title, 'title'), subtitle ? line(subtitle, 'title sub') : null, line(body, 'body')];
  const buttons = actions.length > 0 && el('span', { class: 'choices' }, actions.slice(0, 5).map((text) => el('bdi', null, text)));
  return el('div', { class: 'bubble' },
    el('span', { class: 'badged' }, icon, badge && el('span', { class: 'count' }, badge)),
    el('div', { class: 'words' }, kind === 'ios'
      ? [el('span', { class: 'head' }, line(title || app, 'title'), el('span', { class: 'when' }, t('preview.now'))), ...words.slice(1)]
      : [head, ...words], buttons));
}

/**
 * The part of a payload that a person sees.
 * @param {string} platform
 * @param {string} payload
 * @returns {Shown}
 */
export function read(platform, payload) {
  const nothing = { title: '', body: '', actions: [], isSilent: true };
  if (['wns', 'mpns'].includes(platform)) return readXML(payload);
  let value;
  try {
    value = JSON.parse(payload);
  } catch {
    return platforms[platform]?.phone?.showsText && payload ? { ...nothing, body: payload, isSilent: false } : nothing;
  }
  const text = (/** @type {any} */ part) => typeof part === 'string' || typeof part === 'number' ? String(part) : '';
  /** @param {...any} parts the first that says something */
  const first = (...parts) => parts.map(text).find((part) => part !== '') ?? '';
  if (platform === 'apns') {
    const aps = value?.aps ?? {};
    const alert = typeof aps.alert === 'string' ? { body: aps.alert } : aps.alert ?? {};
    const title = first(alert.title, alert['title-loc-key']);
    const body = first(alert.body, alert['loc-key']);
    const state = aps['content-state'] ? JSON.stringify(aps['content-state']) : '';
    return {
      title, subtitle: first(alert.subtitle), body: body || (title ? '' : state), badge: text(aps.badge),
      actions: [], isSilent: !title && !body && !state,
    };
  }
  if (platform === 'fcmv1') {
    // A device gets it without the document around it.
    const message = value?.message ?? value ?? {};
    const [own, android] = [message.notification ?? {}, message.android?.notification ?? {}];
    const data = message.data ?? {};
    return shown(first(android.title, own.title, data.title), first(android.body, own.body, data.message, data.body));
  }
  if (platform === 'browser') {
    const part = value?.notification ?? value;
    if (typeof part !== 'object' || part === null) return shown('', text(part) || payload);
    return {
      ...shown(first(part.title), first(part.body, part.options?.body, part.message)),
      actions: Array.isArray(part.actions) ? part.actions.map((/** @type {any} */ action) => text(action?.title)) : [], isSilent: false,
    };
  }
  const data = value?.data ?? {};
  return shown(first(value?.title, value?.notification?.title, data.title),
    first(value?.description, value?.notification?.body, data.message, data.body));

  /**
   * @param {string} title
   * @param {string} body
   * @returns {Shown}
   */
  function shown(title, body) {
    return { title, body, actions: [], isSilent: !title && !body };
  }
}

/**
 * @param {string} payload
 * @returns {Shown}
 */
function readXML(payload) {
  const plain = (/** @type {string} */ text) => text
    .replace(/<!\[CDATA\[([^]*?)\]\]>/g, (_, inner) => inner.replace(/&/g, '&amp;'))
    .replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"').replace(/&apos;/g, "'")
    .replace(/&amp;/g, '&').trim();
  const texts = [...payload.matchAll(/<(?:\w+:)?text\d?(?:\s[^>]*)?>([^]*?)<\/(?:\w+:)?text\d?>/gi)].map((match) => plain(match[1]));
  const actions = [...payload.matchAll(/<action\s[^>]*?content=["']([^"']*)["']/g)].map((match) => plain(match[1]));
  const badge = /<badge\s[^>]*?value=["']([^"']*)["']/.exec(payload)?.[1];
  return {
    title: texts[0] ?? (badge ? t('preview.badge', { value: plain(badge) }) : ''), body: texts.slice(1).join('\n'),
    actions, isSilent: texts.length === 0 && !badge,
  };
}
