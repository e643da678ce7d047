import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.js';
import { type TestClient, TestUsher } from '../../support/usher.js';
import { insertFailed, references } from '../../webhooks/undelivered/support.js';

let usher: TestUsher;
let client: TestClient;
let server: Server;
beforeAll(async () => {
  usher = await TestUsher.start();
  client = await usher.client();
  server = usher.running.app.getHttpServer() as Server;
});
afterEach(() => {
  server.timeout = 30_000;
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => usher.stop());

const sockets: Socket[] = [];

async function open(): Promise<[client: Socket, server: Socket]> {
  const { hostname, port } = new URL(usher.running.url);
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const socket = connect({ host: hostname, port: Number(port) });
  sockets.push(socket);
  socket.on('error', () => undefined);
  return [socket, (await accepted)[0]];
}

const request = (path: string, ...headers: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');

test('a connection whose client accepts no byte for 30 s is ended, NDJSON streams included', async () => {
  expect(server.timeout).toBe(30_000);
  await insertFailed(client, references('large', 200), 1, { body: JSON.stringify({ pad: 'x'.repeat(100_000) }) });
  const { access_token: token } = (await client.token()).body;
  server.timeout = 200;
  const connections = await Promise.all([open(), open()]);
  const [[files], [stream]] = connections;
  files.write(request('/docs/viewer.js').repeat(4));
  const headers = `Authorization: Bearer ${String(token)}\r\nAccept: application/x-ndjson`;
  stream.write(request('/webhooks/undelivered', headers));
  await Promise.all(connections.map(([, socket]) => once(socket, 'close')));
});

test('a request that runs for longer than that is answered, and an idle connection ends after its keep-alive time', async () => {
  const [socket, accepted] = await open();
  server.once('request', () => accepted.emit('timeout'));
  socket.write(request('/health/live'));
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /);
  await eventually('it is idle', () => accepted.timeout !== server.timeout);
  accepted.emit('timeout');
  expect(accepted.destroyed).toBe(true);
});
