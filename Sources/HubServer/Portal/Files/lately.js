// @ts-check
// Tag expressions that were sent to lately, and the tag that somebody may have meant.

import * as api from './api.js';

/** Notifications and devices that are looked at for their tags. */
const mostSends = 50;
const mostDevices = 100;
/** Expressions that are offered, and tags of an expression that are looked up. */
const offered = 4;
const mostTags = 4;
/** A tag, the hub's own included. */
const term = /\$\w+:\{[^}]*\}|[\p{L}\p{M}\p{N}_@#.:=-]+/gu;

/**
 * The expressions of the hub's latest sends to tags, the newest first.
 * @param {string} hub
 * @param {AbortSignal} signal
 * @returns {Promise<string[]>}
 */
export async function sentLately(hub, signal) {
  const { items } = await api.list(api.at(hub, 'messages'), 'notifications', { kind: 'tag', $top: mostSends }, null, signal);
  return [...new Set(items.map((item) => item.tags ?? ''))].filter((tags) => tags !== '' && tags.length <= 60 && !tags.includes('$')).slice(0, offered);
}

/**
 * The tags of an expression, without those that the hub gives itself.
 * @param {string} expression
 */
const tagsOf = (expression) => (expression.match(term) ?? []).filter((tag) => !tag.startsWith('$'));

/**
 * Of an expression that reaches nobody: a tag that no device has, and one like it that some have.
 * @param {string} hub
 * @param {string} expression
 * @param {AbortSignal} signal
 * @returns {Promise<{tag: string, near: string | null, devices: number} | null>}
 */
export async function unknownTag(hub, expression, signal) {
  const count = async (/** @type {string} */ tag) => {
    /** @type {{counts: {template: string | null, devices: number}[]}} */
    const { counts } = await api.json(api.at(hub, 'audience'), { query: { tags: tag }, signal });
    const sum = (/** @type {boolean} */ isTemplate) => counts.reduce((all, one) => all + ((one.template !== null) === isTemplate ? one.devices : 0), 0);
    return sum(false) || sum(true);
  };
  // A tag that nobody has keeps nobody out.
  const asked = [...new Set(tagsOf(expression.replace(/!\s*[\p{L}\p{M}\p{N}_@#.:=-]+/gu, '')))].slice(0, mostTags);
  const counts = await Promise.all(asked.map(count));
  const tag = asked.find((_, index) => counts[index] === 0);
  if (tag === undefined) return null;
  const [devices, sends] = await Promise.all([
    api.list(api.at(hub, 'installations'), 'installations', { $top: mostDevices }, null, signal),
    sentLately(hub, signal),
  ]);
  const known = new Set([...devices.items.flatMap((device) => device.tags ?? []), ...sends.flatMap(tagsOf)]);
  const near = [...known].map((one) => ({ one, away: distance(one.toLowerCase(), tag.toLowerCase()) }))
    .filter(({ one, away }) => away <= Math.min(2, Math.floor(tag.length / 2)) && one.toLowerCase() !== tag.toLowerCase())
    .sort((a, b) => a.away - b.away || (a.one < b.one ? -1 : 1)).slice(0, mostTags);
  for (const { one } of near) {
    const found = await count(one);
    if (found > 0) return { tag, near: one, devices: found };
  }
  return { tag, near: null, devices: 0 };
}

/**
 * With another tag in the place of one, wherever it stands.
 * @param {string} expression
 * @param {string} tag
 * @param {string} other
 */
export const replaced = (expression, tag, other) =>
  expression.replace(term, (one) => one === tag ? other : one);

/**
 * The letters that have to be inserted, left out or put in another's place; three for all that are further away.
 * @param {string} one
 * @param {string} other
 */
function distance(one, other) {
  if (Math.abs(one.length - other.length) > 2) return 3;
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      row[j] = Math.min(row[j - 1] + 1, last[j] + 1, last[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1));
    }
    last = row;
  }
  return Math.min(3, last[other.length]);
}
