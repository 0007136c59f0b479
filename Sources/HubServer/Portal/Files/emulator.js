// @ts-check
// The emulator's control API (docs/protocol/emulator.md), which `belfry up` puts behind the portal.

import * as api from './api.js';
import { platforms } from './platforms.js';
import { pause } from './view.js';

const root = '/$portal/emulator/v1/';

/**
 * @typedef {{deviceId: string, appId: string, pns: string, handle: Record<string, any>, online: boolean, state: string}} Device
 * @typedef {{appId: string, pns: string, [name: string]: any}} App
 * @typedef {object} Arrival
 * @property {number} seq
 * @property {string} id
 * @property {string} deviceId
 * @property {number} deliveredAt
 * @property {string} from
 * @property {Record<string, string>} headers
 * @property {any} payload
 * @property {string} payloadBase64
 * @property {number} requestSeq
 */

/**
 * @param {string} path
 * @param {{method?: string, body?: object, query?: Record<string, any>, signal?: AbortSignal}} [options]
 */
export async function control(path, options = {}) {
  const reply = await api.request(root + path, options);
  const text = await reply.text();
  return text ? JSON.parse(text) : {};
}

/**
 * @param {string} device
 * @param {(event: string, data: any) => void} told
 * @param {AbortSignal} signal
 * @param {number} [after] the last event that is known; without it, the stream begins now
 */
export const events = (device, told, signal, after) =>
  api.stream(`${root}devices/${encodeURIComponent(device)}/events`, told, signal, { after });

/**
 * Waits for the next request to the push services, or until the time is over, and then as long as lets requests that
 * come together be read together.
 * @param {AbortSignal} signal
 * @returns {(ms: number) => Promise<void>}
 */
export function nextRequest(signal) {
  let wake = () => {};
  let came = false;
  // Without the stream, as with an older emulator elsewhere, only the time counts.
  api.stream(root + 'requests/events', () => { came = true; wake(); }, signal).catch(() => {});
  return async (ms) => {
    if (!came) await Promise.race([pause(ms, signal), new Promise((resolve) => { wake = () => resolve(undefined); })]);
    if (came) await pause(20, signal);
    came = false;
  };
}

/** @type {Record<string, import('./platforms.js').Kind>} by the word of installations */
export const kinds = Object.fromEntries(Object.entries(platforms).flatMap(([key, { phone }]) => phone ? [[key, phone]] : []));

/**
 * A device's handle as an installation has it.
 * @param {import('./platforms.js').Kind} kind
 * @param {Record<string, any>} handle
 */
export function channelOf({ handle: names, look }, handle) {
  if (look === 'browser') return Object.fromEntries(names.map((name) => [name, handle[name]]));
  // What joins the two ids of Baidu. A device of FCM may have a fid in place of a token.
  return names.map((name) => handle[name] ?? handle.fid).join('-');
}

/** @param {string} pns of a service, or of its token service */
export const platformOfService = (pns) => Object.keys(kinds).find((key) => kinds[key].pns === pns.replace(/-token$/, '')) ?? pns;

/**
 * The app for new devices of a service: the last one, which is the hub's.
 * @param {App[]} apps
 * @param {string} pns
 */
export function appOf(apps, pns) {
  const own = apps.filter((app) => app.pns === pns);
  return pns === 'apns' ? own[0] : own[own.length - 1];
}

/** @param {string} base64 */
export function decoded(base64) {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
}
