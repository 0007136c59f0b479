// @ts-check
// A send as a command or as code, to be used elsewhere. It never contains keys.

import { formatName, platformOf, platforms } from './platforms.js';
import { t } from './text.js';
import { button, choice, code, copyButton, dialog, el } from './view.js';

/**
 * @typedef {object} Send
 * @property {string} hub
 * @property {string} format
 * @property {string} body
 * @property {Record<string, string>} headers for the push service
 * @property {string | null} tags null: everyone
 * @property {string} [handle] of one device, in place of tags
 * @property {string} [at] ISO 8601
 * @property {string} [key] Idempotency-Key
 */

/**
 * As the SDK and the hub expect it: raw bytes for wns/raw.
 * @param {Send} send
 */
function contentType({ format, headers }) {
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === 'x-wns-type')?.[1];
  if (type?.toLowerCase() === 'wns/raw') return 'application/octet-stream';
  return format === 'windows' || format === 'windowsphone' ? 'application/xml' : 'application/json';
}

/**
 * The request's own headers, including those for the push service.
 * @param {Send} send
 * @returns {Record<string, string>}
 */
export function requestHeaders(send) {
  /** @type {Record<string, string>} */
  const all = { 'Content-Type': contentType(send), 'ServiceBusNotification-Format': send.format, ...send.headers };
  if (send.handle) {
    const subscription = browserHandle(send);
    all['ServiceBusNotification-DeviceHandle'] = subscription?.endpoint ?? send.handle;
    if (subscription) Object.assign(all, { P256DH: subscription.p256dh, Auth: subscription.auth });
  } else if (send.tags !== null) {
    all['ServiceBusNotification-Tags'] = send.tags;
  }
  if (send.at) all['ServiceBusNotification-ScheduleTime'] = send.at;
  if (send.key) all['Idempotency-Key'] = send.key;
  return all;
}

/**
 * A browser's handle is a subscription: the JSON of PushSubscription.
 * @param {Send} send
 */
function browserHandle({ format, handle }) {
  if (format !== 'browser' || !handle) return null;
  try {
    const { endpoint, p256dh, auth, keys } = JSON.parse(handle);
    return { endpoint: String(endpoint), p256dh: String(p256dh ?? keys?.p256dh ?? ''), auth: String(auth ?? keys?.auth ?? '') };
  } catch {
    return null;
  }
}

/** @param {string} text */
const quoted = (text) => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;

/** @param {Send} send */
export function curl(send) {
  const path = send.at ? 'schedulednotifications' : 'messages';
  const flag = send.handle ? 'direct&' : '';
  return [
    `SAS=$(belfry sas --hub ${quoted(send.hub)} --connection "$BELFRY_CONNECTION_STRING")`,
    [`curl -i ${quoted(`${location.origin}/${encodeURIComponent(send.hub)}/${path}?${flag}api-version=2020-06`)}`,
      '-H "Authorization: $SAS"',
      // Without a value, curl removes the header "Name:".
      ...Object.entries(requestHeaders(send)).map(([name, value]) => `-H ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`),
      // Not --data or --data-binary: they read a text that begins with @ as a file name.
      `--data-raw ${quoted(send.body)}`].join(' \\\n  '),
  ].join('\n');
}

/** @param {Send} send */
export function command(send) {
  // A text that does not begin like a document counts as a file name; - reads from the pipe.
  const isText = /^[{[<]/.test(send.body);
  const body = isText ? quoted(send.body) : '-';
  const before = isText ? '' : `printf %s ${quoted(send.body)} | `;
  const parts = [`${before}belfry send --hub ${quoted(send.hub)} --connection "$BELFRY_CONNECTION_STRING"`];
  const isRaw = contentType(send) === 'application/octet-stream';
  const platform = platforms[platformOf(send.format) ?? ''];
  if (send.format === 'template') parts.push(`--properties ${body}`);
  else if (!platform?.phone) return t('send.noCommand');
  else parts.push(`--${platform.word} ${body}${isRaw ? ' --raw' : ''}`);
  const subscription = browserHandle(send);
  const handle = subscription ? JSON.stringify(subscription) : send.handle;
  parts.push(handle ? `--handle ${quoted(handle)}` : send.tags === null ? '--broadcast' : `--tags ${quoted(send.tags)}`);
  for (const [name, value] of Object.entries(send.headers)) parts.push(`--header ${quoted(`${name}=${value}`)}`);
  if (send.at) parts.push(`--at ${quoted(send.at)}`);
  if (send.key) parts.push(`--key ${quoted(send.key)}`);
  return parts.join(' \\\n  ');
}

/**
 * A Swift literal: raw, with as many # as needed, unless the text holds characters that a source file cannot
 * hold, or that its reader would change (Windows line ends) or could not see.
 * @param {string} text
 */
function literal(text) {
  const strange = /[^\n\P{C}]|[\u2028\u2029]/gu;
  // Two quotes after the opening one would start a multi-line string.
  if (strange.test(text) || text.startsWith('""')) {
    const escaped = text.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n')
      .replace(strange, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
    return `"${escaped}"`;
  }
  let hashes = '';
  while (text.includes(`"${hashes}`) || text.includes(`\\${hashes}`)) hashes += '#';
  return text.includes('\n') ? `${hashes}"""\n${text}\n"""${hashes}` : `${hashes}"${text}"${hashes}`;
}

/** @param {Send} send */
export function swift(send) {
  const headers = Object.entries(send.headers).map(([name, value]) => `${literal(name)}: ${literal(value)}`).join(', ');
  const more = headers ? `, headers: [${headers}]` : '';
  const platform = platformOf(send.format);
  const notification = platform === null
    ? `PushNotification(\n  format: .template, body: Data(${literal(send.body)}.utf8)${more})`
    : `PushNotification(\n  format: .native(.${platform}), body: Data(${literal(send.body)}.utf8)${
      contentType(send) === 'application/octet-stream' ? ', contentType: "application/octet-stream"' : ''}${more})`;
  const tags = send.tags === null ? null : `try TagExpression(parsing: ${literal(send.tags)})`;
  const key = send.key ? `, idempotencyKey: ${literal(send.key)}` : '';
  const subscription = browserHandle(send);
  const channel = subscription
    ? `.subscription(\n    endpoint: ${literal(subscription.endpoint)}, p256dh: ${literal(subscription.p256dh)}, auth: ${literal(subscription.auth)})`
    : `.handle(${literal(send.handle ?? '')})`;
  const call = send.handle ? `let receipt = try await client.sendDirect(notification, to: ${channel}${key})`
    : send.at ? `let time = try Date(${literal(send.at)}, strategy: .iso8601)\nlet receipt = try await client.schedule(notification, at: time${tags ? `, to: ${tags}` : ''}${key})`
      : tags ? `let receipt = try await client.send(notification, to: ${tags}${key})`
        : `let receipt = try await client.broadcast(notification${key})`;
  return `import Foundation
import NotificationHubs

let client = NotificationHubClient(
  connectionString: try ConnectionString(
    ProcessInfo.processInfo.environment["BELFRY_CONNECTION_STRING"] ?? ""), hub: ${literal(send.hub)})
let notification = ${notification}
${call}`;
}

/**
 * Shows sends in three forms, one for each platform.
 * @param {Send[]} sends
 */
export function showAs(sends) {
  /** @type {Record<string, (send: Send) => string>} */
  const ways = { curl, belfry: command, Swift: swift };
  return dialog(t('send.copyAs'), (close) => {
    const place = el('div', { class: 'stack' });
    let way = 'curl';
    let one = 0;
    const show = () => {
      const text = ways[way](sends[one]);
      place.replaceChildren(code(text, way), el('div', { class: 'buttons' },
        button(t('view.close'), () => close(null)), copyButton(text)));
    };
    show();
    return [el('div', { class: 'stack' },
      choice(t('send.copyWay'), Object.keys(ways).map((way) => [way, way]), way, (given) => { way = given; show(); }),
      sends.length > 1 && choice(t('payload.format'), sends.map(({ format }, index) => [String(index), formatName(format)]), '0', (given) => { one = Number(given); show(); }),
      el('p', { class: 'hint' }, t('send.copyHint')), place)];
  });
}
