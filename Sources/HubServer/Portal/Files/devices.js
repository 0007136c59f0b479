// @ts-check
// Devices as the portal's pages share them: reading installations and registrations, and their display in
// lists.

import * as api from './api.js';
import { platformName, platforms } from './platforms.js';
import { t } from './text.js';
import { badge, chips, data, el, link, moment, short, svg } from './view.js';
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
 * The registrations of an installation with what only a search by handle tells of them; none of a device that nothing
 * reaches any more.
 * @param {string} hub
 * @param {Installation} device
 * @param {AbortSignal} signal
 * @returns {Promise<{template?: string | null, endpoint?: string | null, confirmedTime?: string}[]>}
 */
export async function ownRegistrations(hub, device, signal) {
  const { registrations } = await api.json(api.at(hub, 'devices', 'search'), { method: 'POST', body: { handle: handleOf(device) }, signal });
  return registrations.filter((/** @type {any} */ one) => one.installationId === device.installationId);
}

/**
 * When an app last registered a device, or somebody changed it; null where the hub does not know.
 * @param {{confirmedTime?: string}[]} registrations
 * @returns {string | null}
 */
export const lastWritten = (registrations) => registrations.map(({ confirmedTime }) => confirmedTime ?? '').sort().at(-1) || null;

/** @type {Record<string, string>} */
const drawings = {
  phone: 'M5.8 1.5h4.4c1 0 1.8.8 1.8 1.8v9.4c0 1-.8 1.8-1.8 1.8H5.8c-1 0-1.8-.8-1.8-1.8V3.3c0-1 .8-1.8 1.8-1.8zM7 12.3h2',
  browser: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM1.8 8h12.4M8 1.8c4.3 4 4.3 8.4 0 12.4-4.3-4-4.3-8.4 0-12.4z',
  windows: 'M4 3h8a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM1.5 12.8h13',
  person: 'M8 2a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM2.5 14.2c.5-3 2.5-4.6 5.5-4.6s5 1.6 5.5 4.6',
};

/**
 * The drawing of a person or of a platform's device, for the head of its page or card.
 * @param {string} name 'person' or a platform
 */
export const emblem = (name) => el('span', { class: 'emblem' }, svg('svg', { class: 'symbol', viewBox: '0 0 16 16', 'aria-hidden': 'true' },
  svg('path', { d: drawings[name] ?? drawings[platforms[name]?.phone?.look ?? ''] ?? drawings.phone })));

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
