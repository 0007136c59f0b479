// @ts-check
// A user: the devices, what they got, their tags, and erasing all data of the user in the hub, with a receipt.

import * as api from '../api.js';
import { emblem, isReachable, lastWritten, ownRegistrations, stateOf, userTag } from '../devices.js';
import { dress } from '../dress.js';
import { verdictBadge } from '../explanation.js';
import { notificationRows } from '../notificationrows.js';
import { platformWord } from '../platforms.js';
import { isForIt, received } from '../received.js';
import { ago, number, t, time } from '../text.js';
import { badge, button, checkbox, chips, confirm, data, el, facts, fill, heading, link, notice, pagedList, save, section, short } from '../view.js';

/** Devices for which notifications are explained. */
const mostDevices = 5;
/** Messages to the user alone that are looked for at a time. */
const latest = 12;

/** @typedef {import('../devices.js').Installation} Installation */
/** @typedef {import('../notificationrows.js').Summary} Summary */

/** @param {import('../app.js').Page} page */
export async function show(page) {
  dress('overview.css');
  const { id } = page.params;
  page.title(id);
  const isManager = api.role(page.hub) === 'manager';
  /** @param {string | null} from */
  const load = (from) => api.list(api.at(page.hub, 'installations'), 'installations', { user: id }, from, page.signal);
  const first = await load(null);
  /** @type {Set<string>} */
  const tags = new Set();
  const tagList = el('div');
  /** @param {Installation[]} more */
  const noteTags = (more) => {
    for (const device of more) for (const tag of device.tags ?? []) tags.add(tag);
    fill(tagList, tags.size ? chips([...tags].sort()) : el('p', { class: 'soft' }, t('device.noTags')));
  };
  noteTags([]);
  const seen = el('span');
  let newest = '';
  /** @param {Installation[]} more */
  const note = (more, /** @type {HTMLElement[]} */ places) => {
    noteTags(more);
    void (async () => {
      for (const [index, device] of more.entries()) {
        const at = lastWritten(await ownRegistrations(page.hub, device, page.signal));
        if (!at) continue;
        places[index].append(el('span', null, ' · ', t('user.deviceWritten', { ago: ago(at) })));
        if (at <= newest) continue;
        newest = at;
        fill(seen, ' · ', t('user.written', { ago: ago(at) }));
      }
    })().catch(() => {
      // The page is left, or the time stays unsaid: nothing else depends on it.
    });
  };
  const body = el('div', { class: 'stack' });
  const receipt = el('div', { role: 'status' });
  const reachable = first.items.filter(isReachable).length;
  const of = first.next ? t('user.andMore', { n: first.items.length }) : number(first.items.length);
  body.append(
    section(t('user.devices'), pagedList({
      caption: t('user.devices'), signal: page.signal, empty: t('user.none'), view: (items) => cards(page, items, note),
      // The first page is there already.
      load: async (from) => from === null ? first : load(from),
    })),
    el('div', { class: 'two' }, got(page, first.items, isManager), el('div', { class: 'stack' },
      section(t('devices.tags'), el('p', { class: 'hint' }, t('user.tagsHint')), tagList),
      isManager ? el('div', { class: 'danger-zone' }, el('span', { class: 'hint' }, t('user.eraseHint')),
        button(t('user.erase'), () => erase(page, receipt, body), { class: 'danger' })) : '')));
  page.main.append(
    heading({
      emblem: emblem('person'), title: data(id),
      lede: first.items.length > 0 && [t('user.reachable', { n: reachable, all: of }), seen],
    }, api.role(page.hub) !== 'viewer' && el('a', {
      href: page.to('compose') + '?tags=' + encodeURIComponent(userTag(id)), class: 'as-button main' }, t('user.send'))),
    receipt, body);
}

/**
 * @param {import('../app.js').Page} page
 * @param {Installation[]} items
 * @param {(more: Installation[], places: HTMLElement[]) => void} added `places`: the line of each with its id
 */
function cards(page, items, added) {
  const node = el('ul', { class: 'owned' });
  /** @param {Installation[]} more */
  const add = (more) => {
    const places = more.map(({ installationId }) => el('p', { class: 'hint' }, short(installationId, 26)));
    node.append(...more.map((device, index) => el('li', null, emblem(device.platform),
      el('div', null, link(page.to('devices', device.installationId), nameOf(device)), places[index], el('p', null, stateOf(device))))));
    added(more, places);
  };
  add(items);
  return Object.assign(node, { add });
}

/**
 * The platform, of a browser with the host of its push service.
 * @param {Installation} device
 */
function nameOf({ platform, pushChannel }) {
  const endpoint = typeof pushChannel === 'string' ? '' : pushChannel?.endpoint ?? '';
  const host = /^https?:\/\/([^/]+)/.exec(endpoint)?.[1];
  return host ? `${platformWord(platform)}, ${host}` : platformWord(platform);
}

// --- What they got ---------------------------------------------------------------------------

/**
 * The messages to this user alone, whose outcomes are the user's; else the hub's latest that were for the user, as
 * the hub explains them, which only managers may ask.
 * @param {import('../app.js').Page} page
 * @param {Installation[]} devices
 * @param {boolean} isManager
 */
function got(page, devices, isManager) {
  const list = el('div');
  const alone = checkbox(t('user.alone'), !isManager || page.query.get('alone') === '1', (checked) => {
    page.keep({ alone: checked ? '1' : null });
    draw();
  });
  const draw = () => fill(list, alone.input.checked ? toThemAlone(page) : explained(page, devices.slice(0, mostDevices)));
  draw();
  return section({ title: t('user.got', { name: page.params.id }), beside: isManager && alone }, list);
}

/** @param {import('../app.js').Page} page */
function toThemAlone(page) {
  const tag = userTag(page.params.id);
  return pagedList({
    caption: t('user.alone'), signal: page.signal, enough: latest, empty: el('p', { class: 'hint' }, t('user.nothingAlone')),
    load: async (from) => {
      /** @type {{items: Summary[], next: string | null}} */
      const { items, next } = await api.list(api.at(page.hub, 'messages'), 'notifications', { tag, $top: 25 }, from, page.signal);
      return { items: items.filter(({ tags }) => isAlone(tags ?? '', tag)), next };
    },
    view: (items) => notificationRows({ to: page.to, items, isBrief: true }),
  });
}

/**
 * Whether an expression with this tag reaches nobody without it.
 * @param {string} expression
 * @param {string} tag
 */
function isAlone(expression, tag) {
  const text = expression.toLowerCase().replace(/\s/g, '');
  return !/\|\||!\(/.test(text) && text.split('&&').some((part) => part.replace(/[()]/g, '') === tag.toLowerCase());
}

/**
 * @param {import('../app.js').Page} page
 * @param {Installation[]} devices
 */
const explained = (page, devices) => devices.length === 0 ? el('p', { class: 'hint' }, t('user.none')) : received(page, {
  devices: devices.map(({ installationId }) => installationId), caption: t('user.got', { name: page.params.id }), empty: t('user.nothingLately'),
  came: (_, explanations) => el('span', null, outcome(explanations)),
});

/** @param {{verdict: string}[]} all one a device */
function outcome(all) {
  const own = all.filter(isForIt).map(({ verdict }) => verdict);
  const well = own.filter((verdict) => verdict === 'delivered').length;
  if (own.length === 1 || well === 0) return verdictBadge(own.find((verdict) => verdict !== 'duplicate') ?? own[0]);
  return badge(t('user.deliveredTo', { n: well, all: own.length }), own.includes('failed') ? 'note' : 'good');
}

/**
 * @param {import('../app.js').Page} page
 * @param {HTMLElement} place
 * @param {HTMLElement} body what there was to see of the user
 */
async function erase(page, place, body) {
  const user = page.params.id;
  /** @type {Record<string, number> | null} */
  let counts = null;
  await confirm({
    title: t('user.eraseTitle', { name: user }), text: t('user.eraseText'), action: t('user.erase'), type: user,
    act: async () => { counts = await api.json(api.at(page.hub, 'users', user), { method: 'DELETE' }); },
  });
  if (!counts) return;
  const receipt = { hub: page.hub, user, erasedAt: new Date().toISOString(), ...(/** @type {object} */ (counts)) };
  fill(body);
  place.replaceChildren(notice('good',
    el('p', { class: 'strong' }, t('user.erased', { time: time(receipt.erasedAt) })),
    facts(Object.entries(counts).map(([name, count]) => [t(`user.count.${name}`), data(String(count))])),
    el('p', null, button(t('user.receipt'), () => save('erasure.json', JSON.stringify(receipt, null, 2), 'application/json')))));
}
