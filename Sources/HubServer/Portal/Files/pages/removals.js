// @ts-check
// Devices that their push services reported dead, by hour; and restoring a wave of them.

import * as api from '../api.js';
import { advice, outcomeBadges } from '../outcomes.js';
import { platformName, platforms } from '../platforms.js';
import { number, t, time } from '../text.js';
import { badge, button, dialog, el, field, fill, form, heading, moment, nothing, notice, pagedList, select, submitButton } from '../view.js';

/** Number of hours shown at a time. */
const rows = 100;

/**
 * Devices that a platform's service reported dead within an hour.
 * @typedef {{hour: string, platform: string, outcomes: Record<string, number>, registrations: number}} Wave
 */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('removals.title'));
  const place = el('div');
  const said = el('div', { role: 'status' });
  const platform = select([['', t('devices.every')], ...Object.keys(platforms).map(
    (key) => /** @type {[string, string]} */ ([key, platformName(key)]))], page.query.get('platform') ?? '', (value) => {
    page.keep({ platform: value });
    return list();
  });
  const list = async () => {
    const waves = await read(page, platform.value);
    place.replaceChildren(pagedList({
      caption: t('removals.title'), signal: page.signal,
      empty: nothing(t('removals.none'), el('p', null, t('removals.noneAdvice'))),
      load: async (from) => {
        const end = Number(from ?? 0) + rows;
        return { items: waves.slice(end - rows, end), next: end < waves.length ? String(end) : null };
      },
      columns: [
        { head: t('removals.hour'), cell: (wave) => el('span', null, time(wave.hour), ' ', el('span', { class: 'hint' }, moment(wave.hour))) },
        { head: t('devices.platform'), cell: (wave) => platformName(wave.platform) },
        { head: t('removals.why'), cell: (wave) => [el('div', null, outcomeBadges(wave.outcomes)), ...Object.keys(wave.outcomes)
          .map((outcome) => el('div', { class: 'hint' }, advice(outcome)))] },
        { head: t('removals.count'), class: 'number', cell: (wave) => wave.registrations },
        { head: '', cell: (wave) => button(t('removals.restore'), () => restore(page, wave, waves, async (result) => {
          said.replaceChildren(result);
          await list();
        }), { 'aria-label': `${t('removals.restore')}: ${platformName(wave.platform)}, ${time(wave.hour)}` }) },
      ],
    }));
  };
  page.main.append(heading(t('removals.title')), el('p', { class: 'soft lead' }, t('removals.lead')),
    el('div', { class: 'row filters' }, field(t('devices.platform'), platform)), said, place);
  await list();
}

/**
 * Newest first.
 * @param {import('../app.js').Page} page
 * @param {string} platform '' for all
 * @returns {Promise<Wave[]>}
 */
async function read(page, platform) {
  const { removals } = await api.json(api.at(page.hub, 'removals'), { query: { platform }, signal: page.signal });
  /** @type {Map<string, Wave>} */
  const waves = new Map();
  for (const { hour, platform, outcome, registrations } of removals) {
    const key = `${hour} ${platform}`;
    /** @type {Wave} */
    const wave = waves.get(key) ?? { hour, platform, outcomes: {}, registrations: 0 };
    wave.outcomes[outcome] = (wave.outcomes[outcome] ?? 0) + registrations;
    wave.registrations += registrations;
    waves.set(key, wave);
  }
  return [...waves.values()].sort((one, other) => Date.parse(other.hour) - Date.parse(one.hour));
}

/**
 * Restores the devices that the platform's service reported dead since the start of an hour. A request restores
 * some thousands, so it is repeated until none is left.
 * @param {import('../app.js').Page} page
 * @param {Wave} wave
 * @param {Wave[]} waves
 * @param {(result: HTMLElement) => unknown} done
 */
async function restore(page, { platform, hour }, waves, done) {
  const count = waves.filter((wave) => wave.platform === platform && Date.parse(wave.hour) >= Date.parse(hour))
    .reduce((all, wave) => all + wave.registrations, 0);
  const name = platformName(platform);
  const sums = { restored: 0, superseded: 0 };
  const progress = el('div', { role: 'status' });
  let isStopped = false;
  const path = api.at(page.hub, 'removals', 'restore');
  const isWhole = await dialog(t('removals.restoreTitle', { n: count }), (close) => [form(async () => {
    for (let more = true; more && !isStopped;) {
      const reply = await api.json(path, { method: 'POST', query: { platform, since: hour } });
      sums.restored += reply.restored;
      sums.superseded += reply.superseded;
      more = reply.more;
      fill(progress, el('progress', { max: count, value: sums.restored + sums.superseded, 'aria-label': t('removals.restore') }),
        ' ', t('removals.soFar', { n: sums.restored }));
    }
    close(true);
  },
  el('p', null, t('removals.text', { platform: name, time: time(hour) }), ' ', badge(number(count), 'note')),
  el('p', { class: 'hint' }, t('removals.first')), progress,
  el('div', { class: 'buttons' }, button(t('view.cancel'), () => {
    isStopped = true;
    close(null);
  }), submitButton(t('removals.restore'))))]);
  isStopped = true;
  if (!isWhole && sums.restored + sums.superseded === 0) return;
  await done(notice('good', el('p', null, t('removals.restored', { n: sums.restored })),
    sums.superseded > 0 && el('p', null, t('removals.superseded', { n: sums.superseded }))));
}
