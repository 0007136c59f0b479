// @ts-check
// Scheduled notifications.

import * as api from '../api.js';
import { formatName } from '../platforms.js';
import { t } from '../text.js';
import { announce, button, confirm, data, heading, link, moment, nothing, el, pagedList, short } from '../view.js';

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('schedules.title'));
  const mayCancel = api.role(page.hub) !== 'viewer';
  page.main.append(
    heading(t('schedules.title'), mayCancel && el('a', { href: page.to('compose') + '?when=later', class: 'as-button' }, t('schedules.new'))),
    pagedList({
      caption: t('schedules.title'), signal: page.signal,
      empty: nothing(t('schedules.none'), el('p', null, t('schedules.noneAdvice'))),
      load: (from) => api.list(api.at(page.hub, 'schedulednotifications'), 'notifications', {}, from, page.signal),
      columns: [
        { head: t('schedules.due'), cell: (item) => moment(item.dueTime) },
        { head: t('schedules.id'), cell: (item) => link(page.to('notifications', item.notificationId), short(item.notificationId, 20)) },
        { head: t('schedules.format'), cell: (item) => formatName(item.format) },
        { head: t('schedules.to'), cell: (item) => item.tags ? data(item.tags) : t('schedules.everyone') },
        { head: t('schedules.made'), cell: (item) => moment(item.enqueueTime) },
        { head: '', cell: (item) => mayCancel && button(t('schedules.cancel'), () => cancel(page, item.notificationId), {
          'aria-label': `${t('schedules.cancel')} ${item.notificationId}`,
        }) },
      ],
    }));
}

/**
 * @param {import('../app.js').Page} page
 * @param {string} id
 */
async function cancel(page, id) {
  const done = await confirm({
    title: t('schedules.cancelTitle'), text: t('schedules.cancelText'), action: t('schedules.cancel'),
    act: () => api.request(api.at(page.hub, 'schedulednotifications', id), { method: 'DELETE' }),
  });
  if (!done) return;
  announce(t('schedules.canceled'));
  page.reload();
}
