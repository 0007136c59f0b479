// @ts-check
// The XML of the API: descriptions, each in an Atom entry (docs/protocol/rest.md, sections 3 and 8). It is
// read by XMLHttpRequest (see api.js) and written here.

export const connect = 'http://schemas.microsoft.com/netservices/2010/10/servicebus/connect';
export const atom = 'http://www.w3.org/2005/Atom';

/**
 * The member of a description.
 * @param {Element | null | undefined} node
 * @param {string} name without its prefix
 */
export const member = (node, name) => [...node?.children ?? []].find((child) => child.localName === name) ?? null;

/**
 * The text of a member; '' if there is none.
 * @param {Element | null | undefined} node
 * @param {string} name
 */
export const textOf = (node, name) => member(node, name)?.textContent ?? '';

/**
 * An Atom entry around an empty description.
 * @param {string} name of the description
 */
export function entryOf(name) {
  const entry = document.implementation.createDocument(atom, 'entry', null);
  const content = entry.createElementNS(atom, 'content');
  content.setAttribute('type', 'application/xml');
  const description = entry.createElementNS(connect, name);
  content.append(description);
  entry.documentElement.append(content);
  return { description, text: () => new XMLSerializer().serializeToString(entry) };
}

/**
 * A member for a description of this document.
 * @param {Element} description
 * @param {string} name
 * @param {string} text
 */
export const made = (description, name, text) =>
  Object.assign(description.ownerDocument.createElementNS(connect, name), { textContent: text });
