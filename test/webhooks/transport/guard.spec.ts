import type { LookupAddress } from 'node:dns';
import { Socket, connect, type TcpNetConnectOpts } from 'node:net';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import type { HostLookup } from '../../../src/webhooks/transport/guarded-connector.js';
import { eventually } from '../../support/eventually.js';
import { Receivers, notification } from './receivers.js';

const receivers = new Receivers();
afterEach(() => receivers.close());

const PUBLIC = '93.184.216.34';

function answers(...addresses: string[]): HostLookup {
  return () => Promise.resolve(addresses.map(toAnswer));
}

function toAnswer(address: string): LookupAddress {
  return { address, family: address.includes(':') ? 6 : 4 };
}

async function countingReceiver(): Promise<{ port: number; connections: () => number }> {
  let count = 0;
  const port = await receivers.http((_request, response) => response.end('ok'));
  const proxy = await receivers.raw((socket) => {
    count += 1;
    socket.pipe(connect(port, '127.0.0.1')).pipe(socket);
  });
  return { port: proxy, connections: () => count };
}

describe('a literal address is refused before a socket is opened', () => {
  test.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.0.0.1.',
    '0.0.0.0',
    '10.1.2.3',
    '169.254.169.254',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[fe80::1]',
    '[fd00::1]',
  ])('%s', async (host) => {
    const openSocket = jest.fn<() => Socket>();
    const sender = receivers.sender({ allowPrivateHosts: false, openSocket });
    const outcome = await sender.send(notification(`http://${host}:8080/`));
    expect(outcome).toMatchObject({ kind: 'blocked', phase: 'dns', snippet: '' });
    expect(openSocket).not.toHaveBeenCalled();
  });
});

describe('every address in a DNS answer is checked', () => {
  test.each([
    ['a private address', [PUBLIC, '10.0.0.1'], '10.0.0.1'],
    ['a private address first', ['10.0.0.1', PUBLIC], '10.0.0.1'],
    ['loopback over IPv6', [PUBLIC, '2606:2800:220:1::1', '::1'], '::1'],
    ['a mapped IPv4 address', ['::ffff:192.168.0.1'], '::ffff:192.168.0.1'],
    ['a scoped address', ['fe80::1%eth0'], 'fe80::1%eth0'],
    ['a name instead of an address', ['localhost'], 'localhost'],
  ])('%s in the answer refuses the whole answer', async (_name, addresses, address) => {
    const sender = receivers.sender({ allowPrivateHosts: false, lookup: answers(...addresses) });
    const outcome = await sender.send(notification('http://receiver.test:8080/'));
    expect(outcome).toMatchObject({ kind: 'blocked', phase: 'dns', address });
  });

  test('localhost is resolved like any name and refused because of its addresses', async () => {
    const { port, connections } = await countingReceiver();
    const outcome = await receivers
      .sender({ allowPrivateHosts: false })
      .send(notification(`http://localhost:${port}/`));
    expect(outcome.kind).toBe('blocked');
    expect(connections()).toBe(0);
  });

  test.each(['169.254.169.254', 'fe80::1', 'fd00:ec2::254', '100.100.100.200', '::ffff:169.254.169.254'])(
    '%s is refused even where private hosts are allowed',
    async (address) => {
      const sender = receivers.sender({ lookup: answers('127.0.0.1', address) });
      const outcome = await sender.send(notification('http://receiver.test:8080/'));
      expect(outcome).toMatchObject({ kind: 'blocked', address });
    },
  );

  test('private hosts are reached if they are allowed', async () => {
    const port = await receivers.http((_request, response) => response.end());
    const sender = receivers.sender({ lookup: answers('127.0.0.1') });
    const outcome = await sender.send(notification(`http://receiver.test:${port}/`));
    expect(outcome).toMatchObject({ kind: 'delivered', address: '127.0.0.1' });
  });

  test('a name is resolved once for each new connection', async () => {
    const lookup = jest.fn(answers('169.254.169.254')).mockImplementationOnce(answers('127.0.0.1'));
    const port = await receivers.http((_request, response) => response.setHeader('connection', 'close').end());
    const sender = receivers.sender({ lookup });
    const url = `http://receiver.test:${port}/`;
    expect((await sender.send(notification(url))).kind).toBe('delivered');
    expect(lookup).toHaveBeenCalledTimes(1);
    expect(await sender.send(notification(url))).toMatchObject({ kind: 'blocked', address: '169.254.169.254' });
  });

  test('concurrent connections to one name share one lookup', async () => {
    const asked: ((addresses: LookupAddress[]) => void)[] = [];
    const lookup: HostLookup = () => new Promise((resolve) => asked.push(resolve));
    const port = await receivers.http((_request, response) => response.end());
    const sender = receivers.sender({ lookup });
    const sends = [1, 2, 3].map(() => sender.send(notification(`http://receiver.test:${port}/`)));
    await eventually('the name is asked for', () => asked.length > 0);
    for (const answer of asked) answer([toAnswer('127.0.0.1')]);
    for (const outcome of await Promise.all(sends)) expect(outcome.kind).toBe('delivered');
    expect(asked).toHaveLength(1);
  });

  test('only checked addresses are used, even if the resolver changes its answer later', async () => {
    const { port, connections } = await countingReceiver();
    const shifty: LookupAddress[] = [toAnswer(PUBLIC)];
    let used: unknown;
    const openSocket = (options: TcpNetConnectOpts): Socket => {
      options.lookup?.('receiver.test', { all: true }, (_error, addresses) => {
        shifty[0] = toAnswer('127.0.0.1');
        used = addresses;
      });
      return new Socket();
    };
    const sender = receivers.sender({
      allowPrivateHosts: false,
      timeoutMs: 300,
      lookup: () => Promise.resolve(shifty),
      openSocket,
    });
    await sender.send(notification(`http://receiver.test:${port}/`));
    expect(used).toEqual([toAnswer(PUBLIC)]);
    expect(connections()).toBe(0);
  });
});

describe('the address at the other end of the socket is checked too', () => {
  /** Connects to this machine, whatever address was resolved and checked. */
  const toLoopback = (options: TcpNetConnectOpts): Socket =>
    connect({
      ...options,
      lookup: (hostname, lookupOptions, callback) =>
        options.lookup?.(hostname, lookupOptions, (error) => callback(error, [toAnswer('127.0.0.1')])),
    });

  test('a connection to another address is closed before anything is sent', async () => {
    const received: Buffer[] = [];
    let closed: () => void;
    const gone = new Promise<void>((resolve) => (closed = resolve));
    const port = await receivers.raw((socket) => {
      socket.on('data', (bytes) => received.push(bytes)).on('close', () => closed());
    });
    const sender = receivers.sender({ allowPrivateHosts: false, lookup: answers(PUBLIC), openSocket: toLoopback });
    for (const scheme of ['http', 'https']) {
      const outcome = await sender.send(notification(`${scheme}://receiver.test:${port}/`));
      expect(outcome).toMatchObject({ kind: 'blocked', phase: 'connect', address: '127.0.0.1' });
    }
    await gone;
    expect(received).toEqual([]);
  });

  test('a public address is used', async () => {
    const port = await receivers.http((_request, response) => response.end());
    const openSocket = (options: TcpNetConnectOpts): Socket =>
      Object.defineProperty(toLoopback(options), 'remoteAddress', { value: PUBLIC });
    const sender = receivers.sender({ allowPrivateHosts: false, lookup: answers(PUBLIC), openSocket });
    const outcome = await sender.send(notification(`http://receiver.test:${port}/`));
    expect(outcome).toMatchObject({ kind: 'delivered', address: PUBLIC });
  });
});

describe('a name without an address', () => {
  const fromDns = (lookup: HostLookup, timeoutMs = 20_000): ReturnType<ReturnType<Receivers['sender']>['send']> =>
    receivers.sender({ lookup, timeoutMs }).send(notification('http://receiver.test:8080/'));
  const failing = (code: string) => (): Promise<never> => Promise.reject(Object.assign(new Error(code), { code }));

  test.each([
    ['that does not exist', failing('ENOTFOUND'), 'host not found'],
    ['that has no address', answers(), 'host not found'],
    ['whose DNS servers fail', failing('EAI_AGAIN'), 'host name could not be resolved'],
    ['with an invalid DNS answer', failing('ESERVFAIL'), 'host name could not be resolved'],
  ])('%s is unreachable', async (_name, lookup, reason) => {
    expect(await fromDns(lookup)).toMatchObject({ kind: 'unreachable', phase: 'dns', address: null, reason });
  });

  test('a name that is too long for DNS is not found by the real resolver', async () => {
    const outcome = await receivers.sender().send(notification(`http://${'a'.repeat(64)}.invalid/`));
    expect(outcome).toMatchObject({ kind: 'unreachable', phase: 'dns', reason: 'host not found', address: null });
  });

  test('DNS that does not answer times out in that phase', async () => {
    expect(await fromDns(() => new Promise(() => undefined), 300)).toMatchObject({ kind: 'timed-out', phase: 'dns' });
  });

  test('DNS that answers after the deadline opens no connection', async () => {
    const { port, connections } = await countingReceiver();
    let answer: (addresses: LookupAddress[]) => void = () => undefined;
    const lookup = (): Promise<LookupAddress[]> => new Promise((resolve) => (answer = resolve));
    const sender = receivers.sender({ lookup, timeoutMs: 300 });
    await sender.send(notification(`http://receiver.test:${port}/`));
    answer([toAnswer('127.0.0.1')]);
    await receivers.sender().send(notification(`http://127.0.0.1:${port}/`));
    expect(connections()).toBe(1);
  });
});

describe('connecting', () => {
  test('a receiver that does not accept times out in that phase, and its socket is destroyed', async () => {
    const mute = new Socket();
    const sender = receivers.sender({ timeoutMs: 300, openSocket: () => mute });
    expect(await sender.send(notification('http://127.0.0.1:8080/'))).toMatchObject({
      kind: 'timed-out',
      phase: 'connect',
    });
    expect(mute.destroyed).toBe(true);
  });

  test('the next address is tried when the first one refuses', async () => {
    const port = await receivers.http((_request, response) => response.end());
    const sender = receivers.sender({ lookup: answers('127.0.0.2', '127.0.0.1') });
    const outcome = await sender.send(notification(`http://receiver.test:${port}/`));
    expect(outcome).toMatchObject({ kind: 'delivered', address: '127.0.0.1' });
  });

  test('when all addresses refuse, the reason is still short', async () => {
    const sender = receivers.sender({ lookup: answers('127.0.0.2', '127.0.0.3') });
    const outcome = await sender.send(notification(`http://receiver.test:${await receivers.closedPort()}/`));
    expect(outcome).toMatchObject({
      kind: 'unreachable',
      phase: 'connect',
      reason: 'connection refused',
      address: '127.0.0.3',
    });
  });

  test('running out of file descriptors is thrown and does not count as an attempt', async () => {
    const openSocket = (): Socket => {
      throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    };
    await expect(receivers.sender({ openSocket }).send(notification('http://127.0.0.1:8080/'))).rejects.toThrow(
      'open files',
    );
  });
});
