// @ts-check
// Export and import: as a file in this browser, or by a job of the hub from and to a blob store; each with
// its progress.

import * as api from '../api.js';
import { exported, imported } from '../devicefile.js';
import { dress } from '../dress.js';
import { freshly } from '../reauthentication.js';
import { has, percent, t } from '../text.js';
import { announce, badge, button, data, dropZone, el, field, fill, form, heading, input, moment, nothing, notice, pause, save, section, select, short, submitButton, table } from '../view.js';
import { connect, entryOf, made, textOf } from '../xml.js';

const kinds = ['ExportRegistrations', 'ImportCreateRegistrations', 'ImportUpdateRegistrations',
  'ImportUpsertRegistrations', 'ImportDeleteRegistrations'];

/** @typedef {{id: string, type: string, status: string, progress: number, failure: string, output: string, created: string, results: [string, string][]}} Job */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  dress('settings.css');
  page.title(t('jobs.title'));
  const place = el('div');
  page.main.append(heading(t('jobs.title')), el('div', { class: 'grid' }, toFile(page), fromFile(page)),
    submission(page, () => refresh()), section(t('jobs.list'), place));
  const refresh = async () => {
    const jobs = await load(page);
    place.replaceChildren(jobs.length === 0 ? nothing(t('jobs.none')) : list(jobs));
    return jobs.some((job) => !['Completed', 'Failed'].includes(job.status));
  };
  let isBusy = await refresh();
  (async () => {
    for (;;) {
      await pause(isBusy ? 1000 : 5000, page.signal);
      isBusy = await refresh().catch(() => false);
    }
  })().catch(() => {});
}

/** @param {import('../app.js').Page} page */
function toFile(page) {
  const place = el('div', { class: 'stack', role: 'status' });
  const start = button(t('jobs.save'), async () => {
    await under(page, place, async (show, signal) => {
      let counts = { installations: 0, registrations: 0 };
      const file = await exported(page.hub, (now) => {
        counts = now;
        show(now.share, t('jobs.exported', { n: now.installations, registrations: now.registrations }));
      }, signal);
      save(`${page.hub.replaceAll('/', '-')}.txt`, file);
      return notice('good', el('p', null, t('jobs.exported', { n: counts.installations, registrations: counts.registrations })));
    });
  }, { class: 'main' });
  return section(t('jobs.toFile'), el('p', { class: 'soft' }, t('jobs.toFileHint')), el('div', { class: 'buttons' }, start), place);
}

/** @param {import('../app.js').Page} page */
function fromFile(page) {
  const place = el('div', { class: 'stack', role: 'status' });
  let isBusy = false;
  const take = async (/** @type {File} */ file) => {
    if (isBusy) return;
    isBusy = true;
    try {
      await under(page, place, async (show, signal) => {
        const { imported: well, failed, refusals } = await imported(page.hub, file, (now) =>
          show(now.share, t('jobs.imported', { n: now.imported, failed: now.failed })), signal);
        const rest = new Blob(refusals.map(({ text }) => text + '\n'));
        return el('div', { class: 'stack' },
          notice(failed > 0 ? 'note' : 'good', el('p', null, t('jobs.imported', { n: well, failed }))),
          failed > 0 && el('div', { class: 'buttons' }, button(t('jobs.saveRefused'), () => save('refused.txt', rest))),
          failed > 0 && table(t('jobs.refused'), [
            { head: t('jobs.line'), class: 'number', cell: (item) => item.line },
            { head: t('jobs.why'), cell: (item) => has(item.why) ? t(item.why) : data(item.why) },
            { head: t('jobs.text'), cell: (item) => short(item.text, 60) },
          ], refusals.slice(0, 100)));
      });
    } finally {
      isBusy = false;
    }
  };
  return section(t('jobs.fromFile'), el('p', { class: 'soft' }, t('jobs.fromFileHint')),
    dropZone(t('jobs.drop'), t('jobs.dropHint'), take), place);
}

/**
 * Runs a long task with a progress bar, until it ends, is stopped, or the person leaves.
 * @param {import('../app.js').Page} page
 * @param {HTMLElement} place
 * @param {(show: (share: number, text: string) => void, signal: AbortSignal) => Promise<HTMLElement>} act
 */
async function under(page, place, act) {
  const stop = new AbortController();
  page.signal.addEventListener('abort', () => stop.abort(), { once: true });
  const bar = el('progress', { max: 1, value: 0, 'aria-label': t('jobs.running') });
  const said = el('span');
  fill(place, el('div', { class: 'buttons' }, bar, said, button(t('jobs.stop'), () => stop.abort())));
  try {
    fill(place, await act((share, text) => {
      bar.value = share;
      said.textContent = `${percent(share)} · ${text}`;
    }, stop.signal));
  } catch (error) {
    if (page.signal.aborted) return;
    fill(place, notice('note', el('p', null, t('jobs.stopped'), ' ', said.textContent)));
    if (!stop.signal.aborted) throw error;
  }
}

/**
 * @param {import('../app.js').Page} page
 * @returns {Promise<Job[]>}
 */
async function load(page) {
  const { document } = await api.xml(api.at(page.hub, 'jobs'), { signal: page.signal });
  return [...document.getElementsByTagNameNS(connect, 'NotificationHubJob')].map((node) => {
    const text = (/** @type {string} */ name) => textOf(node, name);
    const results = [...node.getElementsByTagName('*')].filter((child) => child.localName === 'KeyValueOfstringstring')
      .map((pair) => /** @type {[string, string]} */ ([pair.children[0]?.textContent ?? '', pair.children[1]?.textContent ?? '']));
    return {
      id: text('JobId'), type: text('Type'), status: text('Status') || 'Started', progress: Number(text('Progress') || 0),
      failure: text('Failure'), output: text('OutputContainerUri').replace(/\?.*$/, ''), created: text('CreatedAt'), results,
    };
  });
}

/** @param {Job[]} jobs */
const list = (jobs) => table(t('jobs.list'), [
  { head: t('jobs.type'), cell: (job) => [t(`jobs.type.${job.type}`), el('div', { class: 'hint' }, short(job.id, 24))] },
  { head: t('jobs.status'), cell: (job) => job.status === 'Completed' ? badge(t('jobs.completed'), 'good')
    : job.status === 'Failed' ? [badge(t('jobs.failed'), 'bad'), el('div', null, data(job.failure))]
      : el('label', null, t('jobs.running'), ' ', el('progress', { max: 100, value: job.progress })) },
  { head: t('jobs.begun'), cell: (job) => moment(job.created) },
  { head: t('jobs.results'), cell: (job) => [data(job.output), ...job.results.map(([name, path]) => el('div', { class: 'hint' }, data(name), ' ', data(path)))] },
], jobs);

/** @param {string} text */
function isAddress(text) {
  try {
    return ['https:', 'http:', 'file:'].includes(new URL(text.trim()).protocol);
  } catch {
    return false;
  }
}

/**
 * @param {import('../app.js').Page} page
 * @param {() => unknown} done
 */
function submission(page, done) {
  const output = input({ placeholder: 'https://…', inputmode: 'url', required: true });
  const file = input({ placeholder: 'https://…', inputmode: 'url' });
  const fileField = field(t('jobs.file'), file, t('jobs.fileHint'));
  const type = select(kinds.map((kind) => [kind, t(`jobs.type.${kind}`)]), kinds[0], (value) => { fileField.hidden = value === kinds[0]; });
  fileField.hidden = true;
  return section(t('jobs.new'), form(async () => {
    if (!isAddress(output.value)) { output.focus(); throw new api.APIError(400, 'jobs.noAddress'); }
    if (type.value !== kinds[0] && !isAddress(file.value)) { file.focus(); throw new api.APIError(400, 'jobs.noAddress'); }
    const { description: job, text } = entryOf('NotificationHubJob');
    /** @type {[string, string][]} */
    const members = [['Type', type.value], ['OutputContainerUri', output.value.trim()]];
    if (type.value !== kinds[0]) members.push(['ImportFileUri', file.value.trim()]);
    for (const [name, value] of members) job.append(made(job, name, value));
    await freshly(() => api.xml(api.at(page.hub, 'jobs'), { method: 'POST', body: text() }));
    announce(t('jobs.submitted'));
    await done();
  }, field(t('jobs.type'), type), fileField, field(t('jobs.output'), output, t('jobs.outputHint')),
  el('div', { class: 'buttons' }, submitButton(t('jobs.submit')))));
}
