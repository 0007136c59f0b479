// Run with `node --test`. The program under test is curl here; yours is started in the same way.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { start } from './belfry-emulator.mjs';

let belfry;
before(async () => { belfry = await start(); });
after(() => belfry.stop());

/** Sends by Apple's push service with a key of the form that Apple issues. */
async function announce(text, token) {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const input = `${part({ alg: 'ES256', kid: 'ABCDE12345' })}.${part({ iss: 'TEAM123456', iat: Math.floor(Date.now() / 1000) })}`;
  const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url');
  const { stdout } = await promisify(execFile)('curl', [
    '-sS', '--http2', `https://api.push.apple.com/3/device/${token}`, '-H', `authorization: bearer ${input}.${signature}`,
    '-H', 'apns-topic: com.example.shop', '-H', 'apns-push-type: alert', '-d', JSON.stringify({ aps: { alert: text } }),
    '-w', '\n%{http_code}',
  ], { env: { ...process.env, ...belfry.environment } });
  return Number(stdout.split('\n').at(-1));
}

test('the customer is told', async () => {
  const phone = await belfry.iphone('com.example.shop');
  assert.equal(await announce('Grüner Tee is on its way', phone.token), 200);
  await phone.expect('Grüner Tee is on its way');
});

test('a phone without the app is noticed', async () => {
  const phone = await belfry.iphone('com.example.shop');
  await phone.uninstall();
  assert.equal(await announce('Tea', phone.token), 410);
  assert.deepEqual(await phone.messages(), []);
});
