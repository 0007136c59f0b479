// @ts-check
// The phone beside a message: drawn from the payload that the hub's dry run makes for a real device, after each
// pause in typing.

import { check } from './payloads.js';
import { platformWord, platforms } from './platforms.js';
import { preview, remarks, symbol } from './preview.js';
import { tried } from './sending.js';
import { bytes, t } from './text.js';
import { bare, button, calmly, el, failure, fill, section, short } from './view.js';

/** @typedef {{platform: string, registrationId?: string, rendering: {payload: string, bytes: number, limit?: number, missingProperties?: string[]}}} Sample */

/**
 * @param {object} options
 * @param {AbortSignal} options.signal
 * @param {boolean} options.mayTry
 * @param {() => boolean} options.isEmpty whether nothing is written yet
 * @param {() => string[]} options.shown the platforms of the message; of a template, none: the dry run tells
 * @param {(platform: string) => import('./copyas.js').Send | null} options.send what would be sent; null while it cannot be
 * @param {(platform: string) => string} options.payload
 * @param {(reply: any) => void} options.found of a dry run
 */
export function previewAside({ signal, mayTry, isEmpty, shown, send, payload, found }) {
  const tabs = el('div');
  const place = el('div', { class: 'stack' });
  const node = section({ title: t('preview.title'), as: 'aside' }, tabs, place);
  let chosen = '';
  let offered = '';
  /** @type {Map<string, Sample[]>} of the last dry run */
  let samples = new Map();
  let turn = 0;
  /** @type {any} */
  let trouble = null;
  let isRunning = false;
  let isStale = false;

  const isTemplate = () => shown().length === 0;
  const platformsNow = () => isTemplate() ? [...samples.keys()] : shown();

  function draw() {
    const all = platformsNow();
    if (!all.includes(chosen)) chosen = all[0] ?? '';
    if (all.join() !== offered) {
      offered = all.join();
      fill(tabs, all.length > 1 && bare(t('compose.previewOn'), all.map((platform) => [platform, platformWord(platform)]), chosen, (platform) => {
        chosen = platform;
        turn = 0;
        draw();
        look();
      }));
    }
    const own = samples.get(chosen) ?? [];
    const sample = own[turn % (own.length || 1)];
    const text = isTemplate() ? sample?.rendering.payload : payload(chosen);
    if (!chosen || text === undefined) {
      fill(place, trouble ? failure(trouble) : el('p', { class: 'hint' }, t(!mayTry ? 'compose.previewRole' : isRunning ? 'compose.previewWaits' : 'compose.previewNobody')));
      return;
    }
    const limit = sample?.rendering.limit ?? platforms[chosen]?.limit;
    const size = isTemplate() ? sample.rendering.bytes : check(platforms[chosen].format, text).size;
    const missing = sample?.rendering.missingProperties ?? [];
    const item = (/** @type {Parameters<typeof symbol>[0]} */ name, /** @type {(Node | string)[]} */ ...children) => el('li', null, symbol(name), el('span', null, ...children));
    fill(place, preview(chosen, text, isEmpty() ? { silent: t('compose.previewEmpty') } : {}),
      isTemplate() && own.length > 1 && el('div', { class: 'buttons' }, button(t('compose.otherDevice'), () => { turn += 1; draw(); }, { class: 'small-button' })),
      el('ul', { class: 'notes-list' },
        item('size', limit ? t('payload.size', { size: bytes(size), limit: bytes(limit) }) : bytes(size)),
        ...remarks(chosen, text).map(([name, words]) => item(name, words)),
        sample?.registrationId ? item('phone', t('compose.realDevice'), ' ', short(sample.registrationId, 20))
          : samples.has(chosen) ? item('phone', t('compose.noRealDevice')) : '',
        missing.length > 0 ? item('tick', t('send.missing', { names: missing.join(', ') })) : ''),
      trouble && failure(trouble));
  }

  /** One dry run at a time: for a large hub it takes longer than a pause in typing. */
  async function ask() {
    const what = mayTry ? send(chosen) : null;
    if (!what || isRunning) {
      isStale = isRunning;
      if (!isRunning) draw();
      return;
    }
    const asked = chosen;
    isRunning = true;
    isStale = false;
    try {
      const reply = await tried(what, signal);
      trouble = null;
      if (what.format === 'template') samples = new Map();
      found(reply);
      const others = new Map(samples);
      if (what.format !== 'template') others.set(asked, []);
      for (const sample of reply.samples) others.set(sample.platform, [...others.get(sample.platform) ?? [], sample]);
      samples = others;
    } catch (error) {
      if (signal.aborted) return;
      // What is wrong with the audience or the payload stands at its field.
      trouble = /** @type {any} */ (error).status === 400 ? null : error;
      samples.delete(asked);
    } finally {
      isRunning = false;
    }
    draw();
    if (isStale) look();
  }
  const look = calmly(() => void ask(), 120);
  return {
    node,
    /** Something has changed. */
    refresh() {
      // A payload that goes as it is, is drawn at once; templates need the hub.
      draw();
      look();
    },
    /** Another audience, or another form of message: what is known is of other devices. */
    forget() {
      samples = new Map();
      turn = 0;
    },
    chosen: () => chosen,
  };
}
