// @ts-check
// Rules for payloads: samples, sizes and faults, checked while typing. The hub decides (a dry
// run asks it); this only shows it earlier. docs/protocol/rest.md, sections 5.2 and 9.

import { parse } from './markup.js';
import { notificationLimit, platformOf, platforms } from './platforms.js';
import { t } from './text.js';

/**
 * @typedef {{size: number, limit: number | null, faults: string[], hints: string[]}} Verdict
 *   faults are refused; hints are likely mistakes
 */

/** @param {any} value */
const pretty = (value) => JSON.stringify(value, null, 2);

/** @type {Record<string, import('./platforms.js').Sample[]>} by format */
export const samples = {
  template: [
    { name: 'payload.message', body: pretty({ message: 'Hello from Belfry!' }) },
    { name: 'payload.titleAndMessage', body: pretty({ title: 'Goal!', message: 'Oslo leads 2:1' }) },
  ],
  ...Object.fromEntries(Object.values(platforms).map(({ format, samples }) =>
    [format, samples.map((sample) => ({ ...sample, body: tidy(sample.body) }))])),
};

/**
 * Names of headers that go to the push service, with common values.
 * @type {Record<string, Record<string, string[]>>}
 */
export const headerNames = {
  apple: {
    'apns-push-type': ['alert', 'background', 'liveactivity', 'voip', 'location', 'complication', 'fileprovider', 'mdm', 'pushtotalk', 'controls', 'widgets'],
    'apns-priority': ['10', '5', '1'], 'apns-expiration': ['0'], 'apns-collapse-id': [], 'apns-topic': [],
  },
  windows: {
    'X-WNS-Type': ['wns/toast', 'wns/tile', 'wns/badge', 'wns/raw'], 'X-WNS-Cache-Policy': ['cache', 'no-cache'],
    'X-WNS-TTL': [], 'X-WNS-Tag': [], 'X-WNS-Group': [],
  },
  browser: { TTL: ['0', '600', '86400'], Urgency: ['very-low', 'low', 'normal', 'high'], Topic: [] },
  baidu: { 'X-Baidu-Message-Type': ['0', '1'] },
  windowsphone: { 'X-WindowsPhone-Target': ['toast', 'token'], 'X-NotificationClass': ['1', '2', '3'] },
};
headerNames.template = { ...headerNames.apple, ...headerNames.windows, ...headerNames.browser };

const encoder = new TextEncoder();
/** @param {string} text */
const size = (text) => encoder.encode(text).length;
/** @param {any} value */
export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Members of `aps`, with the type of each.
 * @type {Record<string, (value: any) => boolean>}
 */
const aps = {
  alert: (value) => typeof value === 'string' || isObject(value),
  badge: (value) => Number.isInteger(value) && value >= 0,
  sound: (value) => typeof value === 'string' || isObject(value),
  'thread-id': isText, category: isText, 'target-content-id': isText, 'filter-criteria': isText,
  'content-available': (value) => value === 1 || value === 0,
  'mutable-content': (value) => value === 1 || value === 0,
  'interruption-level': (value) => ['passive', 'active', 'time-sensitive', 'critical'].includes(value),
  'relevance-score': (value) => typeof value === 'number',
  timestamp: Number.isInteger, event: (value) => ['start', 'update', 'end'].includes(value),
  'content-state': isObject, 'stale-date': Number.isInteger, 'dismissal-date': Number.isInteger,
  'attributes-type': isText, attributes: isObject, 'url-args': Array.isArray, 'input-push-token': () => true,
  'input-push-channel': isText, 'content-changed': () => true,
};
const alertMembers = new Set([
  'title', 'subtitle', 'body', 'launch-image', 'title-loc-key', 'title-loc-args', 'subtitle-loc-key',
  'subtitle-loc-args', 'loc-key', 'loc-args', 'action', 'action-loc-key', 'summary-arg', 'summary-arg-count',
]);
const fcmMembers = new Set(['name', 'data', 'notification', 'android', 'webpush', 'apns', 'fcm_options']);

/** @param {any} value */
function isText(value) {
  return typeof value === 'string';
}

/**
 * @param {string} format
 * @param {string} body
 * @param {Record<string, string>} headers
 * @returns {Verdict}
 */
export function check(format, body, headers = {}) {
  /** @type {Record<string, string>} */
  const given = {};
  for (const [name, value] of Object.entries(headers)) given[name.toLowerCase()] = value;
  const platform = platforms[platformOf(format) ?? ''];
  /** @type {Verdict} */
  const verdict = { size: size(body), limit: platform ? platform.limit : notificationLimit, faults: [], hints: [] };
  if (given['apns-push-type'] === 'voip' && format === 'apple') verdict.limit = 5120;
  const isRaw = given['x-wns-type']?.toLowerCase() === 'wns/raw';
  if (body.trim() === '') verdict.faults.push(t('payload.empty'));
  else if (platform?.form === 'xml') { if (!isRaw) checkXML(format, body, verdict); } else checkJSON(format, body, verdict);
  const limit = verdict.limit ?? notificationLimit;
  if (verdict.size > limit) verdict.faults.push(t('payload.tooLarge', { n: verdict.size - limit }));
  return verdict;
}

/**
 * @param {string} format
 * @param {string} body
 * @param {Verdict} verdict
 */
function checkJSON(format, body, verdict) {
  let value;
  try {
    value = JSON.parse(body);
  } catch (error) {
    verdict.faults.push(t('payload.noJSON', { why: place(body, /** @type {Error} */ (error).message) }));
    return;
  }
  if (format === 'browser') {
    if (isObject(value) && !('title' in value)) verdict.hints.push(t('payload.webTitle'));
    return;
  }
  if (!isObject(value)) {
    verdict.faults.push(t('payload.noObject'));
    return;
  }
  if (format === 'template') checkProperties(value, verdict);
  if (format === 'apple') checkApple(value, verdict);
  if (format === 'fcmv1') checkFCM(value, verdict);
  if (format === 'gcm' && ('to' in value || 'registration_ids' in value)) verdict.faults.push(t('payload.noTarget', { names: 'to, registration_ids' }));
  if (format === 'adm' && !isObject(value.data)) verdict.hints.push(t('payload.lacks', { name: 'data' }));
  if (format === 'xiaomi') {
    if (value.pass_through === 1 && !('payload' in value)) verdict.hints.push(t('payload.lacks', { name: 'payload' }));
    if (value.pass_through !== 1 && !(value.title && value.description)) verdict.hints.push(t('payload.lacks', { name: 'title, description' }));
  }
}

/**
 * @param {Record<string, any>} value
 * @param {Verdict} verdict
 */
function checkProperties(value, verdict) {
  const nested = Object.keys(value).filter((name) => typeof value[name] === 'object' && value[name] !== null);
  if (nested.length) verdict.faults.push(t('payload.nested', { names: nested.join(', ') }));
  if ('aps' in value) verdict.hints.push(t('payload.isNative', { platform: platforms.apns.name }));
}

/**
 * @param {Record<string, any>} value
 * @param {Verdict} verdict
 */
function checkApple(value, verdict) {
  if (!isObject(value.aps)) {
    if (!('mdm' in value)) verdict.faults.push(t('payload.lacks', { name: 'aps' }));
    return;
  }
  for (const [name, part] of Object.entries(value.aps)) {
    if (!Object.hasOwn(aps, name)) verdict.hints.push(t('payload.unknown', { name: `aps.${name}` }));
    else if (!aps[name](part)) verdict.hints.push(t('payload.wrong', { name: `aps.${name}` }));
  }
  if (isObject(value.aps.alert)) {
    for (const [name, part] of Object.entries(value.aps.alert)) {
      const fits = name.endsWith('-args') ? Array.isArray(part) : name === 'summary-arg-count' ? Number.isInteger(part) : isText(part);
      if (alertMembers.has(name) && !fits) verdict.hints.push(t('payload.wrong', { name: `aps.alert.${name}` }));
      if (!alertMembers.has(name)) verdict.hints.push(t('payload.unknown', { name: `aps.alert.${name}` }));
    }
  }
}

/**
 * @param {Record<string, any>} value
 * @param {Verdict} verdict
 */
function checkFCM(value, verdict) {
  const { message } = value;
  if (!isObject(message)) {
    verdict.faults.push(t('payload.lacks', { name: 'message' }));
    return;
  }
  // Google counts names and texts of these two, not the document around them.
  /** @type {(part: any) => number} */
  const count = (part) => {
    if (typeof part === 'string') return size(part);
    if (Array.isArray(part)) return part.reduce((all, inner) => all + count(inner), 0);
    if (!isObject(part)) return 0;
    return Object.entries(part).reduce((all, [name, inner]) => all + size(name) + count(inner), 0);
  };
  verdict.size = count(message.data) + count(message.notification);
  const targets = ['token', 'fid', 'topic', 'condition'].filter((name) => name in message);
  if (targets.length) verdict.faults.push(t('payload.noTarget', { names: targets.join(', ') }));
  for (const name of Object.keys(message)) {
    if (!fcmMembers.has(name) && !targets.includes(name)) verdict.hints.push(t('payload.unknownRefused', { name: `message.${name}` }));
  }
  for (const name of ['data', 'notification', 'android', 'webpush', 'apns', 'fcm_options']) {
    if (name in message && !isObject(message[name])) verdict.hints.push(t('payload.wrong', { name: `message.${name}` }));
  }
  for (const [name, part] of Object.entries(isObject(message.notification) ? message.notification : {})) {
    if (!['title', 'body', 'image'].includes(name)) verdict.hints.push(t('payload.unknownRefused', { name: `message.notification.${name}` }));
    else if (!isText(part)) verdict.hints.push(t('payload.text', { name: `message.notification.${name}` }));
  }
  for (const [name, part] of Object.entries(isObject(message.data) ? message.data : {})) {
    if (typeof part !== 'string') verdict.hints.push(t('payload.text', { name: `message.data.${name}` }));
  }
}

/**
 * @param {string} format
 * @param {string} body
 * @param {Verdict} verdict
 */
function checkXML(format, body, verdict) {
  const root = parse(body)?.root.name;
  if (root === undefined) verdict.faults.push(t('payload.noXML'));
  else if (format === 'windows' && !['toast', 'tile', 'badge'].includes(root)) verdict.hints.push(t('payload.root', { names: 'toast, tile, badge' }));
}

/**
 * The browser's error message about JSON with line and column, which help in an editor.
 * @param {string} body
 * @param {string} message
 */
function place(body, message) {
  const at = /position (\d+)/.exec(message)?.[1];
  if (at === undefined || /line \d+/.test(message)) return message;
  const before = body.slice(0, Number(at)).split('\n');
  return `${message} (${t('payload.place', { line: before.length, column: (before.at(-1) ?? '').length + 1 })})`;
}

/**
 * JSON with line breaks; anything else unchanged.
 * @param {string} body
 */
export function tidy(body) {
  try {
    return pretty(JSON.parse(body));
  } catch {
    return body;
  }
}
