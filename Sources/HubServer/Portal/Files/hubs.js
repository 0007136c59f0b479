// @ts-check
// Descriptions of hubs (docs/protocol/rest.md, section 8): reading, and changing one member at a time so
// that the rest, including credentials, stays unchanged.

import * as api from './api.js';
import { platforms } from './platforms.js';
import { atom, connect, entryOf, made, member, textOf } from './xml.js';

/** In the order in which the description has them; credentials that the original does not have come last. */
const original = [
  'ApnsCredential', 'RegistrationTtl', 'WnsCredential', 'AuthorizationRules', 'GcmCredential',
  'MpnsCredential', 'UserMetadata', 'AdmCredential', 'BaiduCredential', 'Status', 'FcmV1Credential',
  'BrowserCredential',
];
const members = [...new Set([...original, ...Object.values(platforms).map(({ element }) => element)])];

/**
 * @typedef {object} Hub
 * @property {string} name
 * @property {string} updated
 * @property {boolean} isDisabled
 * @property {string} ttl an ISO 8601 duration
 * @property {string} metadata
 * @property {Element} description
 *
 * @typedef {{platform: string, expiresAt?: string}} Credential of a platform, named as in installations
 */

/**
 * A hub's credentials: its description has them only shortly after an operator has confirmed their identity.
 * @param {string} hub
 * @param {AbortSignal} [signal]
 * @returns {Promise<Credential[]>}
 */
export const credentialsOf = async (hub, signal) => (await api.json(api.at(hub, 'credentials'), { signal })).credentials;

/**
 * @param {Element} entry
 * @returns {Hub}
 */
function read(entry) {
  const description = entry.getElementsByTagNameNS(connect, 'NotificationHubDescription')[0];
  return {
    name: textOf(entry, 'title'), updated: textOf(entry, 'updated'), description,
    isDisabled: textOf(description, 'Status') === 'true', ttl: textOf(description, 'RegistrationTtl'),
    metadata: textOf(description, 'UserMetadata'),
  };
}

/**
 * All hubs of the server; needs a key of the namespace.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Hub[]>}
 */
export async function allHubs(signal) {
  const { document } = await api.xml('/$Resources/NotificationHubs', { signal });
  return [...document.getElementsByTagNameNS(atom, 'entry')].map(read);
}

/**
 * @param {string} name
 * @param {AbortSignal} [signal]
 * @returns {Promise<Hub>}
 */
export async function oneHub(name, signal) {
  const { document } = await api.xml(api.at(name), { signal });
  // For a hub that does not exist, Azure returns an empty list, and so does Belfry.
  if (document.documentElement.localName !== 'entry') throw new api.APIError(404, 'hubs.gone');
  return read(document.documentElement);
}

/**
 * @param {string} name
 * @param {Record<string, string>} values of members that are texts; '' leaves one out
 */
export async function createHub(name, values) {
  const { description, text } = entryOf('NotificationHubDescription');
  for (const [key, value] of Object.entries(values)) set(description, key, value);
  await api.xml(api.at(name), { method: 'PUT', body: text() }).catch((error) => {
    throw error.status === 409 ? new api.APIError(409, 'hubs.taken', error.trackingId) : error;
  });
}

/**
 * Changes a hub that was read before, unless somebody has changed it since. (Hubs have no etag, so the
 * time of the last change is compared.)
 * @param {Hub} hub
 * @param {(description: Element) => void} change
 * @returns {Promise<Hub>} as it is now
 */
export async function changeHub(hub, change) {
  const now = await oneHub(hub.name);
  const serializer = new XMLSerializer();
  const isSame = now.updated === hub.updated
    && serializer.serializeToString(comparable(now)) === serializer.serializeToString(comparable(hub));
  if (!isSame) throw new api.APIError(412, 'hubs.conflict');
  change(now.description);
  const entry = /** @type {Document} */ (now.description.ownerDocument);
  const { document } = await api.xml(api.at(hub.name), {
    method: 'PUT', headers: { 'If-Match': '*' }, body: serializer.serializeToString(entry),
  });
  return read(document.documentElement);
}

/**
 * Whether a credential has expired or soon will. Warns as early as the server does.
 * @param {string | undefined} expiresAt
 * @returns {'endless' | 'over' | 'soon' | 'valid'}
 */
export function standing(expiresAt) {
  if (!expiresAt) return 'endless';
  const days = (Date.parse(expiresAt) - Date.now()) / 86_400_000;
  return days < 0 ? 'over' : days < 30 ? 'soon' : 'valid';
}

/**
 * An operator's description has keys and credentials only shortly after they have confirmed their identity.
 * @param {Hub} hub
 */
function comparable({ description }) {
  if (api.who()?.kind !== 'session') return description;
  const copy = /** @type {Element} */ (description.cloneNode(true));
  for (const node of [...copy.getElementsByTagName('*')]) {
    if (/^(Primary|Secondary)Key$|Credential$/.test(node.localName)) node.remove();
  }
  return copy;
}

/**
 * Sets a member that is a text; '' removes it.
 * @param {Element} description
 * @param {string} name
 * @param {string} value
 */
export function set(description, name, value) {
  member(description, name)?.remove();
  if (value === '') return;
  const rest = members.slice(members.indexOf(name) + 1);
  description.insertBefore(made(description, name, value), [...description.children].find((node) => rest.includes(node.localName)) ?? null);
}

/** @param {string} name */
export const deleteHub = (name) => api.request(api.at(name), { method: 'DELETE' });
