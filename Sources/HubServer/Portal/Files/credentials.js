// @ts-check
// Credentials as files that somebody has dropped: what kind each is, and what it fills in. The names are those
// of docs/protocol/rest.md, section 8.1.

export const endpoints = {
  production: 'https://api.push.apple.com:443/3/device',
  sandbox: 'https://api.development.push.apple.com:443/3/device',
};

/**
 * The platform of a file and the values it fills in; `wrong` is a key of texts that says where it belongs.
 * @param {string} name
 * @param {Uint8Array} bytes
 * @returns {{platform?: string, form?: string, values?: Record<string, string>, wrong?: string}}
 */
export function recognise(name, bytes) {
  if (bytes.length === 0) return { wrong: 'credentials.wrong.empty' };
  if (bytes.length > 1 << 20) return { wrong: 'credentials.wrong.large' };
  if (bytes[0] === 0x30) return ofDER(bytes);
  const text = new TextDecoder().decode(bytes).trim();
  if (text.startsWith('{')) return ofJSON(text);
  if (text.includes('GOOGLE_APP_ID') && text.includes('<plist')) return { wrong: 'credentials.wrong.appConfiguration' };
  if (text.includes('ENCRYPTED')) return { wrong: 'credentials.wrong.encrypted' };
  if (text.includes('BEGIN CERTIFICATE-----')) return { wrong: 'credentials.wrong.certificate' };
  if (text.includes('PUBLIC KEY-----')) return { wrong: 'credentials.wrong.publicKey' };
  if (text.includes('PRIVATE KEY-----')) {
    const keyID = /AuthKey_([A-Za-z0-9]+)/.exec(name)?.[1];
    return { platform: 'apns', form: 'apnsKey', values: { Token: text, ...(keyID ? { KeyId: keyID } : {}) } };
  }
  if (/^[A-Za-z0-9_-]{43}$/.test(text)) return { platform: 'browser', form: 'vapid', values: { VapidPrivateKey: text } };
  return { wrong: 'credentials.wrong.other' };
}

/**
 * @param {string} text
 * @returns {ReturnType<typeof recognise>}
 */
function ofJSON(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return { wrong: 'credentials.wrong.json' };
  }
  if (value.project_info) return { wrong: 'credentials.wrong.appConfiguration' };
  if (value.private_key || value.type === 'service_account') {
    const values = Object.entries({
      ProjectId: value.project_id, ClientEmail: value.client_email, PrivateKey: value.private_key,
      PrivateKeyId: value.private_key_id, TokenUri: value.token_uri,
    }).filter(([, text]) => typeof text === 'string');
    return { platform: 'fcmv1', form: 'fcm', values: Object.fromEntries(values) };
  }
  if (value.publicKey && value.privateKey) {
    return { platform: 'browser', form: 'vapid', values: { VapidPublicKey: String(value.publicKey), VapidPrivateKey: String(value.privateKey) } };
  }
  return { wrong: 'credentials.wrong.json' };
}

/**
 * By the first element of the outer sequence: PKCS#12 has version 3, a key version 0 or 1, a certificate
 * another sequence.
 * @param {Uint8Array} bytes
 * @returns {ReturnType<typeof recognise>}
 */
function ofDER(bytes) {
  const start = bytes[1] < 0x80 ? 2 : 2 + (bytes[1] & 0x7f);
  if (bytes[start] === 2 && bytes[start + 2] === 3) {
    let text = '';
    for (const byte of bytes) text += String.fromCharCode(byte);
    return { platform: 'apns', form: 'apnsCertificate', values: { ApnsCertificate: btoa(text) } };
  }
  return { wrong: bytes[start] === 2 ? 'credentials.wrong.binary' : 'credentials.wrong.certificate' };
}

/**
 * A VAPID pair.
 * @returns {Promise<{VapidPublicKey: string, VapidPrivateKey: string}>}
 */
export async function vapidPair() {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign']);
  const secret = await crypto.subtle.exportKey('jwk', pair.privateKey);
  const point = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey));
  const text = btoa(String.fromCharCode(...point)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  return { VapidPublicKey: text, VapidPrivateKey: secret.d ?? '' };
}
