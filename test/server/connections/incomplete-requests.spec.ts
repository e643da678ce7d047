import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Server } from 'node:http';
import { beforeAll, expect, test } from '@jest/globals';
import { auditLines, captureLog, exchange, firstAnswer } from '../../auth/tokens/support.js';
import { eventually } from '../../support/eventually.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.shared();
  client = await usher.client();
});

const HEAD = ['Host: localhost', 'Content-Type: application/json', 'Content-Length: 1000'];

/** Sends the head of a request and the beginning of its body. */
async function upload(path: string, authorization: string): Promise<Socket> {
  const { hostname, port } = new URL(usher.running.url);
  const socket = connect({ host: hostname, port: Number(port) });
  const lines = [`POST ${path} HTTP/1.1`, ...HEAD, `Authorization: ${authorization}`, '', '{"grant_type":'];
  await new Promise<void>((sent) => socket.write(lines.join('\r\n'), () => sent()));
  return socket;
}

test('an upload that its client aborts is refused with a 4xx, and the log has no error of it', async () => {
  const log = captureLog(usher);
  const arrived = once(usher.running.app.getHttpServer() as Server, 'request');
  const socket = await upload('/auth/token', client.basic);
  await arrived;
  socket.resetAndDestroy();
  const refusal = () => auditLines(log).find(({ event }) => event === 'token.refused');
  expect(await eventually('it is refused', refusal)).toMatchObject({ client: client.id, error: 'invalid_request' });
  expect(JSON.stringify(log)).not.toContain('aborted');
});

test('a request whose head or body does not arrive is answered 408 after about 30 s', async () => {
  const server = usher.running.app.getHttpServer() as Server & { connectionsCheckingInterval: number };
  const { headersTimeout, requestTimeout, connectionsCheckingInterval } = server;
  expect({ headersTimeout, requestTimeout }).toEqual({ headersTimeout: 30_000, requestTimeout: 30_000 });
  expect(connectionsCheckingInterval).toBeLessThanOrEqual(1_000);
  server.headersTimeout = server.requestTimeout = 100;
  const head = 'POST /auth/token HTTP/1.1\r\nHost: localhost\r\n';
  const whole = ['POST /auth/token HTTP/1.1', ...HEAD, `Authorization: ${client.basic}`, '', '{'].join('\r\n');
  const answers = await Promise.all([head, whole].map((text) => exchange(usher.running.url, text)));
  Object.assign(server, { headersTimeout, requestTimeout });
  expect(answers.map((text) => firstAnswer(text).status)).toEqual([408, 408]);
});
