// @ts-check
// The senders of notifications, from the activity log.

import * as api from './api.js';

const sends = new Set(['send', 'sendDirect', 'sendBatch', 'schedule']);

/**
 * The senders of these notifications, by id; empty if this person may not read the log.
 * @param {string} hub
 * @param {{notificationId: string, enqueueTime: string}[]} items
 * @param {string} actor '' for all
 * @param {AbortSignal} signal
 * @returns {Promise<Map<string, string>>}
 */
export async function actorsOf(hub, items, actor, signal) {
  /** @type {Map<string, string>} */
  const found = new Map();
  const times = items.map((item) => Date.parse(item.enqueueTime)).filter(Number.isFinite);
  if (times.length === 0) return found;
  // The log entry is written at about the time at which the hub accepts the send.
  const moment = (/** @type {number} */ time) => new Date(time).toISOString();
  const query = { actor, from: moment(Math.min(...times) - 5000), until: moment(Math.max(...times) + 10_000) };
  try {
    let next = null;
    for (let pages = 0; pages < 10; pages += 1) {
      /** @type {{items: any[], next: string | null}} */
      const page = await api.list(api.at(hub, 'activity'), 'activity', query, next, signal);
      for (const line of page.items) if (sends.has(line.action) && line.object) found.set(line.object, line.actor);
      next = page.next;
      if (!next) break;
    }
  } catch {
    // The list is complete without the senders.
  }
  return found;
}
