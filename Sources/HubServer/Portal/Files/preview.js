// @ts-check
// A payload as the device would show it: drawn, not sent. In the end the phone and its owner decide
// whether and how it is shown.

import { dress } from './dress.js';
import { every, parse, textIn } from './markup.js';
import { urlOf } from './message.js';
import { platforms } from './platforms.js';
import { t, today } from './text.js';
import { el, svg } from './view.js';

/**
 * @typedef {object} Shown
 * @property {string} title
 * @property {string} [subtitle]
 * @property {string} body
 * @property {string} [badge]
 * @property {string} [image] never fetched here
 * @property {string} [link]
 * @property {string | null} [sound] null: none
 * @property {string[]} actions
 * @property {boolean} isSilent for the app alone
 */

/** @param {string} platform */
const kindOf = (platform) => platform === 'apns' ? 'ios' : ['wns', 'mpns'].includes(platform) ? 'windows' : platform === 'browser' ? 'web' : 'android';

/**
 * @param {string} platform
 * @param {string} payload as it goes to the push service
 * @param {{app?: string, isSmall?: boolean, silent?: string}} [options] `app` stands for the app's name; `silent` is said
 *   where there is nothing to show
 */
export function preview(platform, payload, options = {}) {
  dress('preview.css');
  const { app = t('preview.app'), isSmall = false, silent = t('preview.silent') } = options;
  const shown = read(platform, payload);
  const kind = kindOf(platform);
  const pane = shown.isSilent ? el('p', { class: 'silent' }, silent) : draw[kind](shown, app);
  return el('figure', { class: `shown-on on-${kind}${isSmall ? ' small' : ''}` },
    el('div', { class: 'glass' }, around[kind](pane)),
    el('figcaption', null, t(`preview.${kind}`, { platform: platforms[platform]?.name ?? platform })));
}

/**
 * What a payload says beside its words.
 * @param {string} platform
 * @param {string} payload
 */
export function remarks(platform, payload) {
  const { isSilent, sound, badge, link, image } = read(platform, payload);
  if (isSilent) return [];
  const host = link && (urlOf(link)?.host || link);
  return /** @type {[keyof typeof symbols, string][]} */ ([
    ['bell', [sound === undefined ? '' : t(sound === null ? 'preview.noSound' : sound === 'default' ? 'preview.sound' : 'preview.soundFile', { name: sound ?? '' }),
      badge ? t('preview.badge', { value: badge }) : ''].filter(Boolean).join(', ')],
    ['link', host ? t('preview.link', { host }) : ''],
    ['picture', image ? t('preview.image') : ''],
  ].filter(([, text]) => text));
}

const symbols = {
  size: 'M3 3v10h10M6 10V7.5M9 10V5M12 10V8.5',
  bell: 'M8 2a4 4 0 0 0-4 4c0 3.5-1.5 4.5-1.5 5.5h11c0-1-1.5-2-1.5-5.5a4 4 0 0 0-4-4zM6.500 13.8h3',
  link: 'M6.500 9.500 9.500 6.500M7 4.500 8.700 2.800a3.200 3.200 0 0 1 4.500 4.500L11.500 9M9 11.500l-1.700 1.700a3.200 3.200 0 0 1-4.500-4.500L4.500 7',
  picture: 'M3.500 3h9A1.500 1.500 0 0 1 14 4.500v7a1.500 1.500 0 0 1-1.500 1.500h-9A1.500 1.500 0 0 1 2 11.500v-7A1.500 1.500 0 0 1 3.500 3zM4.700 6.500a1 1 0 1 0 2 0 1 1 0 0 0-2 0M3 12l4-3.500 2.300 2 2-1.500L14 11',
  tick: 'm3 8.5 3.2 3.2L13 5',
  into: 'm6 3.5 4.5 4.5L6 12.5',
  phone: 'M5.500 1.500h5a1 1 0 0 1 1 1v11a1 1 0 0 1-1 1h-5a1 1 0 0 1-1-1v-11a1 1 0 0 1 1-1zM7.300 12.500h1.400',
};
/**
 * @param {keyof typeof symbols} name
 * @param {string} [more] classes
 */
export const symbol = (name, more = '') => svg('svg', { class: `symbol ${more}`, viewBox: '0 0 16 16', 'aria-hidden': 'true' }, svg('path', { d: symbols[name] }));

const icon = (badge = '') => el('span', { class: 'app-icon' }, svg('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' },
  svg('path', { d: 'M12 3a5 5 0 0 0-5 5c0 5-2 6-2 8h14c0-2-2-3-2-8a5 5 0 0 0-5-5zm-2 15a2 2 0 0 0 4 0z' })),
badge && badge !== '0' && el('span', { class: 'count' }, badge));
/** @param {string} [more] */
const picture = (more = '') => el('span', { class: `picture ${more}` }, symbol('picture'));
/**
 * @param {string | undefined} text
 * @param {string} name
 */
const line = (text, name) => text ? el('bdi', { class: name }, text) : null;
/** @param {string[]} actions */
const buttons = (actions) => actions.length > 0 && el('span', { class: 'acts' }, actions.slice(0, 5).map((text) => el('bdi', { class: 'key' }, text)));

/** @type {Record<string, (shown: Shown, app: string) => HTMLElement>} */
const draw = {
  ios: ({ title, subtitle, body, badge, image }, app) => el('div', { class: 'pane' }, icon(badge),
    el('div', { class: 'words' }, line(title || app, 'title'), line(subtitle, 'title'), line(body, 'body')),
    el('div', { class: 'end' }, el('span', { class: 'quietly' }, t('preview.now')), image && picture('thumb'))),
  android: ({ title, body, image, badge, actions }, app) => el('div', { class: 'pane' },
    el('span', { class: 'head' }, icon(badge), el('span', { class: 'quietly' }, `${app} · ${t('preview.now')}`)),
    line(title, 'title'), line(body, 'body'), image && picture(), buttons(actions)),
  web: ({ title, body, image, actions }, app) => el('div', { class: 'pane' }, image && picture(),
    el('div', { class: 'in' }, icon(), el('div', null, line(title, 'title'), line(body, 'body'), el('span', { class: 'quietly' }, app))), buttons(actions)),
  windows: ({ title, body, image, actions }, app) => el('div', { class: 'pane' },
    el('span', { class: 'head' }, icon(), el('span', { class: 'quietly' }, app)), image && picture(),
    el('div', { class: 'in' }, line(title, 'title'), line(body, 'body')), buttons(actions)),
};

/** @type {Record<string, (pane: HTMLElement) => (HTMLElement | string)[]>} what else is on such a screen */
const around = {
  ios: (pane) => [el('span', { class: 'island' }), el('div', { class: 'clock', 'aria-hidden': 'true' }, el('span', null, today('long')), el('b', null, '9:41')), pane,
    el('span', { class: 'home' })],
  android: (pane) => [el('div', { class: 'top', 'aria-hidden': 'true' }, el('span', null, '9:41'), el('span', null, today('short'))), pane],
  web: (pane) => [pane],
  windows: (pane) => [pane, el('div', { class: 'taskbar', 'aria-hidden': 'true' }, '9:41')],
};

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
      image: first(value?.image), link: first(value?.link), sound: first(aps.sound?.name, aps.sound) || null,
      actions: [], isSilent: !title && !body && !state,
    };
  }
  if (platform === 'fcmv1') {
    // A device gets it without the document around it.
    const message = value?.message ?? value ?? {};
    const [own, android] = [message.notification ?? {}, message.android?.notification ?? {}];
    const data = message.data ?? {};
    return {
      ...shown(first(android.title, own.title, data.title), first(android.body, own.body, data.message, data.body)),
      badge: text(android.notification_count), image: first(android.image, own.image), link: first(data.link, android.click_action),
      sound: android.default_sound === true ? 'default' : first(android.sound) || null, actions: [first(data.button)].filter(Boolean),
    };
  }
  if (platform === 'browser') {
    const part = value?.notification ?? value;
    if (typeof part !== 'object' || part === null) return shown('', text(part) || payload);
    return {
      ...shown(first(part.title), first(part.body, part.options?.body, part.message)),
      image: first(part.image), link: first(part.url, part.data?.url), sound: part.silent === true ? null : undefined,
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
  const markup = parse(payload);
  const all = markup ? every(markup.root) : [];
  const texts = all.filter((mark) => /^(\w+:)?text\d?$/i.test(mark.name)).map((mark) => textIn(mark).trim());
  const of = (/** @type {string} */ name) => all.filter((mark) => mark.name === name).map((mark) => mark.attributes);
  const [audio, badge] = [of('audio')[0], markup?.root.name === 'badge' ? markup.root.attributes.get('value') : undefined];
  const isToast = markup?.root.name === 'toast';
  return {
    title: texts[0] ?? (badge ? t('preview.badge', { value: badge }) : ''), body: texts.slice(1).filter(Boolean).join('\n'),
    image: of('image').find((one) => one.get('placement') === 'hero')?.get('src'), link: isToast ? markup?.root.attributes.get('launch') : undefined,
    sound: !isToast ? undefined : audio?.get('silent') === 'true' ? null : audio?.get('src')?.replace(/^ms-appx:\/\/\//, '') ?? 'default',
    actions: of('action').map((one) => one.get('content') ?? ''), isSilent: texts.length === 0 && !badge,
  };
}
