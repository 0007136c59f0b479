// @ts-check
// Why a device did or did not get a notification, from GET …/explain, as text and a tree.

import * as api from './api.js';
import { dress } from './dress.js';
import { tidy } from './payloads.js';
import { platformName } from './platforms.js';
import { has, t } from './text.js';
import { badge, code, data, el, facts } from './view.js';

dress('settings.css');

/**
 * @param {string} hub
 * @param {string} notification
 * @param {string} installation
 * @param {AbortSignal} [signal]
 */
export const explain = (hub, notification, installation, signal) =>
  api.json(api.at(hub, 'messages', notification, 'explain'), { query: { installation }, signal });

/** @type {Record<string, 'good' | 'bad' | 'note' | 'busy' | 'plain'>} */
const kinds = {
  delivered: 'good', failed: 'bad', retrying: 'busy', waiting: 'busy', scheduled: 'busy', 'too-late': 'note',
  expired: 'note', duplicate: 'note',
};

/** @param {string} verdict */
export const verdictBadge = (verdict) =>
  badge(has(`verdict.${verdict}`) ? t(`verdict.${verdict}`) : verdict, kinds[verdict] ?? 'plain');

/**
 * The complete explanation.
 * @param {any} explanation
 */
export function explanationView(explanation) {
  return el('div', { class: 'stack' },
    el('p', null, verdictBadge(explanation.verdict), ' ', data(explanation.text)),
    factList(explanation.facts),
    (explanation.registrations ?? []).map((/** @type {any} */ one) => el('details', { open: explanation.registrations.length < 3 },
      el('summary', null, one.platform ? platformName(one.platform) : '', one.template ? [' · ', data(one.template)] : '', ' ', verdictBadge(one.verdict)),
      el('div', { class: 'stack' },
        el('p', null, data(one.text)), factList(one.facts),
        one.expression && [el('h3', null, t('explain.expression')), el('ul', { class: 'tree' }, term(one.expression))],
        one.rendering && [
          el('h3', null, t('explain.payload')), code(tidy(one.rendering.payload ?? ''), t('explain.payload')),
          one.rendering.limit && el('p', { class: 'hint' }, t('explain.size', { n: one.rendering.bytes, limit: one.rendering.limit })),
          one.rendering.missingProperties?.length > 0 && el('p', { class: 'hint' }, t('explain.missing'), ' ', data(one.rendering.missingProperties.join(', '))),
        ],
        facts([
          [t('explain.outcome'), one.outcome && data([one.outcome.outcome, one.outcome.reason].filter(Boolean).join(': '))],
          [t('explain.pushID'), one.pushId && data(one.pushId)],
        ])))));
}

/** @param {{name: string, text: string, holds?: boolean}[]} list */
const factList = (list = []) => el('ul', { class: 'reasons' }, list.map((fact) => el('li', {
  class: fact.holds === undefined ? null : fact.holds ? 'yes' : 'no',
}, fact.holds !== undefined && el('span', { class: 'mark' }, fact.holds ? t('explain.yes') : t('explain.no')), ' ', data(fact.text))));

/**
 * @param {{expression: string, holds: boolean, parts?: any[]}} part
 * @returns {HTMLElement}
 */
const term = (part) => el('li', null, badge(part.holds ? t('explain.yes') : t('explain.no'), part.holds ? 'good' : 'bad'), ' ',
  el('code', null, part.expression), part.parts && el('ul', { class: 'tree' }, part.parts.map(term)));
