import type { LookupAddress } from 'node:dns';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.js';
import { answers, BehindProxy, PUBLIC, PUBLIC_IPV6 } from './behind-proxy.js';
import { notification, type Receivers } from './receivers.js';

const receivers = new BehindProxy();
afterEach(() => receivers.close());

interface Seen {
  headers: IncomingMessage['headers'];
  servername: unknown;
}

async function receiver(scheme: string): Promise<{ port: number; seen: Seen[] }> {
  const seen: Seen[] = [];
  const listener: Parameters<Receivers['http']>[0] = ({ headers, socket }, response) => {
    seen.push({ headers, servername: (socket as TLSSocket & { servername?: unknown }).servername });
    response.end('thanks');
  };
  const port = await (scheme === 'https' ? receivers.https(receivers.certificate, listener) : receivers.http(listener));
  return { port, seen };
}

describe.each(['http', 'https'])('through an %s proxy', (proxyScheme) => {
  const start = () => receivers.proxy(proxyScheme);

  test.each(['http', 'https'])('an %s notification arrives', async (scheme) => {
    const [proxy, { port, seen }] = [await start(), await receiver(scheme)];
    const outcome = await receivers.post(proxy.url('', 'localhost'), `${scheme}://receiver.test:${port}/notify`);
    expect(outcome).toMatchObject({ kind: 'delivered', status: 200, phase: 'body', snippet: 'thanks' });
    expect(outcome.address).toBe(PUBLIC);
    expect(proxy.asked).toEqual([
      { method: 'CONNECT', target: `${PUBLIC}:${port}`, headers: { host: `${PUBLIC}:${port}`, connection: 'close' } },
    ]);
    expect(proxy.servernames).toEqual(proxyScheme === 'https' ? ['localhost'] : []);
    expect(seen[0]?.headers.host).toBe(`receiver.test:${port}`);
    expect(seen[0]?.headers).not.toHaveProperty('proxy-authorization');
    expect(seen[0]?.servername).toBe(scheme === 'https' ? 'receiver.test' : undefined);
  });

  test('the proxy credentials are sent only to the proxy', async () => {
    const [proxy, { port, seen }] = [await start(), await receiver('http')];
    await receivers.post(proxy.url('cinema:p%40ss%C3%A9', 'localhost'), `http://receiver.test:${port}/`);
    const basic = `Basic ${Buffer.from('cinema:p@ssé').toString('base64')}`;
    expect(proxy.asked[0]?.headers['proxy-authorization']).toBe(basic);
    expect(JSON.stringify(seen)).not.toContain(basic);
  });
});

describe('through a proxy', () => {
  test.each([
    [`http://${PUBLIC}/`, `${PUBLIC}:80`],
    [`https://${PUBLIC}/`, `${PUBLIC}:443`],
    [`https://[${PUBLIC_IPV6}]/`, `[${PUBLIC_IPV6}]:443`],
    ['http://receiver.test/', `${PUBLIC}:80`],
  ])('the tunnel to %s is requested by address and port', async (url, target) => {
    const proxy = await receivers.proxy();
    proxy.answerTo = () => 'HTTP/1.1 403 Forbidden\r\n\r\n';
    await receivers.post(proxy.url(), url);
    expect(proxy.targets).toEqual([target]);
  });

  test('the certificate is checked against the name in the URL', async () => {
    const [proxy, { port, seen }] = [await receivers.proxy(), await receiver('https')];
    const outcome = await receivers.post(proxy.url(), `https://other.test:${port}/`);
    const reason = 'certificate is for another host';
    expect(outcome).toMatchObject({ kind: 'unreachable', phase: 'tls', address: PUBLIC, reason });
    expect(seen).toEqual([]);
  });

  test('one tunnel is reused for the next notifications', async () => {
    const [proxy, { port, seen }] = [await receivers.proxy(), await receiver('https')];
    const sender = receivers.senderBy(proxy.url());
    for (let sent = 0; sent < 3; sent += 1) {
      const outcome = await sender.send(notification(`https://receiver.test:${port}/`));
      expect(outcome).toMatchObject({ kind: 'delivered', address: PUBLIC });
    }
    expect([proxy.targets.length, seen.length]).toEqual([1, 3]);
  });

  test.each(['http', 'https'])('closing the sender closes the tunnel to an %s receiver', async (scheme) => {
    const proxy = await receivers.proxy('https');
    const { port } = await receiver(scheme);
    const sender = receivers.senderBy(proxy.url('', 'localhost'));
    expect((await sender.send(notification(`${scheme}://receiver.test:${port}/`))).kind).toBe('delivered');
    expect(proxy.openSockets).toBeGreaterThan(0);
    await sender.close();
    await eventually('the proxy has no connection', () => proxy.openSockets === 0);
  });

  test('running out of file descriptors is thrown and not reported as the proxy’s fault', async () => {
    const exhausted = Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    const openSocket = (options: TcpNetConnectOpts): Socket => {
      const socket = connect(options);
      return socket.once('connect', () => socket.destroy(exhausted));
    };
    const proxy = (await receivers.proxy()).url();
    await expect(receivers.post(proxy, 'http://receiver.test/', { openSocket })).rejects.toThrow('too many open files');
  });

  test('the proxy variables of the environment are ignored', async () => {
    const [proxy, { port }] = [await receivers.proxy(), await receiver('http')];
    const closed = `http://127.0.0.1:${await receivers.closedPort()}`;
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];
    for (const name of names) process.env[name] = name === 'NO_PROXY' ? '*' : closed;
    try {
      expect((await receivers.post(proxy.url(), `http://receiver.test:${port}/`)).kind).toBe('delivered');
    } finally {
      for (const name of names) Reflect.deleteProperty(process.env, name);
    }
    expect(proxy.asked).toHaveLength(1);
  });
});

describe('the guard blocks before the proxy is used', () => {
  test.each(['127.0.0.1', '2130706433', '10.1.2.3', '169.254.169.254', '[::1]', '[::ffff:127.0.0.1]', '[fd00::1]'])(
    'the address %s',
    async (host) => {
      const proxy = await receivers.proxy();
      const outcome = await receivers.post(proxy.url(), `http://${host}:8080/`);
      expect(outcome).toMatchObject({ kind: 'blocked', phase: 'dns' });
      expect(proxy.asked).toEqual([]);
    },
  );

  test.each([
    ['a private address', [PUBLIC, '10.0.0.1'], '10.0.0.1'],
    ['loopback', ['::1', PUBLIC], '::1'],
    ['a mapped IPv4 address', ['::ffff:192.168.0.1'], '::ffff:192.168.0.1'],
    ['the metadata service', ['169.254.169.254'], '169.254.169.254'],
    ['a name instead of an address', ['localhost'], 'localhost'],
  ])('%s in the DNS answer', async (_name, addresses, address) => {
    const proxy = await receivers.proxy();
    const outcome = await receivers.post(proxy.url(), 'https://receiver.test/', { lookup: answers(...addresses) });
    expect(outcome).toMatchObject({ kind: 'blocked', phase: 'dns', address });
    expect(proxy.asked).toEqual([]);
  });

  test('the metadata service, even if private addresses are allowed', async () => {
    const proxy = await receivers.proxy();
    const options = { allowPrivateHosts: true, lookup: answers('127.0.0.1', 'fe80::1') };
    expect(await receivers.post(proxy.url(), 'http://receiver.test/', options)).toMatchObject({ kind: 'blocked' });
    expect(proxy.asked).toEqual([]);
  });

  test('a name that is not found', async () => {
    const proxy = await receivers.proxy();
    const outcome = await receivers.post(proxy.url(), 'http://receiver.test/', { lookup: answers() });
    expect(outcome).toMatchObject({ kind: 'unreachable', phase: 'dns', reason: 'host not found', address: null });
    expect(proxy.asked).toEqual([]);
  });

  test('a DNS answer after the deadline opens no tunnel', async () => {
    const proxy = await receivers.proxy();
    let answer: (addresses: LookupAddress[]) => void = () => undefined;
    const lookup = (): Promise<LookupAddress[]> => new Promise((resolve) => (answer = resolve));
    const sender = receivers.senderBy(proxy.url(), { timeoutMs: 300, lookup });
    const outcome = await sender.send(notification('http://receiver.test/'));
    expect(outcome).toMatchObject({ kind: 'timed-out', phase: 'dns' });
    answer([{ address: PUBLIC, family: 4 }]);
    // A request for the first address would be in the list before these two.
    proxy.answerTo = () => 'HTTP/1.1 403 Forbidden\r\n\r\n';
    for (const port of [8080, 8081]) await receivers.post(proxy.url(), `http://receiver.test:${port}/`);
    expect(proxy.targets).toEqual([`${PUBLIC}:8080`, `${PUBLIC}:8081`]);
  });
});

describe('a receiver with several addresses', () => {
  test.each([
    ['refuses', 'https', 'HTTP/1.1 503 Service Unavailable\r\n\r\n'],
    ['does not answer', 'http', 'hang'],
  ])('is reached at the next one if the proxy %s for the first', async (_name, scheme, refusal) => {
    const [proxy, { port }] = [await receivers.proxy(), await receiver(scheme)];
    proxy.answerTo = (target) => (target.startsWith('[') ? refusal : undefined);
    const lookup = answers(PUBLIC_IPV6, PUBLIC);
    const outcome = await receivers.post(proxy.url(), `${scheme}://receiver.test:${port}/`, { lookup });
    expect(outcome).toMatchObject({ kind: 'delivered', address: PUBLIC });
    expect(proxy.targets).toEqual([`[${PUBLIC_IPV6}]:${port}`, `${PUBLIC}:${port}`]);
    await eventually('only the tunnel in use is open', () => proxy.openSockets === 2);
  });

  test('is unreachable if the proxy refuses all addresses', async () => {
    const proxy = await receivers.proxy();
    proxy.answerTo = (target) => `HTTP/1.1 ${target.startsWith('[') ? 503 : 502} Bad Gateway\r\n\r\n`;
    const outcome = await receivers.post(proxy.url(), 'http://receiver.test/', {
      lookup: answers(PUBLIC_IPV6, PUBLIC),
    });
    expect(outcome).toMatchObject({ kind: 'unreachable', address: PUBLIC, reason: 'the proxy answered 502' });
  });

  test('is requested only once if the proxy rejects Usher’s credentials', async () => {
    const proxy = await receivers.proxy();
    proxy.answerTo = () => 'HTTP/1.1 407 Proxy Authentication Required\r\n\r\n';
    await receivers.post(proxy.url(), 'http://receiver.test/', { lookup: answers(PUBLIC, PUBLIC_IPV6) });
    expect(proxy.targets).toHaveLength(1);
  });
});
