// @ts-check
// Decryption of push messages, as a browser does it: Message Encryption for Web Push
// (RFC 8291) over aes128gcm (RFC 8188), with WebCrypto only.

/** @typedef {{privateKey: CryptoKey, publicKey: Uint8Array, auth: Uint8Array}} Keys of a subscription */

/** @param {ArrayBuffer | Uint8Array | null} bytes as base64url */
export const encoded = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes ?? [])))
  .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** @param {string} base64 also base64url */
export const decoded = (base64) => Uint8Array.from(
  atob(base64.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0));

const text = new TextEncoder();

/**
 * Generates the keys of a subscription: a P-256 pair and a secret of 16 bytes. The private key is
 * not extractable; the browser stores and uses it.
 * @returns {Promise<Keys>}
 */
export async function makeKeys() {
  const pair = await crypto.subtle.generateKey(
    { name: 'ECDH', namedCurve: 'P-256' }, false, ['deriveBits']);
  return {
    privateKey: pair.privateKey,
    publicKey: new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey)),
    auth: crypto.getRandomValues(new Uint8Array(16)),
  };
}

/**
 * Decrypts one message. Throws an Error for any fault in it.
 * @param {Keys} keys
 * @param {Uint8Array} message
 */
export async function decrypt({ privateKey, publicKey, auth }, message) {
  // RFC 8188, section 2.1: salt (16), record size (4), length of the key id (1), key id.
  if (message.length < 21) throw new Error('the message is shorter than its header');
  const salt = message.subarray(0, 16);
  const recordSize = new DataView(message.buffer, message.byteOffset).getUint32(16);
  const sender = message.subarray(21, 21 + message[20]);
  const record = message.subarray(21 + message[20]);
  if (sender.length !== 65) throw new Error('the header holds no public key of the sender');
  // RFC 8291, section 4: exactly one record.
  if (recordSize < 18 || record.length > recordSize) {
    throw new Error('the message is not one single record');
  }
  if (record.length < 17) throw new Error('the message is cut off');

  const senderKey = await crypto.subtle.importKey(
    'raw', sender, { name: 'ECDH', namedCurve: 'P-256' }, false, []);
  const shared = await crypto.subtle.deriveBits(
    { name: 'ECDH', public: senderKey }, privateKey, 256);
  const input = await hkdf(
    auth, shared, join(text.encode('WebPush: info\0'), publicKey, sender), 32);
  const key = await crypto.subtle.importKey(
    'raw', await hkdf(salt, input, text.encode('Content-Encoding: aes128gcm\0'), 16),
    'AES-GCM', false, ['decrypt']);
  const iv = await hkdf(salt, input, text.encode('Content-Encoding: nonce\0'), 12);
  let clear;
  try {
    clear = new Uint8Array(await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, record));
  } catch {
    throw new Error('the message was changed on its way, or sealed for somebody else');
  }
  // The last record ends in 2 and any number of zeros.
  let end = clear.length - 1;
  while (clear[end] === 0) end -= 1;
  if (clear[end] !== 2) throw new Error('the padding does not end the message');
  return clear.slice(0, end);
}

/**
 * @param {Uint8Array} salt
 * @param {ArrayBuffer | Uint8Array} secret
 * @param {Uint8Array} info
 * @param {number} length
 */
async function hkdf(salt, secret, info, length) {
  const key = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);
  return new Uint8Array(await crypto.subtle.deriveBits(
    { name: 'HKDF', hash: 'SHA-256', salt, info }, key, length * 8));
}

/** @param {...Uint8Array} parts */
function join(...parts) {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let end = 0;
  for (const part of parts) {
    all.set(part, end);
    end += part.length;
  }
  return all;
}
