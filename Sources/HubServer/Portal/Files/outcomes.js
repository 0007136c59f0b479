// @ts-check
// Labels and colours of states and outcomes.

import { has, number, t } from './text.js';
import { badge } from './view.js';

/** @typedef {'good' | 'bad' | 'note' | 'busy' | 'plain'} Kind */

/** @type {Record<string, Kind>} */
const states = {
  Enqueued: 'busy', Processing: 'busy', Scheduled: 'note', Completed: 'good', NoTargetFound: 'plain',
  Abandoned: 'bad', Canceled: 'plain',
};
export const allStates = ['Enqueued', 'Processing', 'Scheduled', 'Completed', 'NoTargetFound', 'Abandoned', 'Canceled'];
export const isOver = (/** @type {string} */ state) => !['Enqueued', 'Processing', 'Scheduled'].includes(state);

/** @param {string} state */
export const stateName = (state) => has(`state.${state}`) ? t(`state.${state}`) : state;
/** @param {string} state */
export const stateBadge = (state) => badge(stateName(state), states[state] ?? 'plain');

// Neither success nor failure.
const neutral = new Set(['Skipped', 'NoTargets', 'Aborted']);
/**
 * @param {string} outcome
 * @returns {Kind}
 */
export const kindOf = (outcome) => outcome === 'Success' ? 'good' : neutral.has(outcome) ? 'plain' : 'bad';

/**
 * Counts of outcomes, successes first.
 * @param {Record<string, number>} outcomes
 */
export const outcomeBadges = (outcomes) => sorted(outcomes)
  .map(([name, count]) => [badge(`${name} ${number(count)}`, kindOf(name)), ' ']).flat();

/**
 * @param {Record<string, number>} outcomes
 * @returns {[string, number][]}
 */
export const sorted = (outcomes) => Object.entries(outcomes)
  .sort((one, other) => Number(other[0] === 'Success') - Number(one[0] === 'Success') || other[1] - one[1]);

/**
 * Number of failures in the statistics' `failed`; aborted pushes are not failures.
 * @param {Record<string, Record<string, number>>} failed by platform and outcome
 */
export const failures = (failed) => Object.values(failed).flatMap((outcomes) => Object.entries(outcomes))
  .reduce((all, [outcome, count]) => all + (neutral.has(outcome) ? 0 : count), 0);

/**
 * Sum of all counts of a map, and of nested maps.
 * @param {Record<string, any>} counts
 * @returns {number}
 */
export const total = (counts) => Object.values(counts ?? {}).reduce((all, part) => all + (typeof part === 'number' ? part : total(part)), 0);

/**
 * The meaning of an outcome and what to do, if there is something.
 * @param {string} outcome
 */
export const advice = (outcome) => has(`outcome.${outcome}`) ? t(`outcome.${outcome}`) : '';
