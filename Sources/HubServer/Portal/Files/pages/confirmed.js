// @ts-check
// The provider's page redirects here after an operator has confirmed their identity: the tab in which
// they were asked continues.

import { channel } from '../reauthentication.js';
import { t } from '../text.js';
import { el, heading } from '../view.js';

/** @param {import('../app.js').Page} page */
export async function show(page) {
  page.title(t('fresh.done'));
  page.main.classList.add('lone');
  page.main.append(heading(t('fresh.done')), el('p', null, t('fresh.close')));
  new BroadcastChannel(channel).postMessage('');
}
