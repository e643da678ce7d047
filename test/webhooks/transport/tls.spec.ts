import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { DIAGNOSES } from '../../../src/webhooks/transport/diagnosis.js';
import { failureOf, type Outcome } from '../../../src/webhooks/transport/outcome.js';
import { Receivers, WAITED_OUT_MS, notification, selfSigned, type Certificate } from './receivers.js';

const receivers = new Receivers();
afterEach(() => receivers.close());

let good: Certificate;
let expired: Certificate;
beforeAll(() => {
  good = selfSigned(['receiver.test', '127.0.0.1']);
  expired = selfSigned(['receiver.test'], -1);
});

function post(
  port: number,
  options: Parameters<Receivers['sender']>[0] = {},
  host = 'receiver.test',
): Promise<Outcome> {
  const lookup = (): Promise<{ address: string; family: number }[]> =>
    Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
  return receivers.sender({ lookup, ...options }).send(notification(`https://${host}:${port}/`));
}

describe('http that is sent to a port with TLS is told to begin with https:', () => {
  const page = (text: string) => `HTTP/1.1 400 Bad Request\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
  test.each([
    ['Node, which closes the connection', () => receivers.https(good, () => undefined), 'connection-closed'],
    ['a TLS alert', () => receivers.answering(Buffer.from('15030100020246', 'hex')), 'https-needed'],
    [
      'nginx',
      () => receivers.answering(page('<center>The plain HTTP request was sent to HTTPS port</center>')),
      'https-needed',
    ],
    [
      'Apache',
      () => receivers.answering(page('You’re speaking plain HTTP to an SSL-enabled server port.')),
      'https-needed',
    ],
    ['Go', () => receivers.answering(page('Client sent an HTTP request to an HTTPS server.')), 'https-needed'],
  ] as const)('%s', async (_, start, code) => {
    const outcome = await receivers.sender().send(notification(`http://127.0.0.1:${await start()}/`));
    const diagnosis = failureOf(outcome)!.diagnosis;
    expect([diagnosis, DIAGNOSES[diagnosis].remedy]).toEqual([code, expect.stringContaining('with https')]);
  });
});

describe('a certificate', () => {
  const receiver = (certificate: Certificate): Promise<number> =>
    receivers.https(certificate, (_request, response) => response.end('ok'));

  test.each(['receiver.test', '127.0.0.1'])('that is trusted and valid for %s is accepted', async (host) => {
    const outcome = await post(await receiver(good), { certificateAuthorities: [good.cert] }, host);
    expect(outcome).toMatchObject({ kind: 'delivered', status: 200, address: '127.0.0.1', phase: 'body' });
  });

  test('that is self-signed is unreachable', async () => {
    const reason = 'certificate is self-signed';
    expect(await post(await receiver(good))).toMatchObject({ kind: 'unreachable', phase: 'tls', reason });
  });

  test('that has expired is unreachable', async () => {
    const outcome = await post(await receiver(expired), { certificateAuthorities: [expired.cert] });
    expect(outcome).toMatchObject({ kind: 'unreachable', phase: 'tls', reason: 'certificate has expired' });
  });

  test('for another host is unreachable', async () => {
    const outcome = await post(await receiver(good), { certificateAuthorities: [good.cert] }, 'other.test');
    expect(outcome).toMatchObject({ kind: 'unreachable', phase: 'tls', reason: 'certificate is for another host' });
  });

  test('is checked against the name in the URL, which is also sent as the server name', async () => {
    const asked: unknown[] = [];
    const port = await receivers.https(good, (request, response) => {
      asked.push((request.socket as TLSSocket & { servername: unknown }).servername);
      response.end();
    });
    await post(port, { certificateAuthorities: [good.cert] });
    expect(asked).toEqual(['receiver.test']);
  });

  test('of a name that ends with a dot is asked for without it (RFC 6066 §3); Host has the dot, as in the URL', async () => {
    const asked: unknown[] = [];
    const port = await receivers.https(good, (request, response) => {
      asked.push((request.socket as TLSSocket & { servername: unknown }).servername, request.headers.host);
      response.writeContinue();
      response.end();
    });
    const outcome = await post(port, { certificateAuthorities: [good.cert] }, 'receiver.test.');
    expect(outcome).toMatchObject({ kind: 'delivered', status: 200 });
    expect(asked).toEqual(['receiver.test', `receiver.test.:${port}`]);
  });
});

describe('a TLS handshake', () => {
  test('with a receiver that speaks plain HTTP fails', async () => {
    const port = await receivers.http((_request, response) => response.end());
    expect(await post(port)).toMatchObject({ kind: 'unreachable', phase: 'tls' });
  });

  test('with a receiver that speaks neither TLS nor HTTP fails', async () => {
    const port = await receivers.answering('SSH-2.0-OpenSSH_9.2p1\r\n');
    expect(await post(port)).toMatchObject({ kind: 'unreachable', phase: 'tls', reason: 'no TLS on this port' });
  });

  test.each([
    ['closes', (socket: Socket): unknown => socket.end()],
    ['resets', (socket: Socket): unknown => socket.resetAndDestroy()],
  ])('that the receiver %s is unreachable', async (_name, leave) => {
    const port = await receivers.raw((socket) => socket.once('data', () => leave(socket)));
    const reason = 'connection closed during the TLS handshake';
    expect(await post(port)).toMatchObject({ kind: 'unreachable', phase: 'tls', reason });
  });

  test('that the receiver never answers times out in that phase, and the connection is destroyed', async () => {
    let gone: () => void;
    const closed = new Promise<void>((resolve) => (gone = resolve));
    const port = await receivers.raw((socket) => socket.resume().on('close', () => gone()));
    expect(await post(port, { timeoutMs: WAITED_OUT_MS })).toMatchObject({
      kind: 'timed-out',
      phase: 'tls',
      address: '127.0.0.1',
    });
    await closed;
  });

  test.each([
    ['TLS 1.2', { ciphers: 'DHE-RSA-AES128-GCM-SHA256', dhparam: 'auto', maxVersion: 'TLSv1.2' }],
    ['TLS 1.3', { ecdhCurve: 'ffdhe8192', minVersion: 'TLSv1.3' }],
  ] as const)(
    'of %s never uses Diffie-Hellman over a finite field, whose cost the receiver chooses',
    async (_, options) => {
      const port = await receivers.https({ ...good, ...options }, (_request, response) => response.end());
      const outcome = await post(port, { certificateAuthorities: [good.cert] });
      expect(outcome).toMatchObject({ kind: 'unreachable', phase: 'tls', code: 'tls-failed' });
    },
  );

  test('is not repeated for the next notification', async () => {
    const sockets = new Set<unknown>();
    const port = await receivers.https(good, (request, response) => {
      sockets.add(request.socket);
      response.end();
    });
    const sender = receivers.sender({ certificateAuthorities: [good.cert] });
    for (let sent = 0; sent < 3; sent += 1) await sender.send(notification(`https://127.0.0.1:${port}/`));
    expect(sockets.size).toBe(1);
  });
});

test('a silent receiver over TLS times out waiting for headers', async () => {
  const port = await receivers.https(good, () => undefined);
  const outcome = await post(port, { certificateAuthorities: [good.cert], timeoutMs: WAITED_OUT_MS });
  expect(outcome).toMatchObject({ kind: 'timed-out', phase: 'headers' });
});
