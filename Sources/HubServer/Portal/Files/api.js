// @ts-check
// The portal's only client of the REST API: sign-in, requests, errors.
//
// With a key, tokens are made here (docs/protocol/sas.md) and the key itself stays in this page;
// with a session, the browser's cookie authenticates. XMLHttpRequest parses XML, since
// Trusted Types forbid DOMParser.

/**
 * @typedef {{kind: 'key', policy: string, hub: string, key: CryptoKey, local: boolean}} KeyIdentity
 * @typedef {{kind: 'session', user: string, hubs: Record<string, string>}} SessionIdentity
 * @typedef {KeyIdentity | SessionIdentity} Identity
 *
 * @typedef {object} RequestOptions
 * @property {string} [method] GET unless given
 * @property {Record<string, string | number | boolean | null | undefined>} [query] without those that are null, '' or false; true is a flag
 * @property {Record<string, string>} [headers]
 * @property {string | object | null} [body] an object goes as JSON
 * @property {AbortSignal} [signal]
 */

/** A refusal of the server, or no reply (status 0). */
export class APIError extends Error {
  /**
   * @param {number} status
   * @param {string} message the server's message, without TrackingId and time
   * @param {string} trackingId
   * @param {number | null} retryAfter seconds
   */
  constructor(status, message, trackingId = '', retryAfter = null) {
    super(message);
    this.name = 'APIError';
    this.status = status;
    this.trackingId = trackingId;
    this.retryAfter = retryAfter;
  }
}

/** Fires `change` (somebody has signed in or out), `expired`, `lost` and `back` (of the server). */
export const events = new EventTarget();

/** @type {Identity | null} */
let identity = null;
/** Offset of the server's clock from this one, in seconds. */
let ahead = 0;
let isLost = false;

export const who = () => identity;

/**
 * The person's role in a hub: 'viewer', 'sender' or 'manager'. A key's rights are not known
 * before they are used, so it counts as manager.
 * @param {string} hub
 */
export function role(hub) {
  if (identity?.kind !== 'session') return 'manager';
  const name = Object.keys(identity.hubs).find((name) => name.toLowerCase() === hub.toLowerCase());
  return name ? identity.hubs[name] : identity.hubs['*'] ?? 'viewer';
}

// --- Signing in ------------------------------------------------------------------------------

const kept = 'belfry.connection';
const left = 'belfry.signed-out';

/**
 * Endpoint, policy and key of a connection string; throws the error as a key of texts.
 * @param {string} text
 */
export function readConnectionString(text) {
  /** @type {Record<string, string>} */
  const parts = {};
  for (const part of text.trim().split(';')) {
    const at = part.indexOf('=');
    if (at > 0) parts[part.slice(0, at).trim().toLowerCase()] = part.slice(at + 1).trim();
  }
  const policy = parts.sharedaccesskeyname;
  const key = parts.sharedaccesskey;
  if (!policy || !key) throw new APIError(400, 'signin.badConnection');
  return { policy, key, hub: parts.entitypath ?? '' };
}

/**
 * @param {{policy: string, key: string, hub: string, keep?: boolean, local?: boolean}} given
 */
export async function signInWithKey({ policy, key, hub, keep = false, local = false }) {
  // Browsers have WebCrypto on https pages and on this machine's own names only.
  if (!globalThis.crypto?.subtle) throw new APIError(400, 'signin.insecure');
  const secret = await crypto.subtle.importKey(
    'raw', new TextEncoder().encode(key), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  identity = { kind: 'key', policy, hub, key: secret, local };
  token = null;
  // A person who signed in with a key must not become the local user on a reload.
  if (local) sessionStorage.removeItem(left);
  else sessionStorage.setItem(left, 'key');
  if (keep) sessionStorage.setItem(kept, JSON.stringify({ policy, key, hub }));
  events.dispatchEvent(new Event('change'));
}

/**
 * @typedef {{ways: string[], user: string | null, hubs: Record<string, string> | null, oidcName?: string, confirmed?: boolean, confirmation?: string, keptText?: number | null}} Session
 * @returns {Promise<Session>}
 */
export async function readSession() {
  const reply = await fetch('/$portal/session').catch(() => null);
  if (reply?.ok) return reply.json();
  return { ways: ['key'], user: null, hubs: null };
}

/**
 * Uses the session of the cookie.
 * @param {Session} [session]
 * @returns {Promise<boolean>} whether there is one
 */
export async function takeSession(session) {
  const { user, hubs } = session ?? await readSession();
  if (!user) return false;
  identity = { kind: 'session', user, hubs: hubs ?? {} };
  sessionStorage.removeItem(left);
  events.dispatchEvent(new Event('change'));
  return true;
}

/**
 * Signs in as the local user that `belfry up` offers.
 * @returns {Promise<boolean>} whether it does
 */
export async function takeLocal() {
  const reply = await askLocal();
  if (!reply?.ok) return false;
  const { connectionString, hub, half } = await reply.json();
  if (half) localStorage.setItem(known, half);
  await signInWithKey({ ...readConnectionString(connectionString), hub, local: true });
  return true;
}

/** The key in the address that belfry up prints. Removed from the address bar, which others may see. */
const printed = /^#key=([\w-]+)$/.exec(location.hash)?.[1] ?? '';
if (printed) history.replaceState(null, '', location.pathname + location.search);
addEventListener('hashchange', () => { if (location.hash.startsWith('#key=')) location.reload(); });

/** Storage key of the half by which `belfry up` recognises this page; the cookie has the other half. */
const known = 'belfry.local';
const half = () => ({ 'Belfry-Portal-Half': localStorage.getItem(known) ?? '' });

/** Only if `ways` includes 'local'. */
export const askLocal = () => fetch('/$portal/local', { headers: printed ? { 'Belfry-Portal-Key': printed } : half() }).catch(() => null);

/** Restores the earlier sign-in, or signs in the local user. */
export async function restore() {
  const stored = sessionStorage.getItem(kept);
  if (stored) return signInWithKey(JSON.parse(stored));
  const state = printed ? null : sessionStorage.getItem(left);
  if (state === 'key') return;
  const session = await readSession();
  // After signing out, the person may have signed in again, elsewhere or at a provider.
  await takeSession(session) || !state && session.ways.includes('local') && await takeLocal();
}

/** Remembers a sign-in with a key, or a sign-out, before the page is left for one where they sign in. */
export function forget() {
  sessionStorage.removeItem(kept);
  sessionStorage.removeItem(left);
}

export async function signOut() {
  if (identity?.kind === 'session') await fetch('/$portal/session', { method: 'DELETE' });
  identity = null;
  token = null;
  forget();
  sessionStorage.setItem(left, 'out');
  events.dispatchEvent(new Event('change'));
}

// --- Tokens ----------------------------------------------------------------------------------

/** @type {{text: string, until: number} | null} */
let token = null;

/**
 * A token for all of this server, for ten minutes.
 * @param {KeyIdentity} who
 */
async function authorization(who) {
  const now = Date.now() / 1000 + ahead;
  if (token && token.until - now > 60) return token.text;
  const until = Math.floor(now) + 600;
  const signature = await sign(who.key, location.origin + '/', until);
  const text = `SharedAccessSignature ${signature}&se=${until}&skn=${encodeURIComponent(who.policy)}`;
  token = { text, until };
  return text;
}

/**
 * @param {CryptoKey} key
 * @param {string} resource
 * @param {number} until
 */
async function sign(key, resource, until) {
  const escaped = encodeURIComponent(resource);
  const bytes = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(`${escaped}\n${until}`));
  const signature = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return `sr=${escaped}&sig=${encodeURIComponent(signature)}`;
}

// --- Requests --------------------------------------------------------------------------------

/**
 * A path out of segments, each encoded. Throws for an invalid one: an empty segment would lead to the
 * list above, and browsers interpret `.` and `..`.
 * @param {...string} segments
 */
export function at(...segments) {
  if (segments.some((segment) => ['', '.', '..'].includes(segment))) throw new APIError(400, 'error.name');
  return '/' + segments.map(encoded).join('/');
}

/**
 * A text as a path segment, with lone surrogates replaced.
 * @param {string} text
 */
export const encoded = (text) => encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'));

/**
 * @param {string} path
 * @param {RequestOptions} options
 */
function address(path, options) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value === null || value === undefined || value === '' || value === false) continue;
    query.set(name, value === true ? '' : String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** @param {RequestOptions} options */
async function headers(options) {
  /** @type {Record<string, string>} */
  const all = { 'Belfry-Extensions': 'true', ...options.headers };
  if (identity?.kind === 'key') all.Authorization = await authorization(identity);
  if (identity?.kind === 'key' && identity.local) Object.assign(all, half());
  if (options.body && typeof options.body === 'object') all['Content-Type'] ??= 'application/json';
  return all;
}

/** @param {RequestOptions} options */
const bodyOf = (options) =>
  options.body && typeof options.body === 'object' ? JSON.stringify(options.body) : options.body;

/**
 * Returns the reply of a request that succeeded; throws a refusal as an APIError.
 * @param {string} path from `at`
 * @param {RequestOptions} [options]
 * @returns {Promise<Response>}
 */
export async function request(path, options = {}, isRepeat = false) {
  /** @type {Response} */
  let reply;
  try {
    reply = await fetch(address(path, options), {
      method: options.method ?? 'GET', headers: await headers(options), body: bodyOf(options),
      signal: options.signal, cache: 'no-store',
    });
  } catch (error) {
    throw options.signal?.aborted ? error : lost();
  }
  found();
  if (reply.ok) return reply;
  const failure = read(reply.status, await reply.text(), (name) => reply.headers.get(name));
  if (!isRepeat && mayRepeat(failure, reply.headers.get('Date'))) {
    return request(path, options, true);
  }
  if (!isRepeat && await isProven(failure)) return request(path, options, true);
  throw told(failure, path);
}

/**
 * @param {string} path
 * @param {RequestOptions} [options]
 */
export async function json(path, options) {
  return (await request(path, options)).json();
}

/**
 * An XML reply as a document.
 * @param {string} path
 * @param {RequestOptions} [options]
 * @returns {Promise<{document: Document, header: (name: string) => string | null}>}
 */
export async function xml(path, options = {}, isRepeat = false) {
  const all = await headers(options);
  /** @type {XMLHttpRequest} */
  const call = await new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open(options.method ?? 'GET', address(path, options));
    call.responseType = 'document';
    call.overrideMimeType('application/xml');
    for (const [name, value] of Object.entries(all)) call.setRequestHeader(name, value);
    const stop = () => call.abort();
    options.signal?.addEventListener('abort', stop);
    call.onloadend = () => options.signal?.removeEventListener('abort', stop);
    call.onload = () => resolve(call);
    call.onerror = () => reject(lost());
    call.onabort = () => reject(new DOMException('aborted', 'AbortError'));
    if (options.signal?.aborted) reject(new DOMException('aborted', 'AbortError'));
    else call.send(bodyOf(options));
  });
  found();
  const header = (/** @type {string} */ name) => call.getResponseHeader(name);
  const document = call.responseXML;
  if (call.status >= 200 && call.status < 300 && document) return { document, header };
  const detail = document?.querySelector('Error > Detail')?.textContent ?? '';
  const failure = failed(call.status, detail, header);
  if (!isRepeat && (mayRepeat(failure, header('Date')) || await isProven(failure))) return xml(path, options, true);
  throw told(failure);
}

/**
 * One page of a list with continuation tokens.
 * @param {string} path
 * @param {string} member of the reply with the items
 * @param {RequestOptions['query']} query
 * @param {string | null} from the token of the page; null for the first
 * @param {AbortSignal} [signal]
 * @returns {Promise<{items: any[], unsearched: number, next: string | null}>} `unsearched`: items that the search
 *   could not look at
 */
export async function list(path, member, query, from, signal) {
  const reply = await request(path, { query: { ...query, continuationtoken: from }, signal });
  const { [member]: items = [], unsearched = 0 } = await reply.json();
  return { items, unsearched, next: reply.headers.get('x-ms-continuationtoken') };
}

/**
 * Reads a stream of server-sent events until it ends.
 * @param {string} path
 * @param {(event: string, data: any) => void} told
 * @param {AbortSignal} signal
 * @param {RequestOptions['query']} [query]
 */
export async function stream(path, told, signal, query) {
  const reply = await request(path, { signal, query, headers: { Accept: 'text/event-stream' } });
  const reader = /** @type {ReadableStream<Uint8Array>} */ (reply.body).getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const lines = block.split(/\r?\n/);
        const field = (/** @type {string} */ name) => lines
          .filter((line) => line.startsWith(name + ':'))
          .map((line) => line.slice(name.length + 1).replace(/^ /, '')).join('\n');
        const data = field('data');
        if (data) told(field('event') || 'message', JSON.parse(data));
      }
    }
  } catch (error) {
    throw signal.aborted ? error : lost();
  }
}

// --- Errors ----------------------------------------------------------------------------------

/**
 * @param {number} status
 * @param {string} body
 * @param {(name: string) => string | null} header
 */
function read(status, body, header) {
  const detail = /<Detail>([^<]*)<\/Detail>/.exec(body)?.[1];
  if (detail !== undefined) return failed(status, unescaped(detail), header);
  let text = '';
  try {
    const value = JSON.parse(body);
    text = value.error?.message ?? value.message ?? value.error ?? '';
  } catch {
    if (header('Content-Type')?.startsWith('text/plain')) text = body.trim();
  }
  return failed(status, String(text), header);
}

/**
 * @param {number} status
 * @param {string} detail
 * @param {(name: string) => string | null} header
 */
function failed(status, detail, header) {
  const message = detail.replace(/\.?TrackingId:.*$/s, '');
  const seconds = Number(header('Retry-After') ?? NaN);
  return new APIError(
    status, message, header('TrackingId') ?? '', Number.isFinite(seconds) ? seconds : null);
}

/** @param {string} text */
const unescaped = (text) => text
  .replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"').replace(/&apos;/g, "'")
  .replace(/&#(x?)([0-9a-f]+);/gi, (_, hex, digits) =>
    String.fromCodePoint(Math.min(parseInt(digits, hex ? 16 : 10) || 0xfffd, 0x10ffff)))
  .replace(/&amp;/g, '&');

/**
 * Whether a token expired although it was just made: the clocks differ, and the server's counts.
 * @param {APIError} failure
 * @param {string | null} date
 */
function mayRepeat(failure, date) {
  if (identity?.kind !== 'key' || failure.status !== 401 || !date) return false;
  if (!failure.message.startsWith('ExpiredToken')) return false;
  ahead = (Date.parse(date) - Date.now()) / 1000;
  token = null;
  return Number.isFinite(ahead);
}

/** @param {APIError} failure */
export const wantsProof = (failure) =>
  identity?.kind === 'session' && failure.status === 403 && failure.message.startsWith('ConfirmationRequired');

/**
 * Whether the server asked an operator to confirm their identity, and they did.
 * @param {APIError} failure
 */
async function isProven(failure) {
  return wantsProof(failure) && (await import('./reauthentication.js')).prove();
}

/**
 * @param {APIError} failure
 * @param {string} [path]
 */
function told(failure, path = '') {
  // A wrong password does not end a session.
  if (failure.status === 401 && identity?.kind === 'session' && !path.startsWith('/$portal/')) {
    events.dispatchEvent(new Event('expired'));
  }
  return failure;
}

function lost() {
  if (!isLost) {
    isLost = true;
    events.dispatchEvent(new Event('lost'));
  }
  return new APIError(0, '');
}

function found() {
  if (!isLost) return;
  isLost = false;
  events.dispatchEvent(new Event('back'));
}

/** Whether the server answers; polled while it is lost. */
export async function knock() {
  try {
    await fetch('/$portal/session', { cache: 'no-store' });
    found();
  } catch {
    // Still unreachable.
  }
}
