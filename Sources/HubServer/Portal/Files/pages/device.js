// @ts-check
// One device: its data in the hub, its tags, its last pushes and why it did or did not get them.

import * as api from '../api.js';
import { deviceTag, emblem, handleOf, isNever, lastWritten, markedMine, markMine, ownRegistrations, stateOf } from '../devices.js';
import { dress } from '../dress.js';
import { explain, explanationView, verdictBadge } from '../explanation.js';
import { wordsOf } from '../notificationrows.js';
import { tidy } from '../payloads.js';
import { platformName, platformWord } from '../platforms.js';
import { received } from '../received.js';
import { has, t } from '../text.js';
import { announce, button, checkbox, code, confirm, copyButton, data, dialog, el, facts, field, fill, form, freshID, heading, input, later, link, moment, pause, section, short, submitButton } from '../view.js';

/** Parts of the list of notifications that are searched for a text. */
const mostParts = 10;

/** @param {import('../app.js').Page} page */
export async function show(page) {
  dress('overview.css');
  const { id } = page.params;
  page.title(id);
  const reply = await api.request(api.at(page.hub, 'installations', id), { signal: page.signal });
  /** @type {import('../devices.js').Installation} */
  const device = JSON.parse(await reply.text());
  const { installationId, platform, userId } = device;
  const mayChange = api.role(page.hub) === 'manager';
  const maySend = api.role(page.hub) !== 'viewer';
  page.main.append(
    heading({
      emblem: emblem(platform), title: nameOf(page, device),
      lede: [el('span', { class: 'mono' }, data(installationId)), ' ', copyButton(installationId, t('view.copy'), `${t('view.copy')}: ${t('devices.id')}`)],
    }, maySend && mineButton(page.hub, installationId),
    maySend && el('a', { href: page.to('compose') + '?tags=' + encodeURIComponent(deviceTag(installationId)), class: 'as-button main' }, t('device.send'))),
    el('div', { class: 'two' },
      el('div', { class: 'stack apart' }, got(page, device), explainForm(page, device)),
      el('div', { class: 'stack apart' },
        about(page, device),
        tagsSection(page, device, mayChange),
        section({ title: [t('device.templates'), ' ', el('span', { class: 'soft' }, Object.keys(device.templates ?? {}).length)] }, templates(device)),
        mayChange && el('div', { class: 'danger-zone' }, el('span', { class: 'hint' }, t('device.deleteHint')),
          button(t('device.delete'), () => remove(page, device), { class: 'danger' })))));
  if (userId) page.title(t('device.titleOf', { platform: platformWord(platform), user: userId }));
}

/**
 * The platform, and whose it is.
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 */
function nameOf(page, { platform, userId }) {
  if (!userId) return t('device.titlePlain', { platform: platformWord(platform) });
  // The name is a link, wherever the language puts it.
  const [before, after] = t('device.titleOf', { platform: platformWord(platform), user: '\n' }).split('\n');
  return [before, link(page.to('users', userId), data(userId)), after];
}

/**
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 */
function about(page, device) {
  const handle = handleOf(device);
  /** @type {ReturnType<typeof ownRegistrations> | null} one request for two rows, again after a failure */
  let asked = null;
  const own = () => asked ??= ownRegistrations(page.hub, device, page.signal).catch((error) => {
    asked = null;
    throw error;
  });
  return section(t('device.about'), facts([
    [t('devices.state'), stateOf(device)],
    [t('device.written'), later(page.signal, async () => {
      const at = lastWritten(await own());
      return at ? moment(at) : t('device.writtenUnknown');
    }, 1)],
    [t('devices.platform'), platformName(device.platform)],
    [t('device.environment'), device.platform === 'apns' && later(page.signal, async () => environment(await own()), 1)],
    [t('devices.user'), device.userId && link(page.to('users', device.userId), data(device.userId))],
    [t('devices.until'), isNever(device.expirationTime) ? t('devices.never') : moment(device.expirationTime)],
    [t('device.handle'), [el('span', { class: 'mono' }, short(handle, 17)), ' ', copyButton(handle, t('view.copy'), `${t('view.copy')}: ${t('device.handle')}`)]],
    ...furtherMembers(device),
  ], 'beside'));
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
 * @param {Awaited<ReturnType<typeof ownRegistrations>>} own
 */
function environment(own) {
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
  const fresh = input({ required: true, maxlength: 120, autocapitalize: 'off', id: freshID(), placeholder: t('device.newTag') });
  const tags = device.tags ?? [];
  return section(t('devices.tags'),
    tags.length === 0 && el('p', { class: 'soft' }, t('device.noTags')),
    el('ul', { class: 'tags' }, tags.map((tag) => el('li', { class: 'chip' }, data(tag), mayChange && button('×', () => patch('remove', tag), {
      class: 'quiet', 'aria-label': t('device.removeTag', { tag }),
    })))),
    mayChange && form(() => { if (fresh.value.trim()) return patch('add', fresh.value.trim()); },
      el('div', { class: 'pair' }, el('label', { class: 'unseen', for: fresh.id }, t('device.newTag')), fresh, submitButton(t('device.addTag'), { class: '' }))));
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
 * The latest notifications that were for the device, or all with the reason why they were not.
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 */
function got(page, device) {
  const list = el('div');
  let listed = new AbortController();
  page.signal.addEventListener('abort', () => listed.abort());
  const others = checkbox(t('device.others'), page.query.get('others') === '1', (checked) => {
    page.keep({ others: checked ? '1' : null });
    draw();
  });
  function draw() {
    listed.abort();
    listed = new AbortController();
    const { signal } = listed;
    fill(list, received(page, {
      devices: [device.installationId], caption: t('device.got'), empty: t('device.gotNothing'), isWhole: others.input.checked, signal,
      came: ({ notificationId }, [explanation]) => outcome(page, device, notificationId, explanation, signal),
    }));
  }
  draw();
  return section({ title: t('device.got'), beside: others }, list);
}

/**
 * The outcome of a notification, with a button for the reasons; it is asked for again, ever less often, until it
 * is final.
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 * @param {string} id
 * @param {any} explanation
 * @param {AbortSignal} signal
 */
function outcome(page, device, id, explanation, signal) {
  let answer = explanation;
  const open = button('', () => dialog(t('device.why'), (close) => [explanationView(answer),
    el('div', { class: 'buttons' }, button(t('view.close'), () => close(null)))]), { class: 'quiet verdict' });
  const draw = () => {
    open.replaceChildren(verdictBadge(answer.verdict));
    open.setAttribute('aria-label', `${t('device.why')}: ${answer.text}`);
  };
  const follow = async () => {
    for (let ms = 1000; answer.verdict === 'waiting' || answer.verdict === 'retrying'; ms = Math.min(ms * 2, 30_000)) {
      await pause(ms, signal);
      answer = await explain(page.hub, id, device.installationId, signal);
      draw();
    }
  };
  draw();
  // The last answer stays when the server cannot be asked.
  follow().catch(() => {});
  return open;
}

/**
 * Explains a notification that is found by its id or by what it says.
 * @param {import('../app.js').Page} page
 * @param {import('../devices.js').Installation} device
 */
function explainForm(page, device) {
  const what = input({ type: 'search', required: true, maxlength: 200, autocapitalize: 'off' });
  const answer = el('div', { class: 'stack', role: 'status' });
  return section(t('device.explain'), form(async () => {
    const wanted = what.value.trim();
    if (!wanted) return what.focus();
    fill(answer);
    const item = await find(page, wanted);
    if (!item) return fill(answer, el('p', { class: 'hint' }, t('device.explainNone', { q: wanted })));
    const explanation = await explain(page.hub, item.notificationId, device.installationId, page.signal);
    fill(answer, el('p', { class: 'strong' }, link(page.to('notifications', item.notificationId), data(wordsOf(item).head))), explanationView(explanation));
  }, el('div', { class: 'row' }, field(t('device.explainWhat'), what),
    el('div', { class: 'buttons' }, submitButton(t('device.explainGo'), { class: '' })))), answer);
}

/**
 * The notification with this id, else the newest that says this.
 * @param {import('../app.js').Page} page
 * @param {string} wanted
 * @returns {Promise<Pick<import('../notificationrows.js').Summary, 'notificationId' | 'title' | 'text' | 'textState'> | null>}
 */
async function find(page, wanted) {
  /** @type {string | null} */
  let from = null;
  for (let part = 0; part < mostParts; part += 1) {
    /** @type {{items: import('../notificationrows.js').Summary[], next: string | null}} */
    const { items, next } = await api.list(api.at(page.hub, 'messages'), 'notifications', { q: wanted, $top: 1 }, from, page.signal);
    if (items.length > 0) return items[0];
    if (!next) break;
    from = next;
  }
  // An id is found at any age: the hub's own begins with hexadecimal digits, the original's with decimal ones.
  return /^[0-9a-f]{8,}(-\d+){2,}$/i.test(wanted) ? { notificationId: wanted } : null;
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
