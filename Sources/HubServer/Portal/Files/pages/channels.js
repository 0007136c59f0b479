// @ts-check
// Broadcast channels of APNs. Apple stores them; the hub asks each time.

import * as api from '../api.js';
import { t } from '../text.js';
import { announce, button, choice, code, confirm, data, dialog, el, field, form, heading, input, later, link, nothing, copyButton, submitButton, table } from '../view.js';

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('channels.title'));
  const mayMake = api.role(page.hub) === 'manager';
  const maySend = api.role(page.hub) !== 'viewer';
  page.main.append(
    heading(t('channels.title'), mayMake && button(t('channels.create'), () => create(page), { class: 'main' })),
    el('p', { class: 'soft' }, t('channels.what')),
    later(page.signal, async () => {
      const channels = await list(page);
      if (channels === null) {
        return nothing(t('channels.noCredential'), el('p', null, link(page.to('credentials'), t('channels.setCredential'))));
      }
      if (channels.length === 0) return nothing(t('channels.none'), el('p', null, t('channels.noneAdvice')));
      return table(t('channels.title'), [
        { head: t('channels.id'), cell: (/** @type {string} */ id) => [data(id), ' ', copyButton(id)] },
        { head: t('channels.storage'), cell: (id) => later(page.signal, async () => {
          const channel = await api.json(api.at(page.hub, 'channels', id), { signal: page.signal });
          return t(channel.storage === 'latest' ? 'channels.latest' : 'channels.nothing');
        }, 1) },
        { head: '', cell: (id) => el('div', { class: 'buttons' },
          maySend && button(t('channels.send'), () => send(page, id), { 'aria-label': `${t('channels.send')} ${id}` }),
          mayMake && button(t('view.delete'), () => remove(page, id), { class: 'danger', 'aria-label': `${t('view.delete')} ${id}` })) },
      ], channels);
    }));
}

/**
 * The ids of the channels; null if the hub has no APNs credential to ask with.
 * @param {import('../app.js').Page} page
 * @returns {Promise<string[] | null>}
 */
async function list(page) {
  try {
    return (await api.json(api.at(page.hub, 'channels'), { signal: page.signal })).channels;
  } catch (error) {
    if (!(error instanceof api.APIError) || error.status !== 409) throw error;
    const { credentials } = await api.json(api.at(page.hub, 'credentials'), { signal: page.signal });
    if (credentials.some((/** @type {{platform: string}} */ one) => one.platform === 'apns')) throw error;
    return null;
  }
}

/** @param {import('../app.js').Page} page */
async function create(page) {
  let storage = 'latest';
  const made = await dialog(t('channels.create'), (close) => [form(async () => {
    close(await api.json(api.at(page.hub, 'channels'), { method: 'POST', body: { storage } }));
  }, choice(t('channels.storage'), [['latest', t('channels.latest')], ['none', t('channels.nothing')]], storage, (value) => { storage = value; }),
  el('p', { class: 'hint' }, t('channels.storageHint')),
  el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), submitButton(t('channels.create'))))]);
  if (!made) return;
  announce(t('channels.created'));
  page.reload();
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} id
 */
async function send(page, id) {
  const now = Math.floor(Date.now() / 1000);
  const body = el('textarea', { class: 'code', rows: 10, spellcheck: 'false', value: JSON.stringify({
    aps: { timestamp: now, event: 'update', 'content-state': { home: 1, away: 0 } },
  }, null, 2) });
  const expiration = input({ inputmode: 'numeric', value: '0' });
  const answer = el('div', { role: 'status' });
  await dialog(t('channels.sendTitle'), (close) => [form(async () => {
    const reply = await api.json(api.at(page.hub, 'channels', id, 'messages'), {
      method: 'POST', body: body.value,
      headers: { 'Content-Type': 'application/json', 'apns-expiration': expiration.value.trim() || '0' },
    });
    answer.replaceChildren(el('p', null, t('channels.sent')), code(JSON.stringify(reply, null, 2)));
  }, field(t('channels.payload'), body, t('channels.payloadHint')), field(t('channels.expiration'), expiration, t('channels.expirationHint')),
  el('div', { class: 'buttons' }, button(t('view.close'), () => close(null)), submitButton(t('channels.send'))), answer)]);
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} id
 */
async function remove(page, id) {
  const done = await confirm({
    title: t('channels.deleteTitle'), text: t('channels.deleteText'), action: t('view.delete'),
    act: () => api.request(api.at(page.hub, 'channels', id), { method: 'DELETE' }),
  });
  if (done) page.reload();
}
