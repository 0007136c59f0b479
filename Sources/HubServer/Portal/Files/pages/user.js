// @ts-check
// A user: the devices, and erasing all data of the user in the hub, with a receipt.

import * as api from '../api.js';
import { installationColumns } from '../devices.js';
import { t, time } from '../text.js';
import { button, confirm, data, el, facts, heading, notice, pagedList, save, section } from '../view.js';

/** @param {import('../app.js').Page} page */
export async function show(page) {
  const { id } = page.params;
  page.title(id);
  const receipt = el('div', { role: 'status' });
  page.main.append(
    heading(t('user.title', { name: id }),
      api.role(page.hub) !== 'viewer' && el('a', { href: page.to('compose') + '?tags=' + encodeURIComponent(`$UserId:{${id}}`), class: 'as-button' }, t('user.send')),
      api.role(page.hub) === 'manager' && button(t('user.erase'), () => erase(page, receipt), { class: 'danger' })),
    receipt,
    section(t('user.devices'), pagedList({
      caption: t('user.devices'), columns: installationColumns(page).filter((column) => column.head !== t('devices.user')),
      signal: page.signal, empty: t('user.none'),
      load: (from) => api.list(api.at(page.hub, 'installations'), 'installations', { user: id }, from, page.signal),
    })));
}

/**
 * @param {import('../app.js').Page} page
 * @param {HTMLElement} place
 */
async function erase(page, place) {
  const user = page.params.id;
  /** @type {Record<string, number> | null} */
  let counts = null;
  await confirm({
    title: t('user.eraseTitle', { name: user }), text: t('user.eraseText'), action: t('user.erase'), type: user,
    act: async () => { counts = await api.json(api.at(page.hub, 'users', user), { method: 'DELETE' }); },
  });
  if (!counts) return;
  const receipt = { hub: page.hub, user, erasedAt: new Date().toISOString(), ...(/** @type {object} */ (counts)) };
  place.replaceChildren(notice('good',
    el('p', { class: 'strong' }, t('user.erased', { time: time(receipt.erasedAt) })),
    facts(Object.entries(counts).map(([name, count]) => [t(`user.count.${name}`), data(String(count))])),
    el('p', null, button(t('user.receipt'), () => save('erasure.json', JSON.stringify(receipt, null, 2), 'application/json')))));
}
