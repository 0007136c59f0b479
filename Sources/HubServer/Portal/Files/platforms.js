// @ts-check
// The sheet of platforms: what sets them apart. The server makes it from
// Sources/NotificationHubs/Platforms, so that nothing here repeats it.

import { has, t } from './text.js';

/**
 * @typedef {{name: string, body: string, headers?: Record<string, string>}} Sample `name` is a key of texts
 *
 * @typedef {object} Part of a credential
 * @property {string} name the property's (docs/protocol/rest.md, section 8.1)
 * @property {boolean} [isOptional]
 * @property {'text' | 'secret' | 'lines' | 'endpoint' | 'file'} kind
 * @property {string} [example]
 *
 * @typedef {{key: string, parts: Part[]}} Form a way to authenticate; `key` names it in texts
 *
 * @typedef {object} Kind a device, as the emulator has it
 * @property {string} pns
 * @property {string} name
 * @property {'ios' | 'android' | 'windows' | 'browser' | 'tablet'} look
 * @property {string[]} handle members of its handle
 * @property {{body: string, headers?: Record<string, string>}} template
 * @property {{status: number, reason?: string}} dead the service's answer for a handle that is dead
 * @property {boolean} showsText whether it shows a payload that has no form
 *
 * @typedef {object} Platform
 * @property {string} name for people
 * @property {string} word of the command line
 * @property {string} format the word of ServiceBusNotification-Format
 * @property {'object' | 'json' | 'xml'} form
 * @property {number | null} limit bytes of payload; null where the service's documents do not say
 * @property {boolean} isRetired
 * @property {string} prefix the beginning of its elements in descriptions (docs/protocol/rest.md, section 3.1)
 * @property {string} element its credential in a hub's description
 * @property {Form[]} forms the forms of its credential, of which one is filled in
 * @property {Sample[]} samples
 * @property {Kind} [phone]
 */

/** @type {Record<string, Platform>} by the word of installations */
export const platforms = await fetch('/$portal/platforms.json').then((reply) => reply.json());

/** Maximum size of any notification in bytes, including the properties of a template send. */
export const notificationLimit = 65_536;

/**
 * @param {string | undefined} platform
 * @returns {string}
 */
export const platformName = (platform) => platforms[platform ?? '']?.name ?? platform ?? '–';

/**
 * As people call its devices.
 * @param {string} platform
 */
export const platformWord = (platform) => has(`compose.platform.${platform}`) ? t(`compose.platform.${platform}`) : platformName(platform);

/**
 * The platform of a format; null for templates.
 * @param {string} format
 */
export const platformOf = (format) =>
  Object.keys(platforms).find((key) => platforms[key].format === format) ?? null;

/** @param {string} format */
export const formatName = (format) => format === 'template' ? t('payload.template') : platformName(platformOf(format) ?? format);
