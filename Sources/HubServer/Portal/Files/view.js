// @ts-check
// The building blocks of every page. Everything shown goes through `el` as text or attribute: nothing
// here parses HTML, so names, tags and payloads may contain anything.
//
// A page is a module in pages/ with `export async function show(page)` (see app.js). It puts its
// elements into `page.main`, beginning with `heading(…)`:
//
//   const { list } = api;
//   page.main.append(heading(t('devices.title'), button(t('devices.add'), add)));
//   page.main.append(pagedList({
//     caption: t('devices.title'), empty: t('devices.none'), signal: page.signal,
//     load: (from) => list(at(page.hub, 'installations'), 'installations', {}, from, page.signal),
//     columns: [{ head: t('devices.id'), cell: (item) => link(page.to('devices', item.id), item.id) }],
//   }));
//
// app.js shows errors that a page throws; `attempt` shows those of a button.

import { APIError } from './api.js';
import { ago, has, number, t, time } from './text.js';

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {{on?: Record<string, (event: any) => void>, [name: string]: any}} Attributes
 */

// Set as properties, since their attribute is only the initial value.
const properties = new Set(['value', 'checked', 'disabled', 'selected', 'indeterminate', 'open', 'readOnly']);

/**
 * An element. Attributes that are null or false are left out; true sets an empty one.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(name, attributes, ...children) {
  const node = document.createElement(name);
  dress(node, attributes);
  node.append(...nodes(children));
  return node;
}

/**
 * An element of SVG.
 * @param {string} name
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 */
export function svg(name, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  dress(node, attributes);
  node.append(...nodes(children));
  return node;
}

/**
 * Parts of a whole, as a bar.
 * @param {[string, number][]} parts the class and the percentage of each
 */
export function ratio(parts) {
  let from = 0;
  return svg('svg', { class: 'ratio', 'aria-hidden': 'true' }, parts.map(([name, share]) => {
    const x = from;
    from += share;
    return svg('rect', { class: name, x: `${x}%`, width: `${share}%`, height: '100%' });
  }));
}

/**
 * @param {Element} node
 * @param {Attributes | null | undefined} attributes
 */
function dress(node, attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    } else if (properties.has(name)) {
      Reflect.set(node, name, value);
    } else if (name === 'href' && !isHarmless(String(value))) {
      continue;
    } else {
      node.setAttribute(name, value === true ? '' : String(value));
    }
  }
}

/**
 * Whether an address leads to a page, not to a script.
 * @param {string} address
 */
function isHarmless(address) {
  try {
    return ['http:', 'https:', 'blob:'].includes(new URL(address, location.href).protocol);
  } catch {
    return false;
  }
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  return children.flat().flatMap((child) =>
    child === null || child === undefined || child === false ? []
      : [typeof child === 'number' ? number(child) : child]);
}

/**
 * Replaces all children of a node.
 * @param {Element} node
 * @param {...(Child | Child[])} children
 */
export const fill = (node, ...children) => node.replaceChildren(...nodes(children));

let lastID = 0;
/** An id that no other element has. */
export const freshID = () => `n${++lastID}`;

// --- Small things ----------------------------------------------------------------------------

/**
 * The page's heading with its actions; of one thing with its drawing, and a line below its name.
 * @param {string | {emblem: Element, title: Child | Child[], lede?: Child | Child[]}} title
 * @param {...(Child | Child[])} actions
 */
export function heading(title, ...actions) {
  const parts = typeof title === 'string' ? null : title;
  const name = el('h1', { tabindex: -1 }, typeof title === 'string' ? title : title.title);
  return el('div', { class: 'heading' }, parts
    ? el('div', { class: 'titled' }, parts.emblem, el('div', null, name, parts.lede && el('p', { class: 'lede' }, parts.lede))) : name,
  el('div', { class: 'actions' }, ...actions));
}

/**
 * A part of a page.
 * @param {string | {title: Child | Child[], beside?: Child, as?: 'section' | 'aside'}} title `beside`: at the end of its line
 * @param {...(Child | Child[])} children
 */
export function section(title, ...children) {
  const { title: name, beside, as } = typeof title === 'string' ? { title, beside: null, as: undefined } : title;
  const id = freshID();
  const head = el('h2', { id }, name);
  return el(as ?? 'section', { class: 'card', 'aria-labelledby': id }, beside ? el('div', { class: 'head-row' }, head, beside) : head, ...children);
}

/**
 * @param {string} href
 * @param {...(Child | Child[])} children
 */
export const link = (href, ...children) => el('a', { href }, ...children);

/**
 * A button. While its action runs it accepts no second press; a refusal is shown beside it.
 * @param {string} label
 * @param {(event: MouseEvent) => unknown} act
 * @param {Attributes} [attributes]
 */
export function button(label, act, attributes) {
  const node = el('button', { type: 'button', ...attributes }, label);
  node.addEventListener('click', (event) => attempt(node, () => act(event)));
  return node;
}

/**
 * Text of a person or a device, with its direction isolated from the surrounding words.
 * @param {string | null | undefined} text
 */
export const data = (text) => el('bdi', { class: 'data' }, text ?? '');

/**
 * Long data in one line; the full text is shown on hover.
 * @param {string | null | undefined} text
 * @param {number} [most] characters shown
 */
export function short(text, most = 18) {
  const whole = text ?? '';
  if (whole.length <= most) return el('bdi', { class: 'data' }, whole);
  const ends = Math.floor((most - 1) / 2);
  return el('bdi', { class: 'data', title: whole }, `${whole.slice(0, ends)}…${whole.slice(-ends)}`);
}

/**
 * @param {string} text
 * @param {string} [label]
 */
export const code = (text, label) =>
  el('pre', { class: 'code', tabindex: 0, role: 'group', 'aria-label': label ?? t('view.code') }, el('code', null, text));

/** @param {string[]} tags */
export const chips = (tags) => el('span', { class: 'chips' }, tags.map((tag) => el('bdi', { class: 'chip' }, tag)));

/**
 * A state as a coloured word.
 * @param {string} text
 * @param {'good' | 'bad' | 'note' | 'busy' | 'plain'} kind
 */
export const badge = (text, kind = 'plain') => el('span', { class: `badge ${kind}` }, text);

/**
 * A time relative to now; the full time is shown on hover.
 * @param {string | null | undefined} value
 */
export const moment = (value) => value
  ? el('time', { class: 'ago', datetime: value, title: time(value) }, ago(value)) : el('span', null, '–');

// Relative times are updated as time passes.
setInterval(() => {
  for (const node of document.querySelectorAll('time.ago')) node.textContent = ago(/** @type {HTMLTimeElement} */ (node).dateTime);
}, 20_000);

/**
 * @param {'good' | 'bad' | 'note' | 'plain'} kind
 * @param {...(Child | Child[])} children
 */
export const notice = (kind, ...children) => el('div', { class: `notice ${kind}` }, ...children);

/**
 * The text shown for an empty list.
 * @param {string} title
 * @param {...(Child | Child[])} children
 */
export const nothing = (title, ...children) =>
  el('div', { class: 'nothing' }, el('p', { class: 'strong' }, title), ...children);

/**
 * Names with their values; those without a value are left out.
 * @param {[Child | Child[], Child | Child[]][]} rows
 * @param {'' | 'beside' | 'beside keys' | 'one'} [form] in columns, the value beside its name, or in one column
 */
export const facts = (rows, form = '') => el('dl', { class: `facts ${form}` }, rows
  .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
  .map(([name, value]) => el('div', null, el('dt', null, name), el('dd', null, value))));

/**
 * @param {string | (() => Promise<true | null>)} text or what copies it; null when it did not
 * @param {string} [label]
 * @param {string} [name] for screen readers, where the label alone would not say what is copied
 */
export function copyButton(text, label = t('view.copy'), name) {
  const node = button(label, async () => {
    if (typeof text === 'string') await navigator.clipboard.writeText(text);
    else if (!await text()) return;
    node.textContent = t('view.copied');
    announce(t('view.copied'));
    setTimeout(() => { node.textContent = label; }, 1500);
  }, { class: 'quiet', 'aria-label': name });
  return node;
}

/**
 * Passes a file to the browser to save.
 * @param {string} name
 * @param {string | Blob} content
 * @param {string} type
 */
export function save(name, content, type = 'text/plain') {
  const href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  el('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

// --- Saying things ---------------------------------------------------------------------------

/**
 * Announces a message to screen readers, and shows it for a while.
 * @param {string} text
 */
export function announce(text) {
  const notes = /** @type {HTMLElement} */ (document.getElementById('notes'));
  const note = el('p', { class: 'toast' }, text);
  notes.append(note);
  setTimeout(() => note.remove(), 5000);
}

/**
 * An error message, with what can be done.
 * @param {unknown} error
 * @param {() => void} [again]
 */
export function failure(error, again) {
  const known = error instanceof APIError ? error : null;
  if (!known) console.error(error);
  const status = known?.status ?? -1;
  const advice = { 0: 'lost', 401: 'who', 403: 'right', 404: 'gone', 409: 'state', 412: 'conflict', 413: 'large', 429: 'slow' }[status];
  // Local errors are keys of texts. The hub's own API does not name the hub when it is gone.
  const said = !known ? String(error) : status === 404 && known.message.startsWith('No service is hosted') ? 'hubs.gone' : known.message;
  return el('div', { class: 'notice bad', role: 'alert' },
    el('p', { class: 'strong' }, has(said) ? t(said) : status === 0 ? t('error.lost') : said || (status === 403 ? t('error.rightTitle') : t('error.plain', { status: String(status) }))),
    el('p', null, has(said) ? '' : advice && advice !== 'lost' ? t(`error.${advice}`) : status === 0 ? t('error.lostAdvice') : status >= 500 ? t('error.server') : '',
      known?.retryAfter ? ' ' + t('error.retryAfter', { n: known.retryAfter }) : ''),
    known?.trackingId && el('p', { class: 'small' }, t('error.tracking'), ' ', el('code', null, known.trackingId), ' ', copyButton(known.trackingId)),
    again && el('p', null, button(t('view.again'), again)));
}

/**
 * Performs an action for a button: disables the button meanwhile, and shows a refusal right after the element
 * that holds it (a form's or a dialog's row of buttons).
 * @param {HTMLButtonElement} button
 * @param {() => unknown} act
 */
export async function attempt(button, act) {
  if (button.getAttribute('aria-busy') === 'true') return;
  const place = button.closest('.actions, .buttons') ?? button;
  if (place.nextElementSibling?.classList.contains('trouble')) place.nextElementSibling.remove();
  const result = (() => {
    try { return Promise.resolve(act()); } catch (error) { return Promise.reject(error); }
  })();
  button.setAttribute('aria-busy', 'true');
  try {
    await result;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return;
    place.after(el('div', { class: 'trouble' }, failure(error)));
  } finally {
    button.removeAttribute('aria-busy');
  }
}

// --- Forms -----------------------------------------------------------------------------------

/**
 * A control with its label and, below it, a hint.
 * @template {HTMLElement} C
 * @param {string} label
 * @param {C} control
 * @param {Child} [hint]
 */
export function field(label, control, hint) {
  control.id ||= freshID();
  const hintID = hint ? freshID() : null;
  if (hintID) control.setAttribute('aria-describedby', hintID);
  return el('div', { class: 'field' }, el('label', { for: control.id }, label), control,
    hint && el('div', { class: 'hint', id: hintID }, hint));
}

/**
 * A control with its label, a word at the right of that, a hint, and below a fault that can be set.
 * @template {HTMLElement} C
 * @param {string} label
 * @param {C} control
 * @param {{hint?: Child, class?: string}} [options]
 */
export function labelled(label, control, options = {}) {
  const { hint, class: more = '' } = options;
  control.id ||= freshID();
  const [hintID, faultID] = [freshID(), freshID()];
  const beside = el('span', { class: 'only' });
  const wrong = el('div', { class: 'hint bad-text', id: faultID, hidden: true });
  if (hint) control.setAttribute('aria-describedby', hintID);
  const node = el('div', { class: `field ${more}` }, el('div', { class: 'label-row' }, el('label', { for: control.id }, label), beside), control,
    hint && el('div', { class: 'hint', id: hintID }, hint), wrong);
  /** @param {string} text '' for none */
  const fault = (text) => {
    wrong.textContent = text;
    wrong.hidden = text === '';
    control.setAttribute('aria-invalid', String(text !== ''));
    const described = [hint && hintID, text && faultID].filter(Boolean).join(' ');
    if (described) control.setAttribute('aria-describedby', described);
    else control.removeAttribute('aria-describedby');
  };
  return { node, control, beside, fault };
}

/** @param {Attributes} attributes */
export const input = (attributes) =>
  el('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', ...attributes });

/**
 * @param {[string, string][]} options value and label
 * @param {string} value
 * @param {(value: string) => void} changed
 * @param {Attributes} [attributes]
 */
export function select(options, value, changed, attributes) {
  const node = el('select', attributes, options.map(([value, label]) => el('option', { value }, label)));
  node.value = value;
  node.addEventListener('change', () => changed(node.value));
  return node;
}

/**
 * @param {string} label
 * @param {boolean} checked
 * @param {(checked: boolean) => void} [changed]
 */
export function checkbox(label, checked, changed) {
  const node = el('input', { type: 'checkbox', checked });
  node.addEventListener('change', () => changed?.(node.checked));
  return Object.assign(el('label', { class: 'check' }, node, el('span', null, label)), { input: node });
}

/**
 * A few choices in a row, one of them selected.
 * @param {string} label
 * @param {[string, Child][]} options
 * @param {string} value
 * @param {(value: string) => void} changed
 */
export function choice(label, options, value, changed) {
  const name = freshID();
  return el('fieldset', { class: 'choice' }, el('legend', null, label), el('div', null, options.map(([key, text]) =>
    el('label', null, el('input', {
      type: 'radio', name, value: key, checked: key === value, on: { change: () => changed(key) },
    }), el('span', null, text)))));
}

/**
 * A few choices whose label only screen readers say.
 * @param {Parameters<typeof choice>} given
 */
export const bare = (...given) => Object.assign(choice(...given), { className: 'choice bare' });

/**
 * A form that does not leave the page.
 * @param {(form: HTMLFormElement) => unknown} submit
 * @param {...(Child | Child[])} children
 */
export function form(submit, ...children) {
  const node = el('form', { novalidate: true }, ...children);
  node.addEventListener('submit', (event) => {
    event.preventDefault();
    const by = /** @type {HTMLButtonElement | null} */ (
      event.submitter ?? node.querySelector('button[type=submit]'));
    if (by) attempt(by, () => submit(node));
  });
  // The content is being corrected; the refusal no longer applies.
  node.addEventListener('input', () => node.querySelector('.trouble')?.remove());
  return node;
}

/**
 * @param {string} label
 * @param {Attributes} [attributes]
 */
export const submitButton = (label, attributes) => el('button', { type: 'submit', class: 'main', ...attributes }, label);

/**
 * A place to drop a file on, or to press and choose one.
 * @param {string} label
 * @param {string} hint
 * @param {(file: File) => unknown} take
 */
export function dropZone(label, hint, take) {
  const trouble = el('div', { role: 'status' });
  const begin = (/** @type {File | undefined} */ file) => {
    trouble.replaceChildren();
    if (file) Promise.resolve(file).then(take).catch((error) => {
      if (error?.name !== 'AbortError') trouble.replaceChildren(failure(error));
    });
  };
  const box = el('input', { type: 'file', class: 'unseen' });
  box.addEventListener('change', () => {
    begin(box.files?.[0]);
    box.value = '';
  });
  const zone = el('label', { class: 'drop' }, box, el('span', { class: 'strong' }, label), el('span', { class: 'hint' }, hint));
  zone.addEventListener('dragover', (event) => {
    event.preventDefault();
    zone.classList.add('over');
  });
  zone.addEventListener('dragleave', () => zone.classList.remove('over'));
  zone.addEventListener('drop', (event) => {
    event.preventDefault();
    zone.classList.remove('over');
    begin(event.dataTransfer?.files[0]);
  });
  return el('div', { class: 'stack' }, zone, trouble);
}

// --- Dialogs ---------------------------------------------------------------------------------

/**
 * A dialog; `build` gets the function that closes it with a value. Escape closes it with null.
 * @template T
 * @param {string} title
 * @param {(close: (value: T | null) => void) => Child[]} build
 * @returns {Promise<T | null>}
 */
export function dialog(title, build) {
  return new Promise((resolve) => {
    const id = freshID();
    const node = el('dialog', { 'aria-labelledby': id });
    /** @param {T | null} value */
    const close = (value) => {
      resolve(value);
      node.close();
    };
    node.append(...nodes([el('h2', { id }, title), ...build(close)]));
    node.addEventListener('close', () => {
      resolve(null);
      node.remove();
    });
    document.body.append(node);
    node.showModal();
  });
}

/**
 * Asks before something that cannot be undone, and does it while the dialog is open, so that a
 * refusal is shown in the dialog.
 * @param {{title: string, text: Child, action: string, act: () => unknown, type?: string, typeLabel?: string}} what
 *   `type` is what has to be typed first
 * @returns {Promise<boolean>} whether it was done
 */
export async function confirm({ title, text, action, act, type, typeLabel }) {
  return await dialog(title, (close) => {
    const typed = type === undefined ? null : input({ required: true });
    const go = submitButton(action, { class: 'main danger', disabled: type !== undefined });
    typed?.addEventListener('input', () => { go.disabled = typed.value.trim() !== type; });
    return [form(async () => {
      if (typed && typed.value.trim() !== type) return;
      await act();
      close(true);
    }, el('p', null, text), typed && field(typeLabel ?? t('view.typeName', { name: type ?? '' }), typed),
    el('div', { class: 'buttons' }, button(t('view.cancel'), () => close(null)), go))];
  }) === true;
}

// --- Lists -----------------------------------------------------------------------------------

/**
 * @template T
 * @typedef {{head: string, cell: (item: T) => Child | Child[], class?: string}} Column `class` 'number' stands to the right
 */

/**
 * A table; on a phone's width each row is a card.
 * @template T
 * @param {string} caption read by screen readers
 * @param {Column<T>[]} columns
 * @param {T[]} items
 */
export function table(caption, columns, items) {
  const body = el('tbody');
  /** @param {T[]} more */
  const add = (more) => body.append(...more.map((item) => el('tr', null, columns.map((column) =>
    el('td', { class: column.class, 'data-head': column.head }, el('div', null, column.cell(item)))))));
  add(items);
  const node = el('div', { class: 'table', role: 'group', 'aria-label': caption, tabindex: 0 }, el('table', null,
    el('caption', { class: 'unseen' }, caption),
    el('thead', null, el('tr', null, columns.map((column) => el('th', { scope: 'col', class: column.class }, column.head)))),
    body));
  return Object.assign(node, { add });
}

/**
 * A paged list. A page may be short, or empty, without being the last.
 * @template T
 * @param {{caption: string, columns?: Column<T>[], empty: Child, signal: AbortSignal, view?: (items: T[]) => Element & {add: (more: T[]) => void},
 *   load: (from: string | null) => Promise<{items: T[], next: string | null}>, enough?: number, of?: Promise<{all: number, said: string}>}} what
 *   `enough` is the number of rows fetched before the button for more; `view` is a table unless given; `of` says how
 *   many there are without a search, and stands behind the number of those that are shown
 */
export function pagedList({ caption, columns = [], empty, signal, load, of, enough = 25, view = (items) => table(caption, columns, items) }) {
  const node = el('div', { class: 'paged', 'aria-busy': 'true' }, skeleton());
  /** @type {ReturnType<typeof view> | null} */
  let rows = null;
  let count = 0;
  /** @type {{all: number, said: string} | null} */
  let whole = null;
  let isLast = true;
  const say = () => {
    // Those that nothing reaches any more are listed, and not counted.
    said.textContent = whole && whole.all >= count ? t('list.of', { n: count, all: whole.said }) : count ? t(isLast ? 'view.shown' : 'view.shownSoFar', { n: count }) : '';
  };
  const foot = el('div', { class: 'buttons' });
  const said = el('span', { class: 'hint', role: 'status' });

  /** @param {string | null} from */
  async function more(from) {
    const want = count + enough;
    let next = from;
    do {
      const page = await load(next);
      next = page.next;
      if (page.items.length === 0) continue;
      count += page.items.length;
      if (rows) rows.add(page.items);
      else rows = view(page.items);
    } while (next && count < want && !signal.aborted);
    const shown = rows ?? (next ? el('span') : typeof empty === 'string' ? nothing(empty) : empty);
    isLast = next === null;
    say();
    fill(foot, said, next && button(t('view.more'), () => more(next)));
    if (!node.contains(foot)) fill(node, shown, foot);
    else if (node.firstChild !== shown) node.firstChild?.replaceWith(/** @type {Node} */ (shown));
    node.removeAttribute('aria-busy');
  }

  // Whoever wants no number sees the list all the same.
  of?.then((given) => { whole = given; say(); }, () => {});
  const begin = () => {
    fill(node, skeleton());
    more(null).catch((error) => {
      if (signal.aborted) return;
      fill(node, failure(error, begin));
      node.removeAttribute('aria-busy');
    });
  };
  begin();
  return node;
}

/** The placeholder until the data arrive. */
export const skeleton = (lines = 4) => el('div', { class: 'skeleton', 'aria-hidden': 'true' },
  Array.from({ length: lines }, () => el('span')));

/**
 * Content that loads separately; the rest of the page does not wait for it.
 * @param {AbortSignal} signal
 * @param {() => Promise<Child | Child[]>} load
 */
export function later(signal, load, lines = 3) {
  const node = el('div', { class: 'later' });
  const begin = () => {
    fill(node, skeleton(lines));
    load().then((children) => fill(node, children), (error) => {
      if (!signal.aborted) fill(node, failure(error, begin));
    });
  };
  begin();
  return Object.assign(node, { reload: begin });
}

/**
 * Runs `act` after a pause in typing.
 * @template {any[]} A
 * @param {(...given: A) => void} act
 * @param {number} [ms]
 */
export function calmly(act, ms = 250) {
  /** @type {number | undefined} */
  let timer;
  return (/** @type {A} */ ...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), ms);
  };
}

/**
 * Waits, unless the person leaves.
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export const pause = (ms, signal) => new Promise((resolve, reject) => {
  if (signal.aborted) return reject(signal.reason);
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => {
    clearTimeout(timer);
    reject(signal.reason);
  }, { once: true });
});
