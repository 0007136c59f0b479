// @ts-check
// What devices got of the hub's latest notifications: each is explained for each of the devices.

import * as api from './api.js';
import { explain } from './explanation.js';
import { notificationRows } from './notificationrows.js';
import { t } from './text.js';
import { el, pagedList } from './view.js';

/** Notifications that are explained at a time: each costs a request for each device. */
const latest = 12;
/** Requests under way at a time. */
const atOnce = 4;

/** Verdicts on a device that the notification was not for. */
const elsewhere = new Set(['tags-differ', 'not-addressed', 'too-late', 'no-device']);

/** @param {{verdict: string}} explanation */
export const isForIt = ({ verdict }) => !elsewhere.has(verdict);

/**
 * @param {import('./app.js').Page} page
 * @param {object} options
 * @param {string[]} options.devices ids of installations
 * @param {string} options.caption
 * @param {string} options.empty
 * @param {boolean} [options.isWhole] whether those that were for none of the devices are listed too
 * @param {AbortSignal} [options.signal]
 * @param {(item: import('./notificationrows.js').Summary, explanations: any[]) => Node} options.came the outcome
 */
export function received(page, { devices, caption, empty, isWhole = false, signal = page.signal, came }) {
  /** @type {Map<string, any[]>} by notification */
  const told = new Map();
  let looked = 0;
  const hint = el('p', { class: 'hint' });
  return el('div', { class: 'stack' }, pagedList({
    // One stretch at a time.
    caption, signal, enough: 0, empty: el('p', { class: 'hint' }, empty),
    load: async (from) => {
      /** @type {{items: import('./notificationrows.js').Summary[], next: string | null}} */
      const { items, next } = await api.list(api.at(page.hub, 'messages'), 'notifications', { $top: latest }, from, signal);
      const asked = items.flatMap(({ notificationId }) => devices.map((device) => ({ notificationId, device })));
      const ask = async () => {
        for (let one = asked.shift(); one; one = asked.shift()) {
          const answer = await explain(page.hub, one.notificationId, one.device, signal);
          told.set(one.notificationId, [...told.get(one.notificationId) ?? [], answer]);
        }
      };
      await Promise.all(Array.from({ length: atOnce }, ask));
      looked += items.length;
      hint.textContent = t('user.looked', { looked, n: devices.length });
      return { items: items.filter(({ notificationId }) => isWhole || told.get(notificationId)?.some(isForIt)), next };
    },
    view: (items) => notificationRows({ to: page.to, items, isBrief: true, came: (item) => came(item, told.get(item.notificationId) ?? []) }),
  }), hint);
}
