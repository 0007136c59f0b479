// @ts-check
// Single keys for what people do most, outside fields only. They can be turned off: with speech input, or a key
// that is held by accident, they do what nobody meant.

import { t } from './text.js';
import { button, checkbox, dialog, el, facts } from './view.js';

const kept = 'belfry.keys';
const isOn = () => localStorage.getItem(kept) !== 'off';
/** For styles, which show keys beside fields. */
const mark = () => { document.documentElement.dataset.keys = isOn() ? 'on' : 'off'; };

/**
 * @param {() => {search: () => unknown, compose: () => unknown} | null} place what can be done where; null outside of a hub
 */
export function listen(place) {
  mark();
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.repeat || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || !isOn()) return;
    if (event.target instanceof Element && event.target.closest('input, textarea, select, dialog, [contenteditable]')) return;
    if (document.querySelector('dialog[open]')) return;
    const act = event.key === '?' ? showKeys : { '/': place()?.search, c: place()?.compose }[event.key];
    if (!act) return;
    event.preventDefault();
    void act();
  });
}

/** The list of keys, with the switch. */
export function showKeys() {
  const mod = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl';
  /** @returns {[import('./view.js').Child[], string]} */
  const row = (/** @type {string[]} */ keys, /** @type {string} */ text) => [keys.map((key) => [el('kbd', null, key), ' ']).flat(), text];
  return dialog(t('keys.title'), (close) => [el('div', { class: 'stack' },
    facts([row(['/'], t('keys.search')), row(['c'], t('keys.compose')), row(['?'], t('keys.list')),
      row([mod, 'Enter'], t('keys.send')), row([mod, 'Shift', 'Enter'], t('keys.test')), row(['Esc'], t('keys.close'))], 'beside keys'),
    checkbox(t('keys.single'), isOn(), (checked) => {
      if (checked) localStorage.removeItem(kept); else localStorage.setItem(kept, 'off');
      mark();
    }), el('p', { class: 'hint' }, t('keys.hint'))),
  el('div', { class: 'buttons' }, button(t('view.close'), () => close(null)))]);
}
