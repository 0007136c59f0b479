// @ts-check
// Devices as the portal's pages share them: reading installations and registrations, and their display in
// lists.

import * as api from './api.js';
import { platformName, platforms } from './platforms.js';
import { t } from './text.js';
import { badge, chips, data, el, link, moment, short } from './view.js';
import { textOf } from './xml.js';

/**
 * @typedef {{body: string, headers?: Record<string, string>, expiry?: string, tags?: string[]}} Template
 *
 * @typedef {object} Installation
 * @property {string} installationId
 * @property {string} platform
 * @property {string | Record<string, string>} pushChannel
 * @property {boolean} [pushChannelExpired]
 * @property {string} [expirationTime]
 * @property {string} [userId]
 * @property {string[]} [tags]
 * @property {Record<string, Template>} [templates]
 *
 * @typedef {object} Registration
 * @property {string} registrationId
 * @property {string} platform
 * @property {string} [installationId]
 * @property {string[]} tags
 * @property {string} [template]
 * @property {string} [expirationTime]
 * @property {Element} [description] where it was read from a list of registrations
 */

/**
 * The device's handle, as one text.
 * @param {Installation} installation
 */
export const handleOf = ({ pushChannel }) =>
  typeof pushChannel === 'string' ? pushChannel : JSON.stringify(pushChannel);

/**
 * Years that mean never.
 * @param {string | undefined} value
 */
export const isNever = (value) => !value || value.startsWith('9999');

// --- The operator's own devices --------------------------------------------------------------

/** Maximum number of devices of a test send. */
const mostMine = 10;
const marksOf = (/** @type {string} */ hub) => `belfry.mine.${hub}`;

/**
 * The installations that this browser's person has called theirs.
 * @param {string} hub
 * @returns {string[]}
 */
export function markedMine(hub) {
  try {
    const all = JSON.parse(localStorage.getItem(marksOf(hub)) ?? '[]');
    return Array.isArray(all) ? all.filter((id) => typeof id === 'string') : [];
  } catch {
    return [];
  }
}

/**
 * @param {string} hub
 * @param {string} id
 * @param {boolean} isMine
 */
export function markMine(hub, id, isMine) {
  const others = markedMine(hub).filter((one) => one !== id);
  localStorage.setItem(marksOf(hub), JSON.stringify(isMine ? [id, ...others].slice(0, mostMine) : others));
}

/**
 * The expression for all devices of a user.
 * @param {string} id
 */
export const userTag = (id) => `$UserId:{${id}}`;

/**
 * The expression for one device.
 * @param {string} id
 */
export const deviceTag = (id) => `$InstallationId:{${id}}`;

/**
 * The user, or the device, whose tag is the whole expression; '' for any other.
 * @param {string} expression
 */
export function whoseTag(expression) {
  const [, keyword, id] = /^\$(UserId|InstallationId):\{([^{}]*)\}$/i.exec(expression) ?? ['', '', ''];
  const isUser = keyword.toLowerCase() === 'userid';
  return { user: isUser ? id : '', device: isUser ? '' : id };
}

/**
 * The expression for the operator's own devices: those of their name, and those marked; '' if there can be none.
 * @param {string} hub
 */
export function mine(hub) {
  const identity = api.who();
  return [...identity?.kind === 'session' ? [userTag(identity.user)] : [], ...markedMine(hub).map(deviceTag)].join(' || ');
}

/** @param {Installation} installation */
export const isReachable = ({ pushChannelExpired, expirationTime }) => !pushChannelExpired
  && !(expirationTime && !isNever(expirationTime) && Date.parse(expirationTime) < Date.now());

/** @param {Installation} installation */
export const stateOf = (installation) => isReachable(installation) ? badge(t('devices.alive'), 'good')
  : installation.pushChannelExpired ? badge(t('devices.dead'), 'bad') : badge(t('devices.over'), 'note');

/**
 * @param {string[] | undefined} tags
 * @param {number} [most]
 */
function someTags(tags = [], most = 4) {
  const rest = tags.length - most;
  return [chips(tags.slice(0, most)), rest > 0 && el('span', { class: 'hint' }, ' ' + t('devices.moreTags', { n: rest }))];
}

/**
 * @param {import('./app.js').Page} page
 * @returns {import('./view.js').Column<Installation>[]}
 */
export const installationColumns = (page) => [
  { head: t('devices.id'), cell: (item) => link(page.to('devices', item.installationId), short(item.installationId, 28)) },
  { head: t('devices.platform'), cell: (item) => platformName(item.platform) },
  { head: t('devices.user'), cell: (item) => item.userId ? link(page.to('users', item.userId), short(item.userId, 24)) : '–' },
  { head: t('devices.tags'), cell: (item) => someTags(item.tags) },
  { head: t('devices.state'), cell: stateOf },
];

/**
 * @param {import('./app.js').Page} page
 * @returns {import('./view.js').Column<Registration>[]}
 */
export const registrationColumns = (page) => [
  { head: t('devices.registration'), cell: (item) => short(item.registrationId, 28) },
  { head: t('devices.platform'), cell: (item) => platformName(item.platform) },
  { head: t('devices.ofInstallation'), cell: (item) => item.installationId
    ? link(page.to('devices', item.installationId), short(item.installationId, 24)) : '–' },
  { head: t('devices.kind'), cell: (item) => item.template === undefined ? t('devices.native') : data(item.template || t('devices.template')) },
  { head: t('devices.tags'), cell: (item) => someTags(item.tags) },
  { head: t('devices.until'), cell: (item) => isNever(item.expirationTime) ? t('devices.never') : moment(item.expirationTime) },
];

/**
 * A page of the hub's registrations, which are Atom.
 * @param {string} hub
 * @param {string} tag '' for all
 * @param {string | null} from
 * @param {AbortSignal} signal
 * @returns {Promise<{items: Registration[], next: string | null}>}
 */
export async function registrations(hub, tag, from, signal) {
  const path = tag ? api.at(hub, 'tags', tag, 'registrations') : api.at(hub, 'registrations');
  const { document, header } = await api.xml(path, { query: { continuationtoken: from }, signal });
  const items = [...document.getElementsByTagName('content')].flatMap((content) => {
    const node = content.firstElementChild;
    return node ? [read(node)] : [];
  });
  return { items, next: header('x-ms-continuationtoken') };
}

/**
 * @param {Element} node
 * @returns {Registration}
 */
function read(node) {
  const text = (/** @type {string} */ name) => textOf(node, name);
  const tags = text('Tags').split(',').map((tag) => tag.trim()).filter(Boolean);
  const isTemplate = node.localName.includes('Template');
  return {
    registrationId: text('RegistrationId'), tags,
    platform: Object.keys(platforms).find((key) => node.localName.startsWith(platforms[key].prefix)) ?? '',
    installationId: tags.map((tag) => whoseTag(tag).device).find(Boolean),
    template: isTemplate ? text('TemplateName') : undefined, expirationTime: text('ExpirationTime'), description: node,
  };
}
