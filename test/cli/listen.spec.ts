import { createHmac } from 'node:crypto';
import { signNotification, verifyNotification } from 'usher-receiver';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { usher as run, UsherProcess } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';

/** A server in this process. Each command is a separate process. */
let server: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  server = await TestUsher.shared();
  receiver = await TestReceiver.start();
});
afterEach(() => {
  receiver.behaviour = answer(200);
});
afterAll(() => void receiver.close());

describe('listen', () => {
  test('reports a valid signature, honours --fail-first, and exits 0 after SIGINT', async () => {
    const client = await server.client();
    const args = ['listen', '--port', '0', '--fail-first', '1'];
    const listen = new UsherProcess('cli.js', args, { CLIENT_SECRET: client.secret });
    const [, url = ''] = await listen.printed(/Listening at (\S+); stop with Ctrl-C\.\n/);
    const key = await client.completedOrder({ notifyUrl: `${url}/notify` });
    const { id } = await server.webhook(key, 'SUCCESS');
    const line = (attempt: number, answered: number): RegExp =>
      new RegExp(
        `signature valid  NOTIFY_ORDER_COMPLETION  ${key}  COMPLETED  4200 MYR  webhook ${id} attempt ${attempt}  answered ${answered}\n`,
      );
    const stringToSign = /string to sign +\d{10}[A-Za-z0-9]{32}[A-Za-z0-9+/]+=*\n/;
    await listen.printed(line(1, 500));
    await listen.printed(line(2, 200));
    await listen.printed(stringToSign);
    const { stderr } = await run({}, ['listen', '--secret-stdin', '--port', new URL(url).port], 'x');
    expect(stderr).toMatch(/^usher: port \d+ is in use; choose another with --port\n$/);
    expect(await listen.end('SIGINT')).toMatchObject({ code: 0, stderr: '' });
  });

  test('reports why a signature is invalid, and answers with --status after --delay', async () => {
    const args = ['listen', '--secret-stdin', '--port', '0', '--status', '503', '--delay', '10ms'];
    const listen = new UsherProcess('cli.js', args, {});
    listen.child.stdin?.end('wrong\n');
    const [, url = ''] = await listen.printed(/Listening at (\S+);/);
    const client = await server.client(`${url}/notify`);
    const key = await client.completedOrder();
    await listen.printed(/signature invalid \(secret\): .* most likely the secret/);
    const { log } = await eventually('the answer is recorded', async () => {
      const [newest] = await server.webhooks.find(key);
      const { attempts } = await server.webhooks.show(newest!.id);
      return attempts[0]?.responseStatus ? { log: attempts } : null;
    });
    expect(log[0]?.responseStatus).toBe(503);
    expect(await listen.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' });
  });

  test('shows what a browser brings to it as a redirect URI, and nothing for other pages', async () => {
    const listen = new UsherProcess('cli.js', ['listen', '--port', '0'], { CLIENT_SECRET: 'x' });
    const [, url = ''] = await listen.printed(/Listening at (\S+);/);
    expect((await fetch(`${url}/favicon.ico`)).status).toBe(404);
    expect((await fetch(`${url}/callback?code=the-code&state=s&iss=http%3A%2F%2F127.0.0.1`)).status).toBe(200);
    await listen.printed(/a browser came to \/callback\n +code +the-code\n +state +s\n +iss +http:\/\/127\.0\.0\.1\n/);
    // Any page that the developer opens can send this.
    expect((await fetch(`${url}//?code=no-url`)).status).toBe(200);
    await listen.printed(/a browser came to \/\/\n +code +no-url\n/);
    expect(await listen.end('SIGINT')).toMatchObject({ code: 0, stderr: '' });
  });

  test('forwards each request unchanged, returns the status of that receiver, and prints one JSON document each', async () => {
    const client = await server.client();
    receiver.behaviour = (response, _, nth) =>
      void response.writeHead(nth === 1 ? 418 : 204).end(nth === 1 ? 'a teapot' : '');
    const args = ['listen', '--port', '0', '--json', '--forward-to', receiver.url];
    const port = await freePort();
    const listen = new UsherProcess('cli.js', args.with(2, String(port)), { CLIENT_SECRET: client.secret });
    await eventually('it listens', () => fetch(`http://127.0.0.1:${port}`));
    const key = await client.completedOrder({ notifyUrl: `http://127.0.0.1:${port}/notify` });
    const { id, log } = await server.webhook(key, 'SUCCESS');
    expect(log.map(({ responseStatus }) => responseStatus)).toEqual([418, 204]);
    for (const { rawBody, headers } of receiver.of(key))
      expect(verifyNotification({ rawBody, headers, secret: client.secret }).data.key).toBe(key);
    await listen.end('SIGTERM');
    const documents = listen.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { webhookId: string });
    expect(documents.filter(({ webhookId }) => webhookId === id)).toMatchObject([
      {
        attempt: '1',
        forwarded: 418,
        forwardedBody: 'a teapot',
        answered: 418,
        notification: { data: { key } },
        fault: null,
        steps: { stringToSign: expect.stringMatching(/^\d{10}[A-Za-z0-9]{32}/) },
      },
      { attempt: '2', forwarded: 204, forwardedBody: null, answered: 204 },
    ]);
  });

  test('returns the status of that receiver, as Usher takes it, although its answer breaks off', async () => {
    receiver.behaviour = (response) => {
      response.writeHead(200, { 'content-length': '100' }).write('received');
      setImmediate(() => response.destroy());
    };
    const args = ['listen', '--port', '0', '--forward-to', receiver.url];
    const listen = new UsherProcess('cli.js', args, { CLIENT_SECRET: 'x' });
    const [, url = ''] = await listen.printed(/Listening at (\S+);/);
    expect((await fetch(url, { method: 'POST', body: '{"data":{"key":"K"}}' })).status).toBe(200);
    await listen.end();
  });

  test('answers 401 to what is not genuine, and recognises how it was signed', async () => {
    const secret = '5ec7e7'.repeat(8);
    const listen = new UsherProcess('cli.js', ['listen', '--port', '0'], { CLIENT_SECRET: secret });
    const [, url = ''] = await listen.printed(/Listening at (\S+);/);
    const [timestamp, nonce] = [String(Math.floor(Date.now() / 1_000)), 'a'.repeat(32)];
    const parts = [timestamp, nonce, Buffer.from('{}').toString('base64')];
    const hmac = (message: string, key: string | Buffer = secret): string =>
      createHmac('sha256', key).update(message).digest('hex');
    for (const [signature, hint, sent = timestamp] of [
      [hmac(parts.join('.')), /signature invalid \(order\): .* with dots between them; .*answered 401/],
      [hmac(parts.join('\n')), /signature invalid \(order\): .* with newlines between them; .*answered 401/],
      [hmac(parts.join(''), Buffer.from(secret, 'hex')), /\(secret\): the secret was decoded from hex .*answered 401/],
      [hmac(parts.join('')), /\(timestamp\): .* it was changed after signing  answered 401/, String(+timestamp - 7)],
    ] as [string, RegExp, string?][]) {
      const headers = { 'x-timestamp': sent, 'x-nonce-str': nonce, 'x-signature': signature };
      expect((await fetch(url, { method: 'POST', body: '{}', headers })).status).toBe(401);
      await listen.printed(hint);
    }
    await listen.printed(new RegExp(`string to sign +${parts.join('')}\n`));
    await listen.end('SIGINT');
    expect(listen.stdout).not.toContain(hmac(parts.join('')));
  });

  test('shows the data of an application that embeds Usher as they are', async () => {
    const listen = new UsherProcess('cli.js', ['listen', '--port', '0'], { CLIENT_SECRET: 'secret' });
    const [, url = ''] = await listen.printed(/Listening at (\S+);/);
    const body = JSON.stringify({ eventType: 'NOTIFY_ORDER_COMPLETION', data: { seats: 2 } });
    const [timestamp, nonce] = [String(Math.floor(Date.now() / 1_000)), 'a'.repeat(32)];
    const signature = signNotification('secret', timestamp, nonce, Buffer.from(body));
    const headers = { 'x-timestamp': timestamp, 'x-nonce-str': nonce, 'x-signature': signature };
    const ids = { 'x-webhook-id': 'W', 'x-webhook-attempt': '1' };
    await fetch(url, { method: 'POST', body, headers: { ...headers, ...ids } });
    await listen.printed(
      /signature valid {2}NOTIFY_ORDER_COMPLETION {2}webhook W attempt 1 {2}answered 200\n +seats +2\n/,
    );
    await listen.end('SIGINT');
  });

  test('warns of a forwarded receiver that accepts a forged notification, and shows what it says when it refuses', async () => {
    receiver.behaviour = (response, _, nth) => void response.writeHead(nth === 1 ? 200 : 403).end('no <entry>');
    const args = ['listen', '--port', '0', '--forward-to', receiver.url];
    const listen = new UsherProcess('cli.js', args, { CLIENT_SECRET: 'secret' });
    const [, url = ''] = await listen.printed(/Listening at (\S+);/);
    const body = JSON.stringify({ data: { key: 'forged' } });
    const send = async () => (await fetch(url, { method: 'POST', body })).status;
    expect(await send()).toBe(200);
    await listen.printed(/your receiver accepted this request with 200; it must refuse it/);
    expect(await send()).toBe(403);
    await listen.printed(/forwarded: 403 {2}answered 403\n +your receiver said +no <entry>\n/);
    await listen.end('SIGINT');
  });

  test.each(['', '--json'])('prints no control character of a body or a header: listen %s', async (json) => {
    const hostile = 'a\u001b[2J\u009b31m\u202e\u2028\r\nsignature valid\u0007';
    const port = await freePort();
    const args = ['listen', '--port', String(port), ...(json ? [json] : [])];
    const listen = new UsherProcess('cli.js', args, { CLIENT_SECRET: 'secret' });
    await eventually('it listens', () => fetch(`http://127.0.0.1:${port}`));
    const data = { key: hostile, status: hostile, currencyCode: hostile, bookingId: hostile, [hostile]: hostile };
    const body = Buffer.from(JSON.stringify({ eventType: hostile, data }));
    const [timestamp, nonce] = [String(Math.floor(Date.now() / 1_000)), 'a'.repeat(32)];
    const headers = {
      'x-timestamp': timestamp,
      'x-nonce-str': nonce,
      'x-webhook-id': 'w\u009b1m',
      'x-webhook-attempt': '\u009b',
    };
    for (const [signature, status] of [
      [signNotification('secret', timestamp, nonce, body), 200],
      ['\u009b31m', 401],
    ] as const) {
      const init = { method: 'POST', body, headers: { ...headers, 'x-signature': signature } };
      expect((await fetch(`http://127.0.0.1:${port}`, init)).status).toBe(status);
    }
    await listen.printed(/\\u202e/);
    const { stdout } = await listen.end('SIGINT');
    expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    if (json) expect(stdout.split('\n').slice(1, -1).map(parsedKey)).toEqual([hostile, undefined]);
    else expect(stdout).not.toMatch(/^signature valid/m);
  });
});

const parsedKey = (line: string): unknown =>
  (JSON.parse(line) as { notification?: { data: { key: string } } }).notification?.data.key;
