// @ts-check
// A message as a form has it, and as the payload of each platform says it. Both ways: a payload that somebody
// has changed fills the form, and the form writes only what differs, so that members it does not know survive.

import { ensured, marks, parse, setText, textIn, written } from './markup.js';
import { isObject, tidy } from './payloads.js';

/**
 * @typedef {'title' | 'subtitle' | 'text' | 'image' | 'badge' | 'sound' | 'link' | 'button' | 'group' | 'ttl' | 'replaces' | 'urgency' | 'data' | 'silent'} FieldName
 * @typedef {Record<FieldName, string>} Fields `sound`: 'default', 'none' or a file; `ttl`: seconds;
 *   `urgency`: 'quiet', 'normal' or 'urgent'; `data`: of `pack`; `silent`: '1' for data without words
 * @typedef {{body: string, headers: Record<string, string>}} Content
 * @typedef {{value: any, headers: Record<string, string>}} Draft a content while it is changed
 *
 * @typedef {object} Codec of a field on one platform
 * @property {(draft: Draft, form: Fields) => string} get `form` decides where the payload says less than it
 * @property {(draft: Draft, value: string, form: Fields) => void} set '' leaves it out
 * @property {string} [rest] of a sound: the one that is said by leaving it out
 */

/** @type {Fields} */
export const blank = {
  title: '', subtitle: '', text: '', image: '', badge: '', sound: 'default', link: '', button: '', group: '', ttl: '',
  replaces: '', urgency: 'normal', data: '', silent: '',
};

/** @param {any} value */
const said = (value) => typeof value === 'string' || typeof value === 'number' ? String(value) : '';

/**
 * @param {any} value
 * @param {string[]} path
 */
const at = (value, path) => path.reduce((part, name) => isObject(part) && Object.hasOwn(part, name) ? part[name] : undefined, value);

/** The order in which people read them. */
const order = ['aps', 'alert', 'title', 'subtitle', 'body', 'description', 'message', 'image', 'badge', 'sound', 'category', 'thread-id',
  'interruption-level', 'mutable-content', 'notification', 'data', 'android', 'link', 'url', 'actions', 'tag', 'silent'];

/**
 * Sets a member, or removes it with what becomes empty. Throws where the way leads through something else than
 * objects: then the form cannot say it.
 * @param {any} value
 * @param {string[]} path
 * @param {any} given undefined removes
 */
function put(value, [name, ...rest], given) {
  if (!isObject(value)) throw new TypeError('not an object');
  if (rest.length === 0) {
    if (given === undefined) delete value[name]; else value[name] = given;
  } else if (given !== undefined || Object.hasOwn(value, name)) {
    value[name] ??= {};
    put(value[name], rest, given);
    if (given === undefined && Object.keys(value[name]).length === 0) delete value[name];
  }
  const names = Object.keys(value);
  if (names.every((one) => order.includes(one))) {
    for (const one of names.sort((a, b) => order.indexOf(a) - order.indexOf(b))) {
      const part = value[one];
      delete value[one];
      value[one] = part;
    }
  }
}

/**
 * @param {...string} path
 * @returns {Codec}
 */
const member = (...path) => ({
  get: ({ value }) => said(at(value, path)),
  set: ({ value }, text) => put(value, path, text === '' ? undefined : text),
});

/**
 * @param {Record<string, string>} headers
 * @param {string} name
 */
const keyOf = (headers, name) => Object.keys(headers).find((key) => key.toLowerCase() === name.toLowerCase());
/**
 * @param {Draft} draft
 * @param {string} name
 */
const header = ({ headers }, name) => headers[keyOf(headers, name) ?? ''] ?? '';
/**
 * @param {Draft} draft
 * @param {string} name
 * @param {string} text
 */
function setHeader({ headers }, name, text) {
  const key = keyOf(headers, name) ?? name;
  if (text === '') delete headers[key]; else headers[key] = text;
}
/**
 * @param {string} name
 * @returns {Codec}
 */
const headed = (name) => ({ get: (draft) => header(draft, name), set: (draft, text) => setHeader(draft, name, text) });

/** Names of categories are written so; a label that is no letter or digit is the app's first. */
const kebab = (/** @type {string} */ label) =>
  label.toLowerCase().match(/[\p{L}\p{N}]+/gu)?.join('-') ?? (label.trim() && 'open');
/** WNS takes letters and digits, at most 16. */
const wnsTag = (/** @type {string} */ word) => word.replace(/[^A-Za-z0-9]/g, '').slice(0, 16);

// --- Extra data: names and texts for the app -------------------------------------------------

/**
 * As a field has them: the same for the same pairs.
 * @param {[string, string][]} pairs
 */
export const pack = (pairs) => pairs.length === 0 ? '' : JSON.stringify([...pairs].sort(([one], [other]) => one < other ? -1 : one > other ? 1 : 0));

/**
 * @param {string} data of `pack`
 * @returns {[string, string][]}
 */
export const unpack = (data) => data === '' ? [] : JSON.parse(data);

/** Names that a service or a field of the form has for itself. */
const reserved = /^(|aps|link|image|button|from|message_type|__proto__)$|^(google|gcm)\./;

/**
 * The texts among the members there. Anything else is not the form's, and survives.
 * @param {string[]} path
 * @param {string[]} taken by other fields
 * @returns {Codec}
 */
function extra(path, taken) {
  /** @param {Draft} draft */
  const own = ({ value }) => {
    const place = at(value, path);
    return !isObject(place) ? [] : /** @type {[string, string][]} */ (Object.entries(place))
      .filter(([name, text]) => typeof text === 'string' && name !== '__proto__' && !taken.includes(name));
  };
  return {
    get: (draft) => pack(own(draft)),
    set: (draft, data) => {
      const wanted = unpack(data).filter(([name]) => name !== '' && name !== '__proto__' && !taken.includes(name));
      for (const [name] of own(draft)) if (!wanted.some(([one]) => one === name)) put(draft.value, [...path, name], undefined);
      for (const [name, text] of wanted) put(draft.value, [...path, name], text);
    },
  };
}

/** @param {Draft} draft */
const alertIsText = ({ value }) => typeof value.aps?.alert === 'string';

/**
 * apns-expiration is a time, and 0 for one try.
 * @type {Codec}
 */
const expiration = {
  get: (draft, { ttl }) => {
    const text = header(draft, 'apns-expiration');
    if (text === '' || text === '0') return text;
    return ttl && ttl !== '0' ? ttl : String(Math.max(60, Math.round((Number(text) - Date.now() / 1000) / 60) * 60) || 60);
  },
  set: (draft, ttl) => setHeader(draft, 'apns-expiration', ttl === '' || ttl === '0' ? ttl : String(Math.floor(Date.now() / 1000) + Number(ttl))),
};

/** @type {Record<string, string>} */
const priorities = { quiet: '5', urgent: '10' };
/** @param {Draft} draft */
const isBackground = (draft) => header(draft, 'apns-push-type') === 'background';

/** @type {Record<string, Partial<Record<FieldName, Codec>>>} */
const json = {
  apns: {
    title: {
      get: (draft) => alertIsText(draft) ? '' : said(at(draft.value, ['aps', 'alert', 'title'])),
      set: (draft, text) => set(draft, 'title', text),
    },
    subtitle: {
      get: (draft) => alertIsText(draft) ? '' : said(at(draft.value, ['aps', 'alert', 'subtitle'])),
      set: (draft, text) => set(draft, 'subtitle', text),
    },
    text: {
      get: (draft) => alertIsText(draft) ? draft.value.aps.alert : said(at(draft.value, ['aps', 'alert', 'body'])),
      set: (draft, text) => {
        if (alertIsText(draft)) put(draft.value, ['aps', 'alert'], text === '' ? undefined : text);
        else set(draft, 'body', text);
      },
    },
    badge: {
      get: ({ value }) => said(at(value, ['aps', 'badge'])),
      set: ({ value }, text) => put(value, ['aps', 'badge'], /^\d+$/.test(text) ? Number(text) : undefined),
    },
    sound: {
      rest: 'none',
      get: ({ value }) => {
        const sound = at(value, ['aps', 'sound']);
        return said(isObject(sound) ? sound.name : sound) || 'none';
      },
      set: ({ value }, text) => put(value, ['aps', 'sound'], text === 'none' ? undefined : text),
    },
    button: {
      get: ({ value }, { button }) => {
        const category = said(at(value, ['aps', 'category']));
        return category === kebab(button) ? button : category;
      },
      set: ({ value }, text) => put(value, ['aps', 'category'], text === '' ? undefined : kebab(text)),
    },
    group: member('aps', 'thread-id'),
    image: {
      get: ({ value }) => said(at(value, ['image'])),
      set: ({ value }, text) => {
        // Only so the app's extension may fetch it.
        put(value, ['aps', 'mutable-content'], text === '' ? undefined : 1);
        put(value, ['image'], text === '' ? undefined : text);
      },
    },
    link: member('link'),
    ttl: expiration,
    replaces: headed('apns-collapse-id'),
    urgency: {
      get: ({ value }) => ({ passive: 'quiet', 'time-sensitive': 'urgent' }[said(at(value, ['aps', 'interruption-level']))] ?? 'normal'),
      set: (draft, text) => {
        put(draft.value, ['aps', 'interruption-level'], { quiet: 'passive', urgent: 'time-sensitive' }[text]);
        setHeader(draft, 'apns-priority', isBackground(draft) ? '5' : priorities[text] ?? '');
      },
    },
    data: extra([], ['aps', 'link', 'image']),
    // Apple takes what shows nothing only so.
    silent: {
      get: (draft) => at(draft.value, ['aps', 'content-available']) === 1 && isBackground(draft) ? '1' : '',
      set: (draft, text, { urgency }) => {
        put(draft.value, ['aps', 'content-available'], text ? 1 : undefined);
        setHeader(draft, 'apns-push-type', text ? 'background' : '');
        setHeader(draft, 'apns-priority', text ? '5' : priorities[urgency] ?? '');
      },
    },
  },
  fcmv1: {
    title: member('message', 'notification', 'title'),
    text: member('message', 'notification', 'body'),
    image: member('message', 'notification', 'image'),
    link: member('message', 'data', 'link'),
    button: member('message', 'data', 'button'),
    badge: {
      get: ({ value }, { badge }) => said(at(value, ['message', 'android', 'notification', 'notification_count'])) || (badge === '0' ? '0' : ''),
      set: ({ value }, text) => put(value, ['message', 'android', 'notification', 'notification_count'], Number(text) > 0 ? Number(text) : undefined),
    },
    sound: {
      rest: 'none',
      get: ({ value }) => {
        const part = at(value, ['message', 'android', 'notification']);
        return said(part?.sound) || (part?.default_sound === true ? 'default' : 'none');
      },
      set: ({ value }, text) => {
        const path = ['message', 'android', 'notification'];
        put(value, [...path, 'default_sound'], text === 'default' ? true : undefined);
        put(value, [...path, 'sound'], text === 'default' || text === 'none' ? undefined : text);
      },
    },
    ttl: {
      get: ({ value }, { ttl }) => {
        const text = said(at(value, ['message', 'android', 'ttl']));
        return text === '' ? '' : /^(\d+)s$/.exec(text)?.[1] ?? ttl;
      },
      set: ({ value }, text) => put(value, ['message', 'android', 'ttl'], text === '' ? undefined : `${text}s`),
    },
    replaces: {
      get: ({ value }) => said(at(value, ['message', 'android', 'collapse_key'])),
      set: ({ value }, text) => {
        put(value, ['message', 'android', 'collapse_key'], text === '' ? undefined : text);
        put(value, ['message', 'android', 'notification', 'tag'], text === '' ? undefined : text);
      },
    },
    urgency: {
      get: ({ value }) => ({ normal: 'quiet', high: 'urgent' }[said(at(value, ['message', 'android', 'priority'])).toLowerCase()] ?? 'normal'),
      set: ({ value }, text) => put(value, ['message', 'android', 'priority'], { quiet: 'normal', urgent: 'high' }[text]),
    },
    data: extra(['message', 'data'], ['link', 'button']),
  },
  browser: {
    title: member('title'),
    text: member('body'),
    image: member('image'),
    link: member('url'),
    button: {
      get: ({ value }) => said(value.actions?.[0]?.title),
      set: ({ value }, title) => {
        const [first, ...others] = value.actions ?? [];
        const actions = [...title === '' ? [] : [{ action: 'open', ...first, title }], ...others];
        put(value, ['actions'], actions.length ? actions : undefined);
      },
    },
    sound: {
      rest: 'default',
      get: ({ value }, { sound }) => value.silent === true ? 'none' : sound === 'none' ? 'default' : sound,
      set: ({ value }, text) => put(value, ['silent'], text === 'none' ? true : undefined),
    },
    ttl: headed('TTL'),
    replaces: {
      get: (draft) => header(draft, 'Topic'),
      set: (draft, text) => {
        setHeader(draft, 'Topic', text);
        put(draft.value, ['tag'], text === '' ? undefined : text);
      },
    },
    urgency: {
      get: (draft) => ({ 'very-low': 'quiet', low: 'quiet', high: 'urgent' }[header(draft, 'Urgency')] ?? 'normal'),
      set: (draft, text) => setHeader(draft, 'Urgency', { quiet: 'low', urgent: 'high' }[text] ?? ''),
    },
    data: extra(['data'], []),
  },
  adm: { title: member('data', 'title'), text: member('data', 'message'), data: extra(['data'], ['title', 'message']) },
  baidu: { title: member('title'), text: member('description') },
  xiaomi: { title: member('title'), text: member('description') },
  gcm: { title: member('data', 'title'), text: member('data', 'message'), data: extra(['data'], ['title', 'message']) },
  // The properties have fields of their own; these are the headers, for every platform.
  template: {
    ttl: {
      get: headed('TTL').get,
      set: (draft, text, form) => {
        for (const name of ['TTL', 'X-WNS-TTL']) setHeader(draft, name, text);
        expiration.set(draft, text, form);
      },
    },
    replaces: {
      get: (draft) => header(draft, 'apns-collapse-id'),
      set: (draft, text) => {
        for (const name of ['apns-collapse-id', 'Topic']) setHeader(draft, name, text);
        for (const name of ['X-WNS-Tag', 'X-WNS-Group']) setHeader(draft, name, wnsTag(text));
      },
    },
    urgency: {
      get: (draft) => ({ 'very-low': 'quiet', low: 'quiet', high: 'urgent' }[header(draft, 'Urgency')] ?? 'normal'),
      set: (draft, text) => {
        setHeader(draft, 'Urgency', { quiet: 'low', urgent: 'high' }[text] ?? '');
        setHeader(draft, 'apns-priority', priorities[text] ?? '');
        setHeader(draft, 'X-WNS-SuppressPopup', text === 'quiet' ? 'true' : '');
      },
    },
  },
};

/**
 * @param {Draft} draft
 * @param {string} name of a member of the alert, which may be a text so far
 * @param {string} text
 */
function set(draft, name, text) {
  if (alertIsText(draft)) {
    if (text === '') return;
    draft.value.aps.alert = { body: draft.value.aps.alert };
  }
  put(draft.value, ['aps', 'alert', name], text === '' ? undefined : text);
}

// --- Windows: a toast ------------------------------------------------------------------------

/** @param {Draft} draft */
const binding = ({ value }) => marks(marks(value.root, 'visual')[0], 'binding')[0];
/** @param {Draft} draft */
const lines = (draft) => marks(binding(draft), 'text').filter((mark) => !mark.attributes.has('placement'));
/** @param {Draft} draft */
const action = ({ value }) => marks(marks(value.root, 'actions')[0], 'action')[0];
/**
 * @param {number} index
 * @returns {Codec}
 */
const line = (index) => ({
  get: (draft) => textIn(lines(draft)[index]),
  set: (draft, text) => {
    const parent = binding(draft);
    const all = lines(draft);
    // Before an image and the like, behind the last text.
    while (all.length <= index) {
      const made = { name: 'text', attributes: new Map(), children: [] };
      const last = all.at(-1);
      parent.children.splice(last ? parent.children.indexOf(last) + 1 : 0, 0, made);
      all.push(made);
    }
    setText(all[index], text);
    for (const mark of all.reverse()) {
      if (mark.children.length || mark.attributes.size) break;
      parent.children.splice(parent.children.indexOf(mark), 1);
    }
  },
});
/**
 * @param {import('./markup.js').Mark} mark
 * @param {string} name
 * @param {string | undefined} value
 */
function setAttribute(mark, name, value) {
  if (value === undefined) mark.attributes.delete(name); else mark.attributes.set(name, value);
}
/** @param {Draft} draft */
const hero = (draft) => marks(binding(draft), 'image').find((mark) => mark.attributes.get('placement') === 'hero');
const asset = 'ms-appx:///';

/** @type {Partial<Record<FieldName, Codec>>} */
const toast = {
  title: line(0),
  text: line(1),
  image: {
    get: (draft) => hero(draft)?.attributes.get('src') ?? '',
    set: (draft, text) => {
      const parent = binding(draft);
      const found = hero(draft);
      if (text === '') parent.children = parent.children.filter((child) => child !== found);
      else if (found) found.attributes.set('src', text);
      else parent.children.push({ name: 'image', attributes: new Map([['placement', 'hero'], ['src', text]]), children: [] });
    },
  },
  link: {
    get: ({ value }) => value.root.attributes.get('launch') ?? '',
    set: (draft, text) => {
      setAttribute(draft.value.root, 'launch', text || undefined);
      setAttribute(draft.value.root, 'activationType', text ? 'protocol' : undefined);
      const first = action(draft);
      if (first?.attributes.get('activationType') === 'protocol') first.attributes.set('arguments', text);
    },
  },
  button: {
    get: (draft) => action(draft)?.attributes.get('content') ?? '',
    set: (draft, text, { link }) => {
      const { root } = draft.value;
      const actions = ensured(root, 'actions');
      const first = action(draft);
      if (text === '') actions.children = actions.children.filter((child) => child !== first);
      else if (first) first.attributes.set('content', text);
      else {
        actions.children.unshift({
          name: 'action', attributes: new Map([['content', text], ['arguments', link], ['activationType', 'protocol']]), children: [] });
      }
      if (!actions.children.some((child) => typeof child !== 'string')) root.children = root.children.filter((/** @type {any} */ child) => child !== actions);
    },
  },
  sound: {
    rest: 'default',
    get: ({ value }) => {
      const [audio] = marks(value.root, 'audio');
      if (!audio) return 'default';
      const source = audio.attributes.get('src') ?? '';
      if (audio.attributes.get('silent') === 'true') return 'none';
      return source.startsWith(asset) ? source.slice(asset.length) : source || 'default';
    },
    set: ({ value: { root } }, text) => {
      const audio = ensured(root, 'audio');
      setAttribute(audio, 'silent', text === 'none' ? 'true' : undefined);
      setAttribute(audio, 'src', text === 'none' || text === 'default' ? undefined : /^ms-/.test(text) ? text : asset + text);
      if (audio.attributes.size === 0) root.children = root.children.filter((/** @type {any} */ child) => child !== audio);
    },
  },
  ttl: headed('X-WNS-TTL'),
  replaces: {
    get: (draft, { replaces }) => {
      const tag = header(draft, 'X-WNS-Tag');
      return tag === wnsTag(replaces) ? replaces : tag;
    },
    set: (draft, text) => { for (const name of ['X-WNS-Tag', 'X-WNS-Group']) setHeader(draft, name, wnsTag(text)); },
  },
  urgency: {
    get: (draft) => header(draft, 'X-WNS-SuppressPopup') === 'true' ? 'quiet'
      : draft.value.root.attributes.get('scenario') === 'urgent' ? 'urgent' : 'normal',
    set: (draft, text) => {
      setHeader(draft, 'X-WNS-SuppressPopup', text === 'quiet' ? 'true' : '');
      const { root } = draft.value;
      if (text === 'urgent') root.attributes.set('scenario', 'urgent');
      else if (root.attributes.get('scenario') === 'urgent') root.attributes.delete('scenario');
    },
  },
};

// --- Both ways -------------------------------------------------------------------------------

/** @type {Record<string, Partial<Record<FieldName, Codec>>>} by platform, and 'template' */
const codecs = { ...json, wns: toast };

/** The part of a payload that has to be there. */
const frame = /** @type {Record<string, string>} */ ({ apns: 'aps', fcmv1: 'message' });

/**
 * A payload that says nothing yet.
 * @param {string} platform
 * @returns {Content}
 */
export const empty = (platform) => platform === 'wns'
  ? { body: '<toast>\n  <visual>\n    <binding template="ToastGeneric"/>\n  </visual>\n</toast>', headers: { 'X-WNS-Type': 'wns/toast' } }
  : { body: tidy(frame[platform] ? `{"${frame[platform]}":{}}` : '{}'), headers: {} };

/**
 * The fields that a platform can show.
 * @param {string} platform
 */
export const fieldsOf = (platform) => /** @type {FieldName[]} */ (Object.keys(codecs[platform] ?? {}));

/**
 * @param {string} platform
 * @param {Content} content
 * @returns {Draft | null} null if it is not what the form could have begun
 */
function opened(platform, { body, headers }) {
  if (!codecs[platform]) return null;
  if (platform === 'wns') {
    const type = header({ value: null, headers }, 'X-WNS-Type');
    const value = parse(body);
    const draft = { value, headers: { ...headers } };
    return value?.root.name === 'toast' && ['', 'wns/toast'].includes(type) && binding(draft) ? draft : null;
  }
  try {
    const value = JSON.parse(body);
    if (!isObject(value) || (frame[platform] && !isObject(value[frame[platform]]))) return null;
    if (platform === 'browser' && 'actions' in value && !Array.isArray(value.actions)) return null;
    return { value, headers: { ...headers } };
  } catch {
    return null;
  }
}

/**
 * The form as this payload fills it; what the platform cannot say stays.
 * @param {string} platform
 * @param {Content} content
 * @param {Fields} form
 * @returns {Fields | null} null if the form cannot tell it
 */
export function read(platform, content, form) {
  const draft = opened(platform, content);
  if (!draft) return null;
  const found = { ...form };
  for (const [name, codec] of Object.entries(codecs[platform])) found[/** @type {FieldName} */ (name)] = codec.get(draft, form);
  // What makes no sound because it shows nothing says nothing about sounds.
  if (!isVisible(found)) found.sound = form.sound;
  return found;
}

/** @param {Fields} form */
export const isVisible = ({ title, text }) => title !== '' || text !== '';

/**
 * Whether it is for the app alone, which a platform has to be able to send: browsers want something to show.
 * @param {Fields} form
 * @param {string} [platform]
 */
export const isSilent = (form, platform = 'apns') => form.data !== '' && !isVisible(form) && ['apns', 'fcmv1', 'adm', 'gcm'].includes(platform);

/**
 * The payload with what differs in the form.
 * @param {string} platform
 * @param {Fields} form
 * @param {Content} content
 * @returns {Content | null} null if the form cannot write it
 */
export function write(platform, form, content) {
  const draft = opened(platform, content);
  if (!draft) return null;
  // What shows nothing makes no sound, unless somebody wrote it so.
  const wasVisible = [codecs[platform].title, codecs[platform].text].some((codec) => codec && codec.get(draft, form) !== '');
  let isChanged = false;
  try {
    for (const [key, codec] of Object.entries(codecs[platform])) {
      const name = /** @type {FieldName} */ (key);
      const before = codec.get(draft, form);
      const wanted = name !== 'sound' || isVisible(form) ? form[name] : wasVisible ? codec.rest ?? '' : before;
      if (before === wanted) continue;
      codec.set(draft, wanted, form);
      isChanged = true;
    }
  } catch {
    return null;
  }
  if (!isChanged) return content;
  if (frame[platform]) draft.value[frame[platform]] ??= {};
  return { body: platform === 'wns' ? written(draft.value) : JSON.stringify(draft.value, null, 2), headers: draft.headers };
}

/**
 * For a send at this time: apns-expiration is a time.
 * @param {Content} content
 * @param {string} ttl
 * @param {number} time in ms
 */
export function timed({ body, headers }, ttl, time) {
  const key = keyOf(headers, 'apns-expiration');
  return key === undefined || !Number(headers[key]) || !Number(ttl) ? { body, headers }
    : { body, headers: { ...headers, [key]: String(Math.floor(time / 1000) + Number(ttl)) } };
}

// --- What a form may say ---------------------------------------------------------------------

/**
 * @param {string} text
 * @returns {URL | null} null if it is no address with a scheme
 */
export function urlOf(text) {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/**
 * Whether a phone could load it: https, nobody's password, and a host that is open to the internet.
 * @param {string} text
 */
function isOpenImage(text) {
  const url = urlOf(text);
  if (!url) return false;
  const { protocol, username, password, hostname } = url;
  if (protocol !== 'https:' || username || password) return false;
  if (hostname.startsWith('[')) return !/^\[(::|f[cd]|fe[89ab]|64:ff9b:|ff)/.test(hostname);
  const parts = /^(\d+)\.(\d+)\.\d+\.\d+$/.exec(hostname);
  if (!parts) return hostname.replace(/\.$/, '').includes('.') && !/\.(local|localhost|internal|lan|home|corp|intranet)\.?$/.test(hostname);
  const [first, second] = [Number(parts[1]), Number(parts[2])];
  return !([0, 10, 127].includes(first) || first >= 224 || (first === 100 && second >= 64 && second < 128)
    || (first === 169 && second === 254) || (first === 172 && second >= 16 && second < 32) || (first === 192 && second === 168)
    || (first === 198 && (second === 18 || second === 19)));
}

/**
 * What is wrong in the form, as keys of texts.
 * @param {Fields} form
 * @returns {Partial<Record<FieldName, string>>}
 */
export function faults({ link, image, badge, replaces, data }) {
  const names = unpack(data).map(([name]) => name);
  return {
    ...names.some((name) => reserved.test(name)) || new Set(names).size < names.length ? { data: 'compose.badData' } : {},
    ...link && !(urlOf(link) && !/^(data|blob|about|vbscript|java(script)?):/i.test(link)) && { link: 'compose.badLink' },
    ...image && !isOpenImage(image) && { image: 'compose.badImage' },
    ...badge && !/^\d{1,9}$/.test(badge) && { badge: 'compose.badBadge' },
    ...replaces && !/^[\w-]{1,32}$/.test(replaces) && { replaces: 'compose.badReplaces' },
  };
}
