// @ts-check
// Access policies as a hub's description has them, and the connection strings made of them.

import { member, textOf } from './xml.js';

/** @typedef {{name: string, rights: string[], created: string, modified: string, primary: string, secondary: string, node: Element}} Policy
 *   Without keys unless an operator has just confirmed their identity */

/**
 * @param {Element} description
 * @returns {Policy[]}
 */
export function policiesOf(description) {
  return [...member(description, 'AuthorizationRules')?.children ?? []].map((node) => {
    const text = (/** @type {string} */ name) => textOf(node, name);
    return {
      name: text('KeyName'), created: text('CreatedTime'), modified: text('ModifiedTime'),
      primary: text('PrimaryKey'), secondary: text('SecondaryKey'), node,
      rights: [...member(node, 'Rights')?.children ?? []].map((right) => right.textContent ?? ''),
    };
  });
}

/**
 * A connection string for clients.
 * @param {string} name
 * @param {string} key
 */
export function connectionString(name, key) {
  // As the command line prints it: sb:// means https, or http for this machine's own names with a port.
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname);
  const scheme = location.protocol === 'https:' || isLocal ? 'sb' : 'http';
  return `Endpoint=${scheme}://${location.host}/;SharedAccessKeyName=${name};SharedAccessKey=${key}`;
}
