// @ts-check
// Differences between the platforms in the portal. Names, formats, limits and forms are those of
// Sources/NotificationHubs/Devices/PlatformTraits.swift; a test compares them.

import { t } from './text.js';

/**
 * @typedef {object} Platform
 * @property {string} name display name
 * @property {string} format value of ServiceBusNotification-Format
 * @property {'object' | 'json' | 'xml'} form
 * @property {number | null} limit bytes of payload; null if the service does not document it
 * @property {boolean} [isRetired]
 */

/** @type {Record<string, Platform>} by the word of installations */
export const platforms = {
  apns: { name: 'APNs', format: 'apple', form: 'object', limit: 4096 },
  fcmv1: { name: 'FCM', format: 'fcmv1', form: 'object', limit: 4096 },
  wns: { name: 'Windows', format: 'windows', form: 'xml', limit: 5000 },
  browser: { name: 'Web push', format: 'browser', form: 'json', limit: 3993 },
  adm: { name: 'Amazon', format: 'adm', form: 'object', limit: 6144 },
  baidu: { name: 'Baidu', format: 'baidu', form: 'object', limit: 4096 },
  xiaomi: { name: 'Xiaomi', format: 'xiaomi', form: 'object', limit: null },
  gcm: { name: 'GCM', format: 'gcm', form: 'object', limit: null, isRetired: true },
  mpns: { name: 'Windows Phone', format: 'windowsphone', form: 'xml', limit: 3072, isRetired: true },
};

/** Maximum size of any notification in bytes, including the properties of a template send. */
export const notificationLimit = 65_536;

/**
 * @param {string | undefined} platform
 * @returns {string}
 */
export const platformName = (platform) => platforms[platform ?? '']?.name ?? platform ?? '–';

/**
 * The platform of a format; null for templates.
 * @param {string} format
 */
export const platformOf = (format) =>
  Object.keys(platforms).find((key) => platforms[key].format === format) ?? null;

/** @param {string} format */
export const formatName = (format) => format === 'template' ? t('payload.template') : platformName(platformOf(format) ?? format);
