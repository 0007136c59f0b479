// The push services on this machine, reached by their real names, and phones that say what arrived. Node 20, nothing else.
//
//     const belfry = await start();
//     const phone = await belfry.iphone('com.example.shop');
//     … the program under test, started with `belfry.environment`, sends to phone.token …
//     await phone.expect('is on its way');
//     await belfry.stop();
//
// BELFRY names another program than belfry.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

/** Starts `belfry emulator` with a proxy. It takes the credentials that the program under test has. */
export async function start() {
  const words = ['emulator', '--json', '--port', '0', '--proxy', '0', '--accept-any-credential'];
  const child = spawn(process.env.BELFRY ?? 'belfry', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    once(child, 'exit').then(() => { throw new Error('belfry emulator did not start'); }),
  ]);
  const { control, proxy, ca } = JSON.parse(line);

  /** A call of the control API (docs/protocol/emulator.md). */
  async function call(method, path, body) {
    const reply = await fetch(`${control}/v1/${path}`, {
      method, headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  /** A phone with an app. */
  async function phone(wanted, members) {
    const { apps } = await call('GET', 'apps');
    const isWanted = (app) => Object.entries(wanted).every(([name, value]) => app[name] === value);
    const { appId } = apps.find(isWanted) ?? await call('POST', 'apps', wanted);
    const { devices: [device] } = await call('POST', 'devices', { appId, ...members });
    const messages = async () => {
      const { notifications } = await call('GET', `devices/${device.deviceId}/notifications`);
      return notifications.map((one) => Buffer.from(one.payloadBase64, 'base64').toString());
    };
    return {
      handle: device.handle,
      token: device.handle.token,
      /** The payloads that arrived, oldest first, as text. */
      messages,
      /** Waits for a message with this text in it, and returns its payload. */
      async expect(text, seconds = 5) {
        const deadline = Date.now() + 1000 * seconds;
        for (;;) {
          const arrived = await messages();
          const found = arrived.find((one) => one.includes(text) || decoded(one).includes(text));
          if (found !== undefined) return found;
          if (Date.now() > deadline) throw new Error(`no message with '${text}' within ${seconds} s; arrived: ${arrived}`);
          await pause(20);
        }
      },
      /** From now on the push service calls the token dead. */
      uninstall: () => call('POST', `devices/${device.deviceId}/unregister`, {}),
    };
  }

  return {
    call,
    android: (projectId, members) => phone({ pns: 'fcm', projectId }, members),
    iphone: (bundleId, members) => phone({ pns: 'apns', bundleId }, members),
    /** For the program under test. NODE_USE_ENV_PROXY works from Node 22.21 on. */
    environment: {
      HTTPS_PROXY: proxy, https_proxy: proxy, NODE_USE_ENV_PROXY: '1', NODE_EXTRA_CA_CERTS: ca, CURL_CA_BUNDLE: ca,
      SSL_CERT_FILE: ca,
    },
    async stop() {
      child.kill();
      await once(child, 'exit');
    },
  };
}

/** In JSON a letter may be written as an escape. */
function decoded(payload) {
  try {
    return JSON.stringify(JSON.parse(payload));
  } catch {
    return '';
  }
}
