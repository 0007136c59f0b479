// @ts-check
// XML that a page has as text, as a tree: Trusted Types leave a page no parser for its own text.

/**
 * @typedef {{name: string, attributes: Map<string, string>, children: (Mark | string)[]}} Mark an element;
 *   a string among its children is text, a comment or CDATA as it was written
 * @typedef {{before: string, root: Mark, after: string}} Markup with what stands around the root
 */

const token = /<\?[^]*?\?>|<!--[^]*?-->|<!\[CDATA\[[^]*?\]\]>|<(\/?)([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>/g;

/**
 * @param {string} text
 * @returns {Markup | null} null unless it is well-formed
 */
export function parse(text) {
  /** @type {Mark[]} */
  const open = [];
  /** @type {Mark | null} */
  let root = null;
  let [before, after, end] = ['', '', 0];
  /** @param {string} raw */
  const keep = (raw) => {
    const inside = open.at(-1);
    if (inside) { if (raw) inside.children.push(raw); } else if (root) after += raw;
    else before += raw;
  };
  for (const match of text.matchAll(token)) {
    const between = text.slice(end, match.index);
    if (!isText(between) || (open.length === 0 && between.trim())) return null;
    keep(between);
    end = (match.index ?? 0) + match[0].length;
    const [whole, closes, name, attributes, isEmpty] = match;
    if (name === undefined) {
      if (open.length === 0 && whole.startsWith('<![')) return null;
      keep(whole);
    } else if (closes) {
      if (attributes || isEmpty || open.pop()?.name !== name) return null;
    } else {
      if (open.length === 0 && root) return null;
      /** @type {Mark} */
      const mark = { name, attributes: new Map(), children: [] };
      for (const [, key, double, single] of attributes.matchAll(/([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)) {
        const value = double ?? single;
        if (mark.attributes.has(key) || !isText(value)) return null;
        mark.attributes.set(key, plain(value));
      }
      open.at(-1)?.children.push(mark);
      root ??= mark;
      if (!isEmpty) open.push(mark);
    }
  }
  const rest = text.slice(end);
  return root && open.length === 0 && rest.trim() === '' ? { before, root, after: after + rest } : null;
}

/** @param {string} text */
const isText = (text) => !text.includes('<') && !/&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[\da-f]+);)/i.test(text);

/** @param {string} text with references */
const plain = (text) => text.replace(/&(?:(lt|gt|quot|apos|amp)|#(x?)([\da-f]+));/gi, (_, name, hex, digits) =>
  name ? { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }[/** @type {'lt'} */ (name.toLowerCase())]
    : String.fromCodePoint(Math.min(parseInt(digits, hex ? 16 : 10) || 0xfffd, 0x10ffff)));

/**
 * Text as XML has it, without the characters that it cannot hold.
 * @param {string} text
 */
const escaped = (text) => text
  .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
  .replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

/**
 * Indented, unless an element mixes text with elements.
 * @param {Markup} markup
 */
export const written = ({ before, root, after }) => before + print(root, '') + after;

/**
 * @param {Mark} mark
 * @param {string} indent
 * @returns {string}
 */
function print({ name, attributes, children }, indent) {
  const head = `<${name}${[...attributes].map(([key, value]) =>
    ` ${key}="${escaped(value).replace(/"/g, '&quot;').replace(/\n/g, '&#10;').replace(/\r/g, '&#13;').replace(/\t/g, '&#9;')}"`).join('')}`;
  const isMixed = children.some((child) => typeof child === 'string' && child.trim() && !child.startsWith('<!--'));
  const all = isMixed ? children : children.filter((child) => typeof child !== 'string' || child.trim());
  if (all.length === 0) return `${head}/>`;
  const inner = all.map((child) => typeof child === 'string' ? child : print(child, indent + '  '));
  return isMixed ? `${head}>${inner.join('')}</${name}>`
    : `${head}>${inner.map((text) => `\n${indent}  ${text}`).join('')}\n${indent}</${name}>`;
}

/**
 * The text in an element, without what other elements in it say.
 * @param {Mark | undefined} mark
 */
export const textIn = (mark) => (mark?.children ?? []).map((child) => typeof child !== 'string' || child.startsWith('<!--') ? ''
  : child.startsWith('<![CDATA[') ? child.slice(9, -3) : plain(child)).join('');

/**
 * @param {Mark} mark
 * @param {string} text
 */
export const setText = (mark, text) => { mark.children = text === '' ? [] : [escaped(text)]; };

/**
 * The children of this name.
 * @param {Mark | undefined} mark
 * @param {string} name
 */
export const marks = (mark, name) => /** @type {Mark[]} */ (
  (mark?.children ?? []).filter((child) => typeof child !== 'string' && child.name === name));

/**
 * All elements of a tree, in the order of their beginnings.
 * @param {Mark} mark
 * @returns {Mark[]}
 */
export const every = (mark) => [mark, ...mark.children.flatMap((child) => typeof child === 'string' ? [] : every(child))];

/**
 * The first child of this name, made if there is none.
 * @param {Mark} mark
 * @param {string} name
 */
export function ensured(mark, name) {
  const [found] = marks(mark, name);
  if (found) return found;
  /** @type {Mark} */
  const made = { name, attributes: new Map(), children: [] };
  mark.children.push(made);
  return made;
}
