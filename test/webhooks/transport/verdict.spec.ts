import type { IncomingMessage } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from '@jest/globals';
import { Receivers, notification } from './receivers.js';

const receivers = new Receivers();
afterEach(() => receivers.close());

function answer(status: number, body: string | Buffer, headers: Record<string, string> = {}): Promise<number> {
  return receivers.http((_request, response) => response.writeHead(status, headers).end(body));
}

async function outcomeOf(port: number): ReturnType<ReturnType<Receivers['sender']>['send']> {
  return receivers.sender().send(notification(`http://127.0.0.1:${port}/notify?x=1`));
}

describe('the status decides', () => {
  test.each([200, 201, 202, 204, 226, 299])('%i is delivered', async (status) => {
    const outcome = await outcomeOf(await answer(status, ''));
    expect(outcome).toMatchObject({ kind: 'delivered', status, phase: 'body', address: '127.0.0.1', snippet: '' });
    expect(Number.isInteger(outcome.durationMs)).toBe(true);
  });

  test.each([300, 304, 400, 401, 404, 410, 429, 500, 503, 599])('%i is refused', async (status) => {
    expect(await outcomeOf(await answer(status, 'no'))).toMatchObject({ kind: 'refused', status, phase: 'body' });
  });

  test.each([301, 302, 303, 307, 308])('a redirect (%i) is refused and not followed', async (status) => {
    let visits = 0;
    const elsewhere = await receivers.http((_request, response) => {
      visits += 1;
      response.end();
    });
    const port = await answer(status, '', { location: `http://127.0.0.1:${elsewhere}/` });
    expect(await outcomeOf(port)).toMatchObject({ kind: 'refused', status });
    expect(visits).toBe(0);
  });
});

describe('the request', () => {
  interface Seen {
    request: IncomingMessage;
    body: string;
  }

  async function recorder(): Promise<{ port: number; seen: Seen[] }> {
    const seen: Seen[] = [];
    const port = await receivers.http((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      request.on('end', () => {
        seen.push({ request, body });
        response.writeHead(200, { 'set-cookie': 'session=1', 'alt-svc': 'h2=":443"' }).end();
      });
    });
    return { port, seen };
  }

  test('sends the given bytes and headers to the path and query of the URL', async () => {
    const { port, seen } = await recorder();
    const body = Buffer.from('{"title":"Amélie — 天使爱美丽"}');
    const headers = { 'Content-Type': 'application/json', 'X-Signature': 'ab12' };
    await receivers.sender().send({ url: `http://127.0.0.1:${port}/a/b?c=d&e=%20`, headers, body });
    expect(seen[0]?.request).toMatchObject({ method: 'POST', url: '/a/b?c=d&e=%20' });
    expect(seen[0]?.request.headers).toEqual({
      host: `127.0.0.1:${port}`,
      connection: 'keep-alive',
      'content-type': 'application/json',
      'content-length': String(body.length),
      'x-signature': 'ab12',
    });
    expect(seen[0]?.body).toBe(body.toString());
  });

  test('does not send cookies back', async () => {
    const { port, seen } = await recorder();
    const sender = receivers.sender();
    await sender.send(notification(`http://127.0.0.1:${port}/`));
    await sender.send(notification(`http://127.0.0.1:${port}/`));
    expect(seen.map(({ request }) => request.headers.cookie)).toEqual([undefined, undefined]);
  });

  test('ignores the proxy variables of the environment', async () => {
    const { port, seen } = await recorder();
    const closed = `http://127.0.0.1:${await receivers.closedPort()}`;
    Object.assign(process.env, { HTTP_PROXY: closed, http_proxy: closed, ALL_PROXY: closed });
    try {
      expect(await outcomeOf(port)).toMatchObject({ kind: 'delivered' });
    } finally {
      for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY']) Reflect.deleteProperty(process.env, name);
    }
    expect(seen).toHaveLength(1);
  });

  test.each(['notify', '/notify', 'ftp://127.0.0.1/', 'http:127.0.0.1', ''])(
    'to %j is our own mistake',
    async (url) => {
      await expect(receivers.sender().send(notification(url))).rejects.toThrow('absolute http or https URL');
    },
  );

  test('with an invalid header throws instead of blaming the receiver', async () => {
    const request = { ...notification('http://127.0.0.1:1/'), headers: { 'X-Reason': 'a\r\nb' } };
    await expect(receivers.sender().send(request)).rejects.toThrow('invalid X-Reason header');
  });
});

describe('the snippet', () => {
  const snippetOf = async (body: string | Buffer, headers = {}): Promise<string> =>
    (await outcomeOf(await answer(500, body, headers))).snippet;

  test('is the whole body of a short answer', async () => {
    expect(await snippetOf('{"error":"天使爱美丽"}\r\n')).toBe('{"error":"天使爱美丽"}\n');
  });

  test('contains no control, bidirectional or invalid characters', async () => {
    const body = Buffer.concat([Buffer.from('a\u0000b\u001b[2Jc\u202ed\u200be'), Buffer.from([0xff, 0x66])]);
    expect(await snippetOf(body)).toBe('a\uFFFDb\uFFFD[2Jc\uFFFDd\uFFFDe\uFFFDf');
  });

  test.each([
    ['ASCII', 'x'.repeat(5000), 'x'.repeat(1024)],
    ['three-byte characters', '天'.repeat(2000), '天'.repeat(341)],
    ['four-byte characters', '😀'.repeat(2000), '😀'.repeat(256)],
    ['a character that crosses the limit', `${'x'.repeat(1023)}é${'x'.repeat(9)}`, 'x'.repeat(1023)],
    ['a four-byte character that crosses the limit', `${'x'.repeat(1021)}😀`, 'x'.repeat(1021)],
    ['unprintable characters, whose replacements are longer', '\u0001'.repeat(1024), '\uFFFD'.repeat(341)],
    ['400 KiB', 'y'.repeat(400 * 1024), 'y'.repeat(1024)],
  ])('is at most 1 KiB of whole characters: %s', async (_name, body, expected) => {
    expect(await snippetOf(body)).toBe(expected);
  });

  test('shows the size of a compressed body and never decompresses it', async () => {
    const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024));
    expect(await snippetOf(bomb, { 'content-encoding': 'gzip' })).toBe(`(gzip, ${bomb.length} bytes)`);
    expect(await snippetOf(Buffer.alloc(70_000), { 'content-encoding': 'br' })).toBe('(br, 65536 bytes or more)');
    expect(await snippetOf('abc', { 'content-encoding': '<script>' })).toBe('(encoded, 3 bytes)');
    expect(await snippetOf('abc', { 'content-encoding': 'identity' })).toBe('abc');
  });
});
