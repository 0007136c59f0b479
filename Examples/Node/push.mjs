#!/usr/bin/env node
// Registers a device, sends to its tag, and waits for what became of it. Node 18 or newer, nothing else.
//
//     BELFRY_CONNECTION_STRING='Endpoint=sb://…' BELFRY_HUB=shop node push.mjs 'Hello'

import { createHmac } from 'node:crypto';

class Hub {
  constructor(connectionString, hub) {
    const fields = Object.fromEntries(
      connectionString.split(';').filter(Boolean).map((part) => {
        const at = part.indexOf('=');
        return [part.slice(0, at), part.slice(at + 1)];
      }));
    const host = fields.Endpoint.replace(/^sb:\/\//, '').replace(/\/$/, '');
    // `sb` is HTTPS; on this machine Belfry also speaks plain HTTP.
    const scheme = /^(127\.0\.0\.1|localhost)(:|$)/.test(host) ? 'http' : 'https';
    this.url = `${scheme}://${host}/${hub}`;
    this.keyName = fields.SharedAccessKeyName;
    this.key = fields.SharedAccessKey;
  }

  // A shared access signature for the whole hub, good for an hour.
  token() {
    const resource = encodeURIComponent(this.url);
    const expiry = Math.floor(Date.now() / 1000) + 3600;
    const signature = createHmac('sha256', this.key).update(`${resource}\n${expiry}`).digest('base64');
    return `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(signature)}&se=${expiry}&skn=${this.keyName}`;
  }

  async call(method, path, headers = {}, body = undefined) {
    const reply = await fetch(`${this.url}/${path}?api-version=2020-06`, {
      method, body, headers: { Authorization: this.token(), 'Content-Type': 'application/json', ...headers },
    });
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`);
    return reply;
  }

  async install(installation) {
    await this.call('PUT', `installations/${installation.installationId}`, {}, JSON.stringify(installation));
  }

  // Fills in everybody's template; the id of the notification.
  async send(properties, tags) {
    const reply = await this.call('POST', 'messages',
      { 'ServiceBusNotification-Format': 'template', 'ServiceBusNotification-Tags': tags }, JSON.stringify(properties));
    return new URL(reply.headers.get('Location')).pathname.split('/').pop();
  }

  async state(notification) {
    const document = await (await this.call('GET', `messages/${notification}`)).text();
    const counts = [...document.matchAll(/<Name>([^<]*)<\/Name><Count>([0-9]*)<\/Count>/g)];
    return [document.match(/<State>([^<]*)<\/State>/)[1], Object.fromEntries(counts.map((m) => [m[1], m[2]]))];
  }
}

const hub = new Hub(process.env.BELFRY_CONNECTION_STRING, process.env.BELFRY_HUB);
await hub.install({
  installationId: 'node-sample', platform: 'apns', pushChannel: process.env.DEVICE_TOKEN ?? '00'.repeat(32),
  tags: ['sample:node'], templates: { main: { body: '{"aps":{"alert":"$(message)"}}' } },
});
const notification = await hub.send({ message: process.argv[2] }, 'sample:node');
let state, outcomes;
do {
  await new Promise((done) => setTimeout(done, 200));
  [state, outcomes] = await hub.state(notification);
} while (state === 'Enqueued' || state === 'Processing');
console.log(JSON.stringify({ notification, state, outcomes }));
