// @ts-check
// One device: its data in the hub, its tags, its last pushes and why it did or did not get them.

import * as api from '../api.js';
import { deviceTag, handleOf, isNever, markedMine, markMine, stateOf } from '../devices.js';
import { explain, explanationView, verdictBadge } from '../explanation.js';
import { wordsOf } from '../notificationrows.js';
import { tidy } from '../payloads.js';
import { platformName } from '../platforms.js';
import { has, t } from '../text.js';
import { announce, button, code, confirm, copyButton, data, dialog, el, facts, field, form, heading, input, later, link, moment, nothing, pause, section, short, submitButton, table } from '../view.js';

/** Number of recent notifications examined. */
const latest = 12;

/** @param {import('../app.js').Page} page */
export async function show(page) {
  const { id } = page.params;
  page.title(id);
  const reply = await api.request(api.at(page.hub, 'installations', id), { signal: page.signal });
  /** @type {import('../devices.js').Installation} */
  const device = JSON.parse(await reply.text());
  const tag = deviceTag(device.installationId);
  const mayChange = api.role(page.hub) === 'manager';
  const maySend = api.role(page.hub) !== 'viewer';
  const handle = handleOf(device);
  page.main.append(
    heading(device.installationId,
      maySend && mineButton(page.hub, device.installationId),
      maySend && el('a', { href: page.to('compose') + '?tags=' + encodeURIComponent(tag), class: 'as-button' }, t('device.send')),
      mayChange && button(t('view.delete'), () => remove(page, device), { class: 'danger' })),
    section(t('device.about'), facts([
      [t('devices.platform'), platformName(device.platform)],
      [t('devices.state'), stateOf(device)],
      [t('devices.user'), device.userId && link(page.to('users', device.userId), data(device.userId))],
      [t('devices.until'), isNever(device.expirationTime) ? t('devices.never') : moment(device.expirationTime)],
      [t('device.environment'), device.platform === 'apns' && later(page.signal, () => environment(page, device), 1)],
      [t('device.handle'), el('span', null, short(handle, 40), ' ', copyButton(handle))],
      ...furtherMembers(device),
    ])),
    tagsSection(page, device, mayChange),
    section(t('device.templates'), templates(device)),
    section(t('device.pushes'), el('p', { class: 'hint' }, t('device.pushesHint', { n: latest })),
      later(page.signal, () => pushes(page, device)), explainForm(page, device)));
}

/**
 * Says that a device is this browser's person's, for tests of a message.
 * @param {string} hub
 * @param {string} id
 */
function mineButton(hub, id) {
  const isMarked = () => markedMine(hub).includes(id);
  const node = button(t('device.mine'), () => {
    markMine(hub, id, !isMarked());
    node.setAttribute('aria-pressed', String(isMarked()));
    announce(t(isMarked() ? 'device.isMine' : 'device.notMine'));
  }, { 'aria-pressed': String(isMarked()) });
  return node;
}

/** Members with a place of their own on the page, or none. */
const placed = ['installationId', 'platform', 'pushChannel', 'pushChannelExpired', 'expirationTime', 'userId', 'tags', 'templates', 'secondaryTiles'];

/**
 * The other members of an installation, each under the name that a text gives it, or its own.
 * @param {import('../devices.js').Installation} device
 * @returns {[string, HTMLElement][]}
 */
const furtherMembers = (device) => Object.entries(device).filter(([name]) => !placed.includes(name)).map(([name, value]) => [
  has(`device.member.${name}`) ? t(`device.member.${name}`) : name, data(typeof value === 'string' ? value : JSON.stringify(value))]);

/**
 * The host of the next push: APNs separates builds from Xcode from all others.
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 */
async function environment(page, device) {
  const { registrations } = await api.json(api.at(page.hub, 'devices', 'search'), {
    method: 'POST', body: { handle: handleOf(device) }, signal: page.signal,
  });
  /** @type {{installationId: string | null, template: string | null, endpoint?: string | null}[]} */
  const own = registrations.filter((/** @type {any} */ one) => one.installationId === device.installationId);
  const found = own.find((one) => (one.template ?? null) === null) ?? own[0];
  if (!found) return t('device.noRegistration');
  if (!found.endpoint) return t('device.noEndpoint');
  const name = { 'api.push.apple.com': 'production', 'api.sandbox.push.apple.com': 'sandbox', 'api.development.push.apple.com': 'sandbox' }[found.endpoint];
  return el('span', null, name ? t(`device.${name}`) + ' · ' : '', data(found.endpoint), ' ',
    el('span', { class: 'hint' }, t('device.environmentHint')));
}

/**
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 * @param {boolean} mayChange
 */
function tagsSection(page, device, mayChange) {
  // One change at a time, to keep what another person adds meanwhile.
  const patch = async (/** @type {string} */ op, /** @type {string} */ tag) => {
    const path = op === 'add' ? '/tags' : `/tags/${tag.replace(/~/g, '~0').replace(/\//g, '~1')}`;
    await api.request(api.at(page.hub, 'installations', device.installationId), {
      method: 'PATCH', headers: { 'Content-Type': 'application/json-patch+json' },
      body: JSON.stringify([op === 'add' ? { op, path, value: tag } : { op, path }]),
    });
    announce(t(op === 'add' ? 'device.tagAdded' : 'device.tagRemoved'));
    page.reload();
  };
  const fresh = input({ required: true, maxlength: 120, autocapitalize: 'off' });
  const tags = device.tags ?? [];
  return section(t('devices.tags'),
    tags.length === 0 && el('p', { class: 'soft' }, t('device.noTags')),
    el('ul', { class: 'tags' }, tags.map((tag) => el('li', { class: 'chip' }, data(tag), mayChange && button('×', () => patch('remove', tag), {
      class: 'quiet', 'aria-label': t('device.removeTag', { tag }),
    })))),
    mayChange && form(() => { if (fresh.value.trim()) return patch('add', fresh.value.trim()); },
      el('div', { class: 'row' }, field(t('device.newTag'), fresh), el('div', { class: 'buttons' }, submitButton(t('device.addTag'))))));
}

/** @param {import('../devices.js').Installation} device */
function templates(device) {
  const all = Object.entries(device.templates ?? {});
  if (all.length === 0) return el('p', { class: 'soft' }, t('device.noTemplates'));
  return all.map(([name, template]) => el('details', { open: all.length < 3 }, el('summary', null, data(name)),
    el('div', { class: 'stack' }, code(tidy(template.body), name), facts([
      [t('devices.tags'), template.tags && data(template.tags.join(', '))],
      [t('device.headers'), template.headers && data(Object.entries(template.headers).map((pair) => pair.join(': ')).join('\n'))],
      [t('devices.until'), template.expiry && data(template.expiry)],
    ]))));
}

/**
 * The latest notifications, with the outcome of each for this device.
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 */
async function pushes(page, device) {
  const { items } = await api.list(api.at(page.hub, 'messages'), 'notifications', { $top: latest }, null, page.signal);
  if (items.length === 0) return nothing(t('device.noPushes'));
  const told = items.map((item) => {
    const answer = explain(page.hub, item.notificationId, device.installationId, page.signal);
    answer.catch(() => {});
    return answer;
  });
  return table(t('device.pushes'), [
    { head: t('device.when'), cell: (item) => moment(item.enqueueTime) },
    { head: t('device.notification'), cell: (item) => link(page.to('notifications', item.notificationId), data(wordsOf(item).head)) },
    { head: t('device.to'), cell: (item) => item.tags ? data(item.tags) : t(`device.kind.${item.kind === 'direct' ? 'direct' : 'broadcast'}`) },
    { head: t('device.result'), cell: (item) => later(page.signal, async () => outcome(page, device, item, await told[items.indexOf(item)]), 1) },
  ], items);
}

/**
 * The outcome of a notification, with a button for the reasons; it is asked for again, ever less often, until it
 * is final.
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 * @param {{notificationId: string}} item
 * @param {any} explanation
 */
function outcome(page, device, item, explanation) {
  let answer = explanation;
  const open = button('', () => dialog(t('device.why'), (close) => [explanationView(answer),
    el('div', { class: 'buttons' }, button(t('view.close'), () => close(null)))]), { class: 'quiet verdict' });
  const draw = () => {
    open.replaceChildren(verdictBadge(answer.verdict));
    open.setAttribute('aria-label', `${t('device.why')}: ${answer.text}`);
  };
  const follow = async () => {
    for (let ms = 1000; answer.verdict === 'waiting' || answer.verdict === 'retrying'; ms = Math.min(ms * 2, 30_000)) {
      await pause(ms, page.signal);
      answer = await explain(page.hub, item.notificationId, device.installationId, page.signal);
      draw();
    }
  };
  draw();
  // The last answer stays when the server cannot be asked.
  follow().catch(() => {});
  return open;
}

/**
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 */
function explainForm(page, device) {
  const id = input({ required: true, autocapitalize: 'off' });
  const answer = el('div', { 'aria-live': 'polite' });
  return el('div', { class: 'stack' }, form(async () => {
    if (!id.value.trim()) return id.focus();
    answer.replaceChildren(explanationView(await explain(page.hub, id.value.trim(), device.installationId, page.signal)));
  }, el('div', { class: 'row' }, field(t('device.explain'), id, t('device.explainHint')),
    el('div', { class: 'buttons' }, submitButton(t('device.why'), { class: '' })))), answer);
}

/**
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 */
async function remove(page, device) {
  const done = await confirm({
    title: t('device.deleteTitle'), text: t('device.deleteText'), action: t('view.delete'),
    act: () => api.request(api.at(page.hub, 'installations', device.installationId), { method: 'DELETE' }),
  });
  if (done) page.go(page.to('devices'));
}
