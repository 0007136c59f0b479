// @ts-check
// Jobs: exports and imports of a hub's registrations, with how far they have come.

import * as api from '../api.js';
import { dress } from '../dress.js';
import { freshly } from '../reauthentication.js';
import { t } from '../text.js';
import { announce, badge, button, data, el, facts, field, form, heading, input, moment, nothing, pause, section, select, short, submitButton, table } from '../view.js';

const connect = 'http://schemas.microsoft.com/netservices/2010/10/servicebus/connect';
const atom = 'http://www.w3.org/2005/Atom';
const kinds = ['ExportRegistrations', 'ImportCreateRegistrations', 'ImportUpdateRegistrations',
  'ImportUpsertRegistrations', 'ImportDeleteRegistrations'];

/** @typedef {{id: string, type: string, status: string, progress: number, failure: string, output: string, created: string, results: [string, string][]}} Job */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  dress('settings.css');
  page.title(t('jobs.title'));
  const place = el('div');
  page.main.append(heading(t('jobs.title')), submission(page, () => refresh()), section(t('jobs.list'), place));
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

/**
 * @param {import('../app.js').Page} page
 * @returns {Promise<Job[]>}
 */
async function load(page) {
  const { document } = await api.xml(api.at(page.hub, 'jobs'), { signal: page.signal });
  return [...document.getElementsByTagNameNS(connect, 'NotificationHubJob')].map((node) => {
    const text = (/** @type {string} */ name) =>
      [...node.children].find((child) => child.localName === name)?.textContent ?? '';
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
    if (!output.value.trim()) return output.focus();
    const entry = document.implementation.createDocument(atom, 'entry', null);
    const content = entry.createElementNS(atom, 'content');
    content.setAttribute('type', 'application/xml');
    const job = entry.createElementNS(connect, 'NotificationHubJob');
    /** @type {[string, string][]} */
    const members = [['Type', type.value], ['OutputContainerUri', output.value.trim()]];
    if (type.value !== kinds[0]) members.push(['ImportFileUri', file.value.trim()]);
    for (const [name, value] of members) job.append(Object.assign(entry.createElementNS(connect, name), { textContent: value }));
    content.append(job);
    entry.documentElement.append(content);
    const body = new XMLSerializer().serializeToString(entry);
    await freshly(() => api.xml(api.at(page.hub, 'jobs'), { method: 'POST', body }));
    announce(t('jobs.submitted'));
    await done();
  }, field(t('jobs.type'), type), fileField, field(t('jobs.output'), output, t('jobs.outputHint')),
  el('div', { class: 'buttons' }, submitButton(t('jobs.submit')))));
}
