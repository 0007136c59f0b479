// @ts-check
// The emulator's control API (docs/protocol/emulator.md), which `belfry up` serves below the portal; and
// the handle and the template of a device of each push service.

import * as api from './api.js';

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
 */
export const events = (device, told, signal) =>
  api.stream(`${root}devices/${encodeURIComponent(device)}/events`, told, signal);

/**
 * @typedef {object} Kind a platform as the emulator has it
 * @property {string} pns
 * @property {string} name of a device of it
 * @property {'ios' | 'android' | 'windows' | 'browser' | 'tablet'} look
 * @property {(handle: Record<string, any>) => any} channel as an installation has it
 * @property {{body: string, headers?: Record<string, string>}} template
 */

/** @type {Record<string, Kind>} by the word of installations */
export const kinds = {
  apns: { pns: 'apns', name: 'iPhone', look: 'ios', channel: ({ token }) => token,
    template: { body: '{"aps":{"alert":"$(message)"}}' } },
  fcmv1: { pns: 'fcm', name: 'Android', look: 'android', channel: ({ token, fid }) => token ?? fid,
    template: { body: '{"message":{"notification":{"title":"PushDemo","body":"$(message)"}}}' } },
  browser: { pns: 'webpush', name: 'Browser', look: 'browser', channel: ({ endpoint, p256dh, auth }) => ({ endpoint, p256dh, auth }),
    template: { body: '{"title":"PushDemo","body":"$(message)"}' } },
  wns: { pns: 'wns', name: 'Windows', look: 'windows', channel: ({ channelUri }) => channelUri,
    template: {
      body: '<toast><visual><binding template="ToastGeneric"><text>PushDemo</text><text>$(message)</text></binding></visual></toast>',
      headers: { 'X-WNS-Type': 'wns/toast' },
    } },
  adm: { pns: 'adm', name: 'Fire', look: 'tablet', channel: ({ registrationId }) => registrationId,
    template: { body: '{"data":{"title":"PushDemo","message":"$(message)"}}' } },
  baidu: { pns: 'baidu', name: 'Baidu', look: 'android', channel: ({ userId, channelId }) => `${userId}-${channelId}`,
    template: { body: '{"title":"PushDemo","description":"$(message)"}', headers: { 'X-Baidu-Message-Type': '1' } } },
  xiaomi: { pns: 'xiaomi', name: 'Xiaomi', look: 'android', channel: ({ regId }) => regId,
    template: { body: '{"title":"PushDemo","description":"$(message)","payload":"$(message)"}' } },
};

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
