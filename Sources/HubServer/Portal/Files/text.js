// @ts-check
// Words, numbers and times in the viewer's language and zone. All words are in texts/*.js, one file
// for each language with the same keys (a test compares them). A text is a string
// with {names}, or {one, other} where it counts {n}.

/** @typedef {Record<string, string | Partial<Record<Intl.LDMLPluralRule, string>>>} Texts */

/** Languages by their own names. */
export const languages = { en: 'English', fr: 'Français', zh: '中文' };
/** @typedef {keyof typeof languages} Language */

/** @type {Language} */
let language = 'en';
/** @type {Texts} */
let texts = {};
let plural = new Intl.PluralRules('en');
/** @type {string} the language with its region, for numbers and times */
let locale = 'en';

export const currentLanguage = () => language;

/** Loads the words of the chosen language, else of the first that the browser asks for. */
export async function loadTexts() {
  const chosen = localStorage.getItem('belfry.language');
  const wanted = [...chosen ? [chosen] : [], ...navigator.languages];
  const tag = wanted.find((tag) => tag.slice(0, 2).toLowerCase() in languages) ?? 'en';
  language = /** @type {Language} */ (tag.slice(0, 2).toLowerCase());
  locale = navigator.languages.find((tag) => tag.slice(0, 2) === language) ?? tag;
  texts = (await import(`./texts/${language}.js`)).default;
  plural = new Intl.PluralRules(locale);
  document.documentElement.lang = language === 'zh' ? 'zh-Hans' : language;
}

/** @param {string} chosen */
export function chooseLanguage(chosen) {
  localStorage.setItem('belfry.language', chosen);
}

/**
 * The text of a key; a missing key shows itself, so that it is noticed.
 * @param {string} key
 * @param {Record<string, string | number>} [values] numbers are written as the language does
 * @returns {string}
 */
export function t(key, values = {}) {
  const entry = texts[key] ?? key;
  const form = typeof entry === 'string' ? entry
    : entry[plural.select(Number(values.n ?? 0))] ?? entry.other ?? key;
  return form.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === 'number' ? number(value) : value;
  });
}

/**
 * Whether there is a text for a name, since the server may send unknown ones.
 * @param {string} key
 */
export const has = (key) => key in texts;

/**
 * @param {number} value
 * @param {Intl.NumberFormatOptions} [options]
 */
export const number = (value, options) => new Intl.NumberFormat(locale, options).format(value);

/** @param {number} share 0 to 1 */
export const percent = (share) =>
  number(share, { style: 'percent', maximumFractionDigits: share > 0 && share < 0.1 ? 2 : 1 });

/** @param {number} value in bytes */
export const bytes = (value) => value < 10_000
  ? number(value, { style: 'unit', unit: 'byte', unitDisplay: 'long' })
  : number(value / 1000, { style: 'unit', unit: 'kilobyte', maximumFractionDigits: 1 });

/** @param {string | number | Date} value */
export const time = (value) =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' }).format(new Date(value));

/**
 * Time of day, with the date unless it is today.
 * @param {string | number | Date} value
 */
export function shortTime(value) {
  const date = new Date(value);
  const isToday = date.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(locale, isToday
    ? { timeStyle: 'medium' }
    : { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' }).format(date);
}

/** @param {string} value */
export const day = (value) => new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric' }).format(new Date(value));

/** @param {'long' | 'short'} length e.g. "Monday, 23 November" */
export const today = (length) => new Intl.DateTimeFormat(locale, { weekday: length, month: length, day: 'numeric' }).format(new Date());

/** @param {string} value */
export const hour = (value) => new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' }).format(new Date(value));

/** @param {string | number | Date} value e.g. "3 minutes ago", "in 2 days" */
export function ago(value) {
  const seconds = (new Date(value).getTime() - Date.now()) / 1000;
  const format = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' });
  /** @type {[Intl.RelativeTimeFormatUnit, number][]} */
  const units = [['year', 31_557_600], ['month', 2_629_800], ['day', 86_400], ['hour', 3600], ['minute', 60]];
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return format.format(Math.trunc(seconds / size), unit);
  }
  return format.format(Math.trunc(seconds), 'second');
}

/** @param {number} seconds e.g. "4 hours", "7 days" */
export function span(seconds) {
  const [size, unit] = /** @type {[number, string]} */ (seconds % 86_400 === 0 ? [86_400, 'day'] : seconds % 3600 === 0 ? [3600, 'hour'] : [60, 'minute']);
  return number(Math.round(seconds / size), { style: 'unit', unit, unitDisplay: 'long' });
}

/** @param {number} seconds e.g. "1 min 20 s" */
export function duration(seconds) {
  const unit = (/** @type {number} */ value, /** @type {string} */ unit, digits = 0) =>
    number(value, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: digits });
  if (seconds < 1) return unit(seconds * 1000, 'millisecond');
  if (seconds < 10) return unit(seconds, 'second', 1);
  if (seconds < 60) return unit(seconds, 'second');
  if (seconds < 3600) return `${unit(Math.floor(seconds / 60), 'minute')} ${unit(Math.floor(seconds % 60), 'second')}`;
  return `${unit(Math.floor(seconds / 3600), 'hour')} ${unit(Math.floor(seconds / 60) % 60, 'minute')}`;
}
