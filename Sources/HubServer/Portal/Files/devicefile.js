// @ts-check
// The devices of a hub as a file, in the form of `belfry export` and `belfry import` (docs/jobs.md): on each
// line an installation as JSON, or a registration that an app wrote itself as XML.

import * as api from './api.js';
import { registrations } from './devices.js';
import { pause } from './view.js';
import { atom } from './xml.js';

/** Maximum number of concurrent lines; a browser has no more connections anyway. */
const width = 6;
/** Longer than any line of a device, in characters. */
const longest = 1 << 20;
/** Maximum number of refused lines that are kept with their texts. */
const mostRefused = 10_000;

/**
 * Progress of an export or import.
 * @typedef {{installations: number, registrations: number, share: number}} Exported share of 1
 * @typedef {{line: number, why: string, text: string}} Refusal
 * @typedef {{imported: number, failed: number, refusals: Refusal[], share: number}} Imported
 */

/**
 * All devices. The parts of the file are passed to the browser as they arrive, which keeps large ones on disk.
 * @param {string} hub
 * @param {(counts: Exported) => void} told
 * @param {AbortSignal} signal
 * @returns {Promise<Blob>}
 */
export async function exported(hub, told, signal) {
  const { total } = await api.json(api.at(hub, 'audience'), { signal });
  /** @type {Blob[]} */
  const parts = [];
  const counts = { installations: 0, registrations: 0, share: 0 };
  // Every registration is read twice: with its installation, and in the list of those that apps wrote.
  let passed = 0;
  const write = (/** @type {string[]} */ lines) => {
    if (lines.length) parts.push(new Blob([lines.join('\n'), '\n']));
    counts.share = Math.min(1, passed / Math.max(1, 2 * total));
    told(counts);
  };
  /** @type {string | null} */
  let next = null;
  do {
    /** @type {{items: import('./devices.js').Installation[], next: string | null}} */
    const page = await patiently(() => api.list(api.at(hub, 'installations'), 'installations', {}, next, signal), signal);
    counts.installations += page.items.length;
    for (const item of page.items) passed += 1 + Object.keys(item.templates ?? {}).length;
    write(page.items.map((item) => JSON.stringify(item)));
    next = page.next;
  } while (next);
  do {
    /** @type {{items: import('./devices.js').Registration[], next: string | null}} */
    const page = await patiently(() => registrations(hub, '', next, signal), signal);
    const own = page.items.filter((item) => item.installationId === undefined && item.description);
    counts.registrations += own.length;
    passed += page.items.length;
    write(own.map((item) => line(/** @type {Element} */ (item.description))));
    next = page.next;
  } while (next);
  return new Blob(parts, { type: 'text/plain' });
}

/**
 * XML without line breaks: those in texts become references.
 * @param {Element} description
 */
function line(description) {
  const copy = /** @type {Element} */ (description.cloneNode(true));
  for (const node of [...copy.childNodes]) if (node.nodeType === Node.TEXT_NODE && !node.textContent?.trim()) node.remove();
  // In a CDATA section a reference would be literal text.
  for (const node of copy.querySelectorAll('*')) if (node.childElementCount === 0) node.replaceChildren(node.textContent ?? '');
  return new XMLSerializer().serializeToString(copy).replace(/\r/g, '&#xD;').replace(/\n/g, '&#xA;');
}

/**
 * Creates or replaces the devices of a file; others in the hub stay.
 * @param {string} hub
 * @param {Blob} file
 * @param {(counts: Imported) => void} told
 * @param {AbortSignal} signal
 */
export async function imported(hub, file, told, signal) {
  /** @type {Imported} */
  const counts = { imported: 0, failed: 0, refusals: [], share: 0 };
  for await (const { items, read } of lines(file)) {
    await Promise.all(items.map(async ({ number, text }) => {
      try {
        await patiently(() => put(hub, text, signal), signal);
        counts.imported += 1;
      } catch (error) {
        if (!(error instanceof api.APIError) || !ofLine.has(error.status)) throw error;
        counts.failed += 1;
        if (counts.refusals.length < mostRefused) counts.refusals.push({ line: number, why: error.message, text });
      }
    }));
    counts.share = file.size ? read / file.size : 1;
    told(counts);
  }
  counts.refusals.sort((one, other) => one.line - other.line);
  return counts;
}

/** Refusals that concern only one line; any other ends the import. */
const ofLine = new Set([400, 409, 410, 412, 413]);

/**
 * @param {string} hub
 * @param {string} text
 * @param {AbortSignal} signal
 */
function put(hub, text, signal) {
  if (text.length > longest) throw new api.APIError(400, 'devicefile.long');
  if (text.startsWith('{')) {
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      throw new api.APIError(400, 'devicefile.noJSON');
    }
    return api.request(api.at(hub, 'installations', String(value.installationId ?? '')), {
      method: 'PUT', body: text, headers: { 'Content-Type': 'application/json' }, signal,
    });
  }
  const id = /<RegistrationId(?:\s[^>]*)?>([^<]+)<\/RegistrationId>/.exec(text)?.[1];
  if (!id || !/^<\w*RegistrationDescription[\s>]/.test(text)) throw new api.APIError(400, 'devicefile.noDevice');
  if (text.includes('$InstallationId:{')) throw new api.APIError(400, 'devicefile.ofInstallation');
  // The hub sets these two.
  const description = text.replace(/<(ETag|ExpirationTime)(?:\s[^>]*)?(?:\/>|>[^<]*<\/\1>)/g, '');
  return api.request(api.at(hub, 'registrations', id), {
    method: 'PUT', headers: { 'Content-Type': 'application/atom+xml;type=entry;charset=utf-8' },
    body: `<entry xmlns="${atom}"><content type="application/xml">${description}</content></entry>`, signal,
  });
}

/**
 * The lines of a file that are not empty, some at a time, with the number of bytes read so far.
 * @param {Blob} file
 * @returns {AsyncGenerator<{items: {number: number, text: string}[], read: number}>}
 */
async function* lines(file) {
  const reader = file.stream().getReader();
  const decoder = new TextDecoder();
  let [rest, count, read] = ['', 0, 0];
  /** @type {{number: number, text: string}[]} */
  let items = [];
  try {
    for (let isOver = false; !isOver;) {
      const { value, done } = await reader.read();
      isOver = done;
      read += value?.length ?? 0;
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const parts = rest.split('\n');
      rest = done ? '' : parts.pop() ?? '';
      // Not a file of devices; it would only fill the memory.
      if (rest.length > 8 * longest) throw new api.APIError(400, 'devicefile.wrong');
      for (const part of parts) {
        count += 1;
        const text = part.trim();
        if (!text) continue;
        if (items.push({ number: count, text }) < width) continue;
        yield { items, read: read - rest.length };
        items = [];
      }
    }
    if (items.length) yield { items, read };
  } finally {
    void reader.cancel();
  }
}

/**
 * Retries a request while the server is unreachable or busy.
 * @template T
 * @param {() => Promise<T>} act
 * @param {AbortSignal} signal
 * @returns {Promise<T>}
 */
async function patiently(act, signal) {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof api.APIError) || ![0, 429, 503].includes(error.status)) throw error;
      await pause(1000 * Math.min(error.retryAfter ?? 2, 30), signal);
    }
  }
}
