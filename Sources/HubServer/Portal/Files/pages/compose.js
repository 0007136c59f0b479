// @ts-check
// Compose: a message for every platform or by template, whom it reaches, and the phone beside it. The query may
// set `tags`, `format`, `body`, `handle`, `to` and `when`, so that other pages can link here, and `draft`.

import * as api from '../api.js';
import { audience, reached, reachView, whomIn } from '../audience.js';
import { fold, messageForm, propertyForm } from '../composeform.js';
import { previewAside } from '../composepreview.js';
import { showAs } from '../copyas.js';
import { mine } from '../devices.js';
import { drafts, dropDraft, keepDraft } from '../drafts.js';
import { dress } from '../dress.js';
import { editor } from '../editor.js';
import { credentialsOf } from '../hubs.js';
import { blank, empty, fieldsOf, isSilent, isVisible, read, timed, write } from '../message.js';
import { check, samples } from '../payloads.js';
import { platformName, platformOf, platforms, platformWord } from '../platforms.js';
import { symbol } from '../preview.js';
import { deliver, findings, isMeant, report, tested, tried } from '../sending.js';
import { ago, number, shortTime, t } from '../text.js';
import { announce, bare, button, calmly, data, dialog, el, failure, field, fill, form, heading, input, link, notice, section, submitButton } from '../view.js';

/** Offered even if the audience has none of their devices yet. */
const common = ['apns', 'fcmv1', 'browser', 'wns'];

/**
 * @typedef {object} State what a draft keeps
 * @property {boolean} isTemplate
 * @property {string[] | null} picked platforms; null: those that the audience has
 * @property {import('../message.js').Fields} fields
 * @property {Record<string, import('../message.js').Content>} contents by platform, and 'template'
 * @property {import('../audience.js').Whom} whom
 * @property {string} at '' now, else ISO 8601
 * @property {Record<string, number>} rounds of a part: counts up when its key was used for another message
 * @property {string[]} lost parts that may have been accepted although no reply came
 * @property {Record<string, string>} done the notification of each part that was accepted
 * @property {number} pressed when it was sent, in ms: what a repeat of a lost part has to repeat
 */

/** @param {URLSearchParams} query */
function begun(query) {
  /** @type {State} */
  const state = {
    isTemplate: false, picked: null, fields: { ...blank }, contents: {}, whom: whomIn(query), at: '', rounds: {}, lost: [], done: {}, pressed: 0,
  };
  const format = query.get('format') ?? '';
  const body = query.get('body');
  const platform = platformOf(format);
  if (format === 'template') {
    state.isTemplate = true;
    if (body !== null) state.contents.template = { body, headers: {} };
  } else if (platform) {
    state.picked = [platform];
    if (body !== null) {
      const content = { ...empty(platform), body };
      state.contents[platform] = content;
      state.fields = read(platform, content, state.fields) ?? state.fields;
    }
  }
  return state;
}

/** @param {import('../app.js').Page} page */
export function show(page) {
  dress('compose.css');
  dress('preview.css');
  const { hub, signal } = page;
  const maySend = api.role(hub) !== 'viewer';
  const kept = drafts(hub).find((one) => one.id === page.query.get('draft'));
  const id = kept?.id ?? crypto.randomUUID();
  const state = begun(page.query);
  if (kept) Object.assign(state, kept.state, { fields: { ...blank, ...kept.state.fields }, whom: { ...state.whom, ...kept.state.whom, handle: '' } });
  const wantsSchedule = !kept && page.query.get('when') === 'later';
  /** Platforms without a credential, as far as this person may know. @type {Set<string>} */
  let lacking = new Set();
  /** Devices by platform of the last count. @type {Map<string, number>} */
  let natives = new Map();
  /** @type {Record<string, number>} */
  let uses = {};
  let total = 0;
  let tab = '';

  // --- What is said ----------------------------------------------------------------------------

  const all = Object.keys(platforms);
  const offered = () => all.filter((platform) => common.includes(platform) || natives.get(platform) || state.picked?.includes(platform));
  /** The platforms of the message. */
  const chosen = () => {
    if (state.picked) return all.filter((platform) => state.picked?.includes(platform));
    const handle = whom.handle();
    if (handle) return [platformOfHandle(handle)];
    const usable = offered().filter((platform) => !lacking.has(platform));
    const present = usable.filter((platform) => natives.get(platform));
    return present.length ? present : usable.filter((platform) => common.includes(platform));
  };
  const parts = () => state.isTemplate ? ['template'] : chosen();
  /** Those that were not accepted yet. */
  const openParts = () => parts().filter((part) => !Object.hasOwn(state.done, part));
  /** When to send it; a raw handle gets it at once. */
  const due = () => whom.handle() ? '' : state.at;
  const formatOf = (/** @type {string} */ part) => part === 'template' ? part : platforms[part].format;
  /** @param {string} part */
  function content(part) {
    const known = state.contents[part];
    if (known) return known;
    // One that the form cannot write begins with a sample.
    const [sample] = samples[formatOf(part)] ?? [];
    const first = fieldsOf(part).length || !sample ? empty(part) : { body: sample.body, headers: sample.headers ?? {} };
    return state.contents[part] = write(part, state.fields, first) ?? first;
  }
  const isByHand = (/** @type {string} */ part) => read(part, content(part), state.fields) === null;
  const saysNothing = (/** @type {string} */ part) => part === 'template' ? Object.keys(properties() ?? { a: 1 }).length === 0
    : !isVisible(state.fields) && !isSilent(state.fields, part) && content(part).body === (write(part, state.fields, empty(part)) ?? empty(part)).body && fieldsOf(part).length > 0;
  /** Of a template; null if it is no object. */
  const properties = () => {
    try {
      const value = JSON.parse(content('template').body);
      return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
    } catch {
      return null;
    }
  };
  /** The payloads follow the form. */
  const follow = () => {
    for (const part of new Set([...parts(), ...Object.keys(state.contents)])) {
      state.contents[part] = write(part, state.fields, content(part)) ?? content(part);
    }
  };

  /**
   * @param {string} part
   * @param {string | null} [tags] in place of the audience
   * @returns {import('../copyas.js').Send}
   */
  const sendOf = (part, tags = whom.expression()) => ({
    hub, format: formatOf(part), ...timed(content(part), state.fields.ttl, due() ? Date.parse(due()) : state.pressed || Date.now()),
    tags, handle: whom.handle() || undefined, at: due() || undefined,
  });

  // --- Parts of the page -----------------------------------------------------------------------

  const fields = messageForm(state.fields, () => { follow(); changed(); });
  const propertyFields = propertyForm((name, value) => {
    const values = properties() ?? {};
    if (value === '') delete values[name]; else values[name] = value;
    state.contents.template = { ...content('template'), body: JSON.stringify(values, null, 2) };
    propertyFields.clear();
    changed();
  });
  const chips = el('div', { class: 'pick' });
  const lacks = el('p', { class: 'hint' });
  const chipFault = el('p', { class: 'hint bad-text', id: 'compose-platforms' });
  const chipBox = el('fieldset', { class: 'stack', 'aria-describedby': chipFault.id }, el('legend', { class: 'label' }, t('compose.platforms')), chips, lacks, chipFault);
  const written = editor({
    changed: (given) => {
      state.contents[tab] = given;
      const told = read(tab, given, state.fields);
      if (told) {
        Object.assign(state.fields, told);
        fields.show();
        follow();
        // The text stays as it is being written.
        state.contents[tab] = given;
      }
      changed();
    },
  });
  const tabs = el('div', { class: 'tabs', role: 'tablist', 'aria-label': t('payload.format') });
  const byHand = el('div');
  const panel = el('div', { class: 'stack', role: 'tabpanel', id: 'compose-payload' }, byHand, written.node);
  const advanced = fold(t('compose.advanced'), el('span', { class: 'hint' }, t('compose.advancedHint')), tabs, panel);
  // A payload that the form cannot tell is nowhere else to be seen.
  advanced.open = Object.keys(state.contents).some((part) => read(part, state.contents[part], state.fields) === null);
  const whom = audience({ hub, signal, whom: state.whom, changed: () => { aside.forget(); changed(); }, counted: () => { countIn(); refresh(); } });
  const aside = previewAside({
    signal, mayTry: maySend, isEmpty: () => parts().every(saysNothing), shown: () => state.isTemplate ? [] : chosen(),
    payload: (platform) => content(platform).body,
    send: (platform) => {
      const part = state.isTemplate ? 'template' : platform;
      const reach = whom.known();
      return !part || whom.expression() === '' && !whom.handle() || !reach && !whom.handle() || whom.handle() && state.isTemplate
        || check(formatOf(part), content(part).body, content(part).headers).faults.length ? null : sendOf(part);
    },
    found: (reply) => {
      // Who may not list credentials hears of a missing one here.
      const before = lacking.size;
      for (const { code, platform } of reply.problems) if (code === 'no-credential') lacking.add(platform);
      if (lacking.size > before) return refresh();
      if (!state.isTemplate) return;
      uses = reply.properties ?? {};
      total = reply.devices;
      showProperties();
    },
  });
  const draftNote = el('span', { class: 'draft', hidden: true }, symbol('tick'), t('compose.kept'));
  const draftButton = button('', () => chooseDraft(page), { class: 'quiet' });
  const results = el('div', { class: 'stack', 'aria-live': 'polite' });
  const sum = el('div', { class: 'sum' });
  const go = button('', () => send(), { class: 'main' });
  const test = button(t('compose.test'), () => testOn(mine(hub)));
  const dry = button(t('send.dryRun'), dryRun);
  const when = button('', () => schedule());
  const explained = el('p', { class: 'hint' });

  // --- Keeping up ------------------------------------------------------------------------------

  function countIn() {
    const known = whom.known();
    if (!known) return;
    natives = new Map(reached(known.counts, false).rows);
    if (state.isTemplate) total = reached(known.counts, true).total;
  }
  const showProperties = () => propertyFields.show(properties() ?? {}, uses, total);

  function drawChips() {
    const handle = whom.handle();
    const on = chosen();
    fill(chips, offered().map((platform) => {
      const isLacking = lacking.has(platform);
      const isDone = Object.hasOwn(state.done, platform);
      const box = el('input', { type: 'checkbox', checked: on.includes(platform), disabled: isDone || isLacking && !on.includes(platform) });
      box.addEventListener('change', () => {
        const others = chosen().filter((one) => one !== platform);
        // A handle belongs to one platform.
        state.picked = !box.checked ? others : handle ? [platform] : [...others, platform];
        chipFault.textContent = '';
        follow();
        changed();
        [...chips.querySelectorAll('input')].find((one) => one.name === platform)?.focus();
      });
      box.name = platform;
      return el('label', { title: platformName(platform) }, box, el('span', { class: 'one' }, symbol('tick', 'tick-mark'), platformWord(platform), ' ',
        el('span', { class: 'amount' }, isDone ? t('compose.done') : isLacking ? t('compose.noCredential') : handle || !whom.known() && !(whom.isCounting() && natives.size) ? '' : number(natives.get(platform) ?? 0))));
    }));
    const affected = [...lacking].filter((platform) => natives.get(platform));
    fill(lacks, affected.length > 0 && t('compose.lacks', { n: affected.reduce((sum, platform) => sum + (natives.get(platform) ?? 0), 0), platforms: affected.map(platformWord).join(', ') }),
      affected.length > 0 && api.role(hub) === 'manager' && [' ', link(page.to('credentials'), t('overview.addCredential'))]);
  }

  function drawAdvanced() {
    const now = parts();
    if (!now.includes(tab)) tab = now[0] ?? '';
    tabs.hidden = now.length < 2;
    const shownTabs = now.map((part) => {
      const one = el('button', {
        type: 'button', role: 'tab', id: `tab-${part}`, 'aria-selected': String(part === tab), 'aria-controls': panel.id, tabindex: part === tab ? 0 : -1,
        on: {
          click: () => { tab = part; drawAdvanced(); },
          keydown: (/** @type {KeyboardEvent} */ event) => {
            const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
            if (!step) return;
            event.preventDefault();
            tab = now[(now.indexOf(tab) + step + now.length) % now.length];
            drawAdvanced();
            document.getElementById(`tab-${tab}`)?.focus();
          },
        },
      }, part === 'template' ? t('payload.template') : platformWord(part));
      return one;
    });
    if (!tabs.contains(document.activeElement) || tabs.childElementCount !== shownTabs.length) fill(tabs, shownTabs);
    else [...tabs.children].forEach((node, index) => node.replaceWith(shownTabs[index]));
    panel.setAttribute('aria-labelledby', tab && now.length > 1 ? `tab-${tab}` : '');
    if (now.length < 2) panel.removeAttribute('aria-labelledby');
    panel.hidden = !tab;
    if (!tab) return;
    written.show(formatOf(tab), content(tab));
    const hasForm = fieldsOf(tab).length > 0;
    const isOwn = hasForm && isByHand(tab);
    fill(byHand, isOwn && notice('note', el('p', null, t('compose.byHand', { platform: tab === 'template' ? t('payload.template') : platformWord(tab) })),
      el('div', { class: 'buttons' }, button(t('compose.useForm'), () => {
        delete state.contents[tab];
        changed();
        written.focus();
      }, { class: 'small-button' }))));
  }

  function drawReach() {
    const known = whom.known();
    const found = known && reached(known.counts, state.isTemplate, state.isTemplate ? undefined : openParts());
    const other = known && reached(known.counts, !state.isTemplate).total;
    if (!found) {
      whom.show(whom.isCounting() && el('div', { class: 'reach' }, el('p', { class: 'hint' }, t('compose.counting'))));
    } else {
      whom.show(reachView(found, known.isAbout, found.total === 0 && Boolean(other) && el('p', { class: 'hint' },
        t(state.isTemplate ? 'compose.nativeInstead' : 'compose.templateInstead', { n: other ?? 0 }), ' ',
        button(t(state.isTemplate ? 'compose.byPlatform' : 'compose.byTemplate'), () => switchForm(!state.isTemplate), { class: 'small-button' }))));
    }
    return found ? { ...found, isAbout: known.isAbout } : null;
  }

  /** Draws what may have changed. */
  function refresh() {
    chipBox.hidden = state.isTemplate;
    propertyFields.node.hidden = !state.isTemplate;
    fields.offer(parts());
    if (state.isTemplate) showProperties(); else drawChips();
    drawAdvanced();
    const found = drawReach();
    const handle = whom.handle();
    const n = handle ? 1 : found?.total ?? 0;
    const isKnown = Boolean(handle || found);
    const time = due() ? shortTime(due()) : '';
    go.textContent = time ? t('compose.goAt', { time }) : isKnown ? t(found?.isAbout ? 'compose.goAbout' : 'compose.go', { n }) : t('compose.goPlain');
    // Nobody yet, for a time to come, may be somebody then.
    go.disabled = !maySend || whom.isCounting() || isKnown && n === 0 && !due();
    for (const one of [test, dry, when]) one.disabled = !maySend;
    when.textContent = state.at ? t('compose.reschedule') : t('compose.schedule');
    when.hidden = Boolean(handle);
    const expression = whom.expression();
    fill(sum, el('p', { class: 'strong' }, !isKnown ? '' : state.isTemplate ? t('compose.sumTemplate', { n, when: time || t('compose.now') })
      : t('compose.sum', { n, count: number(openParts().length), when: time || t('compose.now') })),
    el('p', { class: 'hint' }, handle ? data(handle) : expression === null ? t('compose.to.everyone') : data(expression)));
    aside.refresh();
  }
  let isKept = true;
  function keep() {
    // Who has signed out wants nothing kept.
    if (isKept || !api.who()) return;
    isKept = true;
    const { whom: { handle, ...audience }, ...rest } = state;
    // Without the handle that it went to, it must not go to another device.
    const whomKept = handle ? { ...audience, device: '' } : audience;
    const hasRoom = keepDraft(hub, id, { ...rest, whom: whomKept });
    if (signal.aborted) return;
    draftNote.hidden = !hasRoom;
    if (hasRoom) page.keep({ draft: id, tags: null, to: null, format: null, body: null, when: null, handle: null });
    countDrafts();
  }
  const keepSoon = calmly(keep, 500);
  signal.addEventListener('abort', keep);
  api.events.addEventListener('expired', keep, { signal });
  const countDrafts = () => {
    const n = drafts(hub).length;
    draftButton.hidden = n === 0;
    draftButton.textContent = t('compose.drafts', { n });
  };
  /** Somebody has written something. */
  function changed() {
    refresh();
    isKept = false;
    keepSoon();
  }

  /** @param {boolean} isTemplate */
  function switchForm(isTemplate) {
    if (isTemplate === state.isTemplate) return;
    const { fields: { title, text } } = state;
    const values = properties() ?? {};
    state.isTemplate = isTemplate;
    // Title and text go along, into what is still empty.
    if (isTemplate) {
      const next = { ...values, ...title && !values.title && { title }, ...text && !values.message && { message: text } };
      state.contents.template = { ...content('template'), body: JSON.stringify(next, null, 2) };
    } else if (!isVisible(state.fields)) {
      Object.assign(state.fields, { title: String(values.title ?? ''), text: String(values.message ?? '') });
      fields.show();
    }
    for (const box of /** @type {NodeListOf<HTMLInputElement>} */ (forms.querySelectorAll('input'))) box.checked = box.value === String(isTemplate);
    uses = {};
    aside.forget();
    follow();
    countIn();
    changed();
  }

  // --- What is done with it --------------------------------------------------------------------

  /** Says what is missing, at its field; true if nothing is. */
  function isReady(asksAudience = true) {
    const now = parts();
    const open = openParts();
    chipFault.textContent = now.length === 0 || whom.handle() && !state.isTemplate && now.length > 1 ? t(now.length ? 'compose.onePlatform' : 'compose.noPlatform') : '';
    if (chipFault.textContent) {
      chips.querySelector('input')?.focus();
      return false;
    }
    if (fields.complain(!state.isTemplate && open.some(saysNothing) ? { title: 'compose.nothing' } : {})) return false;
    if (state.isTemplate && saysNothing('template')) {
      propertyFields.complain(t('compose.nothing'));
      return false;
    }
    const wrong = open.find((part) => check(formatOf(part), content(part).body, content(part).headers).faults.length > 0);
    if (wrong) {
      tab = wrong;
      advanced.open = true;
      drawAdvanced();
      written.focus();
      return false;
    }
    if (asksAudience && whom.handle() && state.isTemplate) return !whom.complain(t('send.needNative'));
    return !asksAudience || !whom.complain();
  }

  async function dryRun() {
    if (!isReady()) return;
    const found = findings(await Promise.all(parts().map((part) => tried(sendOf(part), signal))));
    announce(found.said);
    fill(results, found.node);
    results.scrollIntoView({ block: 'nearest' });
  }

  /** @param {string | null} tags */
  async function testOn(tags) {
    if (!isReady(false)) return;
    if (tags === '') {
      const expression = whom.expression();
      fill(results, notice('note', el('p', null, t('compose.noMine')),
        expression !== '' && !whom.handle() && el('div', { class: 'buttons' }, button(t('compose.testAudience'), () => testOn(expression), { class: 'small-button' }))));
      results.scrollIntoView({ block: 'nearest' });
      return;
    }
    const began = performance.now();
    /** @type {Document[]} */
    const documents = [];
    for (const part of parts()) documents.push(await tested({ ...sendOf(part, tags), handle: undefined, at: undefined }, signal));
    fill(results, report(documents, state.isTemplate, performance.now() - began));
    results.scrollIntoView({ block: 'nearest' });
  }

  /** @param {string} [only] the part to try again */
  async function send(only) {
    if (!isReady()) return;
    if (due() && Date.parse(due()) < Date.now()) throw new api.APIError(400, 'send.past');
    // What may have been accepted is repeated to the second, for as long as the hub knows its key.
    if (state.lost.length === 0 || Date.now() - state.pressed > 20 * 3600_000) state.pressed = Date.now();
    const open = openParts().filter((part) => !only || part === only);
    const sends = open.map((part) => ({ ...sendOf(part), key: `portal-${id}-${part}${state.rounds[part] ? `-${state.rounds[part]}` : ''}` }));
    if (sends.length > 0 && !await isMeant(sends, signal)) return;
    // Kept before the first request: the page may be closed under it.
    state.lost = [...new Set([...state.lost, ...open])];
    isKept = false;
    keep();
    /** @type {[string, api.APIError][]} */
    const refused = [];
    const answered = (/** @type {string} */ part) => { state.lost = state.lost.filter((other) => other !== part); };
    for (const [index, one] of sends.entries()) {
      try {
        state.done[open[index]] = await deliver(one);
        answered(open[index]);
      } catch (error) {
        if (!(error instanceof api.APIError)) throw error;
        if (error.status !== 0) answered(open[index]);
        if (error.status === 422) state.rounds[open[index]] = (state.rounds[open[index]] ?? 0) + 1;
        refused.push([open[index], error.status === 422 ? new api.APIError(422, 'send.keyUsed', error.trackingId)
          : error.status === 0 ? new api.APIError(0, 'send.lost') : error]);
      }
    }
    const done = Object.entries(state.done);
    if (refused.length === 0) {
      isKept = true;
      dropDraft(hub, id);
      announce(t(due() ? 'send.scheduled' : 'send.sent'));
      page.go(done.length === 1 ? page.to('notifications', done[0][1]) : page.to('notifications'));
      return;
    }
    changed();
    if (done.length === 0 && refused.every(([, error]) => error.message === refused[0][1].message)) throw refused[0][1];
    fill(results, done.length > 0 && notice('good', el('p', { class: 'strong' }, t('compose.sentTo')), el('ul', { class: 'said' }, done.map(([part, notification]) =>
      el('li', null, link(page.to('notifications', notification), part === 'template' ? t('payload.template') : platformWord(part)))))),
    refused.map(([part, error]) => el('div', { class: 'stack' }, el('p', { class: 'strong' }, t('compose.refused', { platform: platformWord(part) })), failure(error),
      el('div', { class: 'buttons' }, button(t('compose.tryAgain', { platform: platformWord(part) }), () => send(part))))));
    results.scrollIntoView({ block: 'nearest' });
  }

  async function schedule() {
    const picked = await askTime(state.at);
    if (picked === null) return;
    state.at = picked;
    changed();
  }

  // --- The page --------------------------------------------------------------------------------

  const forms = bare(t('compose.form'), [['false', t('compose.byPlatform')], ['true', t('compose.byTemplate')]], String(state.isTemplate), (value) => switchForm(value === 'true'));
  const composer = form(() => {}, section({ title: t('compose.message'), beside: forms },
    chipBox, fields.first, propertyFields.node, fields.more, advanced), aside.node, section(t('compose.audience'), whom.node));
  composer.className = 'composer';
  composer.setAttribute('aria-label', t('compose.message'));
  // Enter in a field is no send: what it would send stands elsewhere on the page.
  composer.addEventListener('submit', (event) => event.preventDefault());
  page.main.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    (event.shiftKey ? test : go).click();
  });
  test.replaceChildren(el('span', null, t('compose.test')));
  explained.textContent = maySend ? '' : t('compose.viewer');
  explained.hidden = maySend;
  const title = heading(t('compose.title'), draftButton, button(t('send.copyAs'), () => {
    if (isReady()) return showAs(parts().map((part) => sendOf(part)));
  }, { class: 'quiet' }));
  title.firstElementChild?.after(draftNote);
  page.main.append(title, composer, results,
    el('div', { class: 'dock', role: 'group', 'aria-label': t('compose.goPlain') }, maySend ? sum : explained, el('div', { class: 'buttons' }, test, dry, when, go)));
  countDrafts();
  whom.recount();
  refresh();
  if (wantsSchedule && maySend) queueMicrotask(() => void schedule());
  if (api.role(hub) === 'manager') {
    credentialsOf(hub, signal).then((credentials) => {
      const known = new Set(credentials.map((one) => one.platform));
      lacking = new Set(all.filter((platform) => !known.has(platform)));
      refresh();
    }, () => {});
  }
}

/**
 * The platform that such handles are of.
 * @param {string} handle
 */
const platformOfHandle = (handle) => /notify\.windows\.com/.test(handle) ? 'wns' : /^\s*[{h]/.test(handle) && /https?:/.test(handle) ? 'browser'
  : /^[\da-f]{64,}$/i.test(handle) ? 'apns' : 'fcmv1';

/** @param {Date} date for a field of a local time */
const local = (date) => new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

/**
 * @param {string} at
 * @returns {Promise<string | null>} ISO 8601, '' for now; null: as it was
 */
function askTime(at) {
  return dialog(t('compose.scheduleTitle'), (close) => {
    const box = input({ type: 'datetime-local', step: 60, value: local(at ? new Date(at) : new Date(Date.now() + 3_600_000)) });
    const morning = (/** @type {number} */ days) => {
      const date = new Date();
      date.setDate(date.getDate() + days);
      date.setHours(9, 0, 0, 0);
      return date;
    };
    /** @type {[string, Date][]} */
    const picks = [[t('compose.inAnHour'), new Date(Date.now() + 3_600_000)], [t('compose.tomorrow'), morning(1)], [t('compose.monday'), morning((8 - new Date().getDay()) % 7 || 7)]];
    return [form(() => {
      const time = new Date(box.value);
      if (Number.isNaN(time.getTime())) throw new api.APIError(400, 'send.needTime');
      if (time.getTime() < Date.now()) throw new api.APIError(400, 'send.past');
      close(time.toISOString().replace(/\.\d+Z$/, 'Z'));
    },
    el('div', { class: 'chips' }, picks.map(([text, date]) => button(text, () => { box.value = local(date); }, { class: 'small-button' }))),
    field(t('send.time'), box, t('send.timeHint', { zone: Intl.DateTimeFormat().resolvedOptions().timeZone })),
    el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), at && button(t('compose.sendNow'), () => close('')), submitButton(t('compose.scheduleIt'))))];
  });
}

/** @param {import('../app.js').Page} page */
async function chooseDraft(page) {
  const picked = await dialog(t('compose.draftsTitle'), (close) => {
    const list = el('ul', { class: 'begun' });
    const draw = () => fill(list, drafts(page.hub).map(({ id, at, state }) => {
      const { title, text } = state.fields ?? {};
      const name = (state.isTemplate ? state.contents?.template?.body.replace(/\s+/g, ' ') : title || text) || t('compose.untitled');
      return el('li', null, el('button', { type: 'button', class: 'quiet', on: { click: () => close(id) } }, data(name.slice(0, 80))),
        el('span', { class: 'end' }, el('span', { class: 'hint' }, ago(at)), button(t('view.delete'), () => {
          dropDraft(page.hub, id);
          draw();
        }, { class: 'small-button' })));
    }));
    draw();
    return [list, el('p', { class: 'hint' }, t('compose.draftsHint')), el('div', { class: 'buttons' },
      button(t('compose.fresh'), () => close('new')), button(t('view.close'), () => close(null)))];
  });
  if (picked !== null) page.go(page.to('compose') + (picked === 'new' ? '' : `?draft=${encodeURIComponent(String(picked))}`));
}
