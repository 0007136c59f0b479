// @ts-check
// Messages that somebody has begun, kept in this browser for its hub and operator: the newest twenty, for 30 days.

import { who } from './api.js';

/** @typedef {{id: string, at: number, state: any}} Kept `at` in ms */

const most = 20;
const days = 30;

const owner = () => {
  const identity = who();
  return `belfry.drafts.${encodeURIComponent(!identity ? '' : identity.kind === 'key' ? `key/${identity.policy}` : `user/${identity.user}`)}.`;
};

/**
 * The newest first.
 * @param {string} hub
 * @returns {Kept[]}
 */
export function drafts(hub) {
  try {
    const all = JSON.parse(localStorage.getItem(owner() + hub) ?? '[]');
    return Array.isArray(all) ? all.filter((one) => typeof one?.id === 'string' && one.at > Date.now() - days * 86_400_000) : [];
  } catch {
    return [];
  }
}

/**
 * @param {string} hub
 * @param {Kept[]} all
 */
function store(hub, all) {
  try {
    if (all.length) localStorage.setItem(owner() + hub, JSON.stringify(all.slice(0, most)));
    else localStorage.removeItem(owner() + hub);
    return true;
  } catch {
    return false;  // The browser keeps nothing, or has no room.
  }
}

/**
 * @param {string} hub
 * @param {string} id
 * @param {any} state
 * @returns {boolean} whether the browser keeps it
 */
export const keepDraft = (hub, id, state) => store(hub, [{ id, at: Date.now(), state }, ...drafts(hub).filter((one) => one.id !== id)]);

/**
 * @param {string} hub
 * @param {string} id
 */
export const dropDraft = (hub, id) => store(hub, drafts(hub).filter((one) => one.id !== id));

/** All of the operator who signs out. */
export function forgetDrafts() {
  const mine = owner();
  for (const name of Object.keys(localStorage)) if (name.startsWith(mine)) localStorage.removeItem(name);
}
