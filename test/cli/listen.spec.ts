import { signNotification, verifyNotification } from '#receiver';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { freePort, usher as run, UsherProcess } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';

/** A server in this process. Each command is a separate process. */
let server: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  server = await TestUsher.start();
  receiver = await TestReceiver.start();
});
afterEach(() => {
  receiver.behaviour = answer(200);
});
afterAll(async () => {
  await server.stop();
  receiver.close();
});

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
    await listen.printed(line(1, 500));
    await listen.printed(line(2, 200));
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
    expect(await listen.end('SIGINT')).toMatchObject({ code: 0, stderr: '' });
  });

  test('forwards each request unchanged, returns the status of that receiver, and prints one JSON document each', async () => {
    const client = await server.client();
    receiver.behaviour = (response, _, nth) => void response.writeHead(nth === 1 ? 418 : 204).end();
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
      { attempt: '1', forwarded: 418, answered: 418, notification: { data: { key } }, fault: null },
      { attempt: '2', forwarded: 204, answered: 204 },
    ]);
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
    for (const signature of [signNotification('secret', timestamp, nonce, body), '\u009b31m']) {
      const init = { method: 'POST', body, headers: { ...headers, 'x-signature': signature } };
      expect((await fetch(`http://127.0.0.1:${port}`, init)).status).toBe(200);
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
