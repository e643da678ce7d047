import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Agent, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { usherMigrations } from '../../src/database/migrator.js';
import { type Backend, BACKEND, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { CLI, newFolder, startServer, usher, usherJson, UsherProcess } from '../support/process.js';
import { TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER } from '../support/usher.js';

let backend: Backend;
let receiver: TestReceiver;
beforeAll(async () => {
  backend = await createBackend();
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  receiver.close();
  await backend.drop();
});

async function post(url: string, authorization: string, body: object): Promise<Record<string, string>> {
  const headers = { authorization, 'content-type': 'application/json' };
  return (await (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json()) as never;
}

/** Starts a server with one running delivery. Its receiver answers after `release`. */
async function serverWithDelivery() {
  let release: (() => void) | undefined;
  const requested = new Promise<void>((arrived) => {
    receiver.behaviour = (response: ServerResponse) => {
      release = () => void response.writeHead(200).end();
      arrived();
    };
  });
  const made = await usher(backend.settings, [
    'client',
    'create',
    '--name',
    'A',
    '--notify-url',
    receiver.url,
    '--json',
  ]);
  const { client_id, client_secret } = JSON.parse(made.stdout) as Record<string, string>;
  const server = await startServer(backend.settings);
  const grant = { grant_type: 'client_credentials' };
  const { access_token } = await post(`${server.url}/auth/token`, basic(client_id!, client_secret!), grant);
  const { key = '' } = await post(`${server.url}/movie-orders`, `Bearer ${access_token}`, NEW_ORDER);
  await post(`${server.url}/sandbox/movie-orders/${key}/complete`, `Bearer ${access_token}`, COMPLETION);
  await requested;
  return { server, key, release: () => release?.() };
}

const statusOf = async (key: string): Promise<unknown> => {
  const { stdout } = await usher(backend.settings, ['webhook', 'list', '--reference', key, '--json']);
  return (JSON.parse(stdout) as { status: string; attemptCount: number }[]).map(({ status, attemptCount }) => [
    status,
    attemptCount,
  ]);
};

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s lets a running delivery finish and records it, then exits 0; meanwhile it is not ready',
  async (signal) => {
    const { server, key, release } = await serverWithDelivery();
    server.child.kill(signal);
    await server.printed(
      new RegExp(`${signal}: finishing running deliveries and requests; send it again to stop at once`),
    );
    expect(server.child.exitCode).toBeNull();
    const ready = await fetch(`${server.url}/health/ready`);
    expect([ready.status, ((await ready.json()) as { detail: string }).detail]).toEqual([
      503,
      'the process is shutting down',
    ]);
    release();
    expect((await server.ended).code).toBe(0);
    expect(await statusOf(key)).toEqual([['SUCCESS', 1]]);
  },
);

test('a second signal ends it at once with a non-zero exit code', async () => {
  const { server, key, release } = await serverWithDelivery();
  server.child.kill('SIGTERM');
  await server.printed(/finishing running deliveries/);
  server.child.kill('SIGTERM');
  expect((await server.ended).code).toBe(130);
  expect(await statusOf(key)).toEqual([['PENDING', 1]]);
  release();
});

test('a server whose log cannot be written answers, and ends as usual', async () => {
  const full = openSync('/dev/full', 'w');
  const env = { ...backend.settings, PORT: '0' };
  // With --json the log goes to standard error.
  const server = spawn(process.execPath, [CLI, 'serve', '--json'], { stdio: ['ignore', 'pipe', full], env });
  closeSync(full);
  const ended = once(server, 'close');
  const [banner] = (await Promise.race([once(server.stdout!, 'data'), ended])) as [Buffer];
  const { url } = JSON.parse(String(banner)) as { url: string };
  for (const _ of [1, 2]) expect((await fetch(`${url}/nothing`)).status).toBe(404);
  server.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

test('a server whose standard output cannot be written, from its first line on, answers, and ends as usual', async () => {
  const full = openSync('/dev/full', 'w');
  const PORT = String(await freePort());
  const env = { ...backend.settings, PORT };
  const server = spawn(process.execPath, [CLI, 'serve'], { stdio: ['ignore', full, full], env });
  closeSync(full);
  const ended = once(server, 'close');
  const isAnswered = async () => (await fetch(`http://127.0.0.1:${PORT}/health/live`)).ok;
  await eventually('it answers or ends', async () => server.exitCode !== null || (await isAnswered()));
  server.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

test('a running request is answered, and its response closes the connection', async () => {
  const client = await usherJson<Record<string, string>>(backend.settings, ['client', 'create', '--name', 'B']);
  const server = await startServer(backend.settings);
  const request = httpRequest(`${server.url}/auth/token`, { method: 'POST', agent: new Agent({ keepAlive: true }) });
  request.setHeader('authorization', basic(client.client_id!, client.client_secret!));
  request.setHeader('content-type', 'application/x-www-form-urlencoded');
  request.setHeader('content-length', 29);
  request.flushHeaders();
  await new Promise((sent) => request.write('grant_type=', sent));
  await eventually('the server reads it', async () => (await fetch(`${server.url}/health/live`)).ok);
  server.child.kill('SIGTERM');
  await server.printed(/finishing running deliveries/);
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  request.end('client_credentials');
  const [{ statusCode, headers }] = await answered;
  expect([statusCode, headers.connection]).toEqual([200, 'close']);
  expect((await server.ended).code).toBe(0);
});

test('a signal during the start ends the process without an error', async () => {
  const starting = new UsherProcess('main.js', [], { ...backend.settings, LOG_LEVEL: 'debug' });
  starting.child.stdout?.on(
    'data',
    (text: string) => /RoutesResolver/.test(text) && !starting.child.killed && starting.child.kill('SIGTERM'),
  );
  const { code, stderr } = await starting.ended;
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^usher: SIGTERM: [^\n]+\n$/)]);
});

test('SHUTDOWN_DELAY keeps the port open while not ready, so that a load balancer can remove the process', async () => {
  const server = await startServer({ ...backend.settings, SHUTDOWN_DELAY: '5s' });
  server.child.kill('SIGTERM');
  await server.printed(/finishing running deliveries/);
  expect((await fetch(`${server.url}/health/ready`)).status).toBe(503);
  expect((await fetch(`${server.url}/health/live`)).status).toBe(200);
  expect((await server.ended).code).toBe(0);
});

test('both ports stay open for SHUTDOWN_DELAY, not ready, and a running request at OPS_PORT is answered', async () => {
  const settings = { ...backend.settings, OPS_PORT: '0', SHUTDOWN_DELAY: '5s' };
  const server = await startServer(settings);
  const [, opsUrl = ''] = /dashboard at (http:\S+)\/ops\/queues/.exec(server.stdout) ?? [];
  const request = httpRequest(`${opsUrl}/internal/movie-orders/x/complete`, {
    method: 'POST',
    agent: new Agent({ keepAlive: true }),
  });
  for (const [name, value] of Object.entries({
    authorization: basic('internal', 'internal'),
    'content-type': 'application/json',
    'content-length': 2,
  }))
    request.setHeader(name, value);
  await new Promise((sent) => request.write('{', sent));
  await eventually('the server reads it', async () => (await fetch(`${opsUrl}/health/live`)).ok);
  server.child.kill('SIGTERM');
  await server.printed(/finishing running deliveries/);
  for (const url of [server.url, opsUrl]) expect((await fetch(`${url}/health/ready`)).status).toBe(503);
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  // The public port is closed by then, and the end of the body lets the other one close too.
  await eventually('new connections are refused', () =>
    fetch(`${opsUrl}/health/live`).then(
      () => false,
      () => true,
    ),
  );
  request.end('}');
  const [{ statusCode, headers }] = await answered;
  expect([statusCode, headers.connection]).toEqual([400, 'close']);
  expect((await server.ended).code).toBe(0);
});

describe('a first start', () => {
  if (BACKEND !== 'embedded') {
    test('on a database server creates no client', async () => {
      const own = await createBackend();
      const server = await startServer(own.settings);
      expect((await server.end()).stdout).not.toContain('client_secret');
      expect(JSON.parse((await usher(own.settings, ['client', 'list', '--json'])).stdout)).toEqual([]);
      await own.drop();
    });
    return;
  }

  test('creates a private folder and shows the first client’s secret; a second start does not', async () => {
    const folder = join(newFolder(), 'data');
    const settings = { DATABASE_URL: `embedded:${folder}` };
    const first = await startServer(settings);
    const [, id = '', secret = ''] = await first.printed(/client_id +(\w{20})\n +client_secret +(\w{43})\n/);
    const { token_type } = await post(`${first.url}/auth/token`, basic(id, secret), {
      grant_type: 'client_credentials',
    });
    expect(token_type).toBe('Bearer');
    const modes = await Promise.all(
      ['', 'master-key', '.s.PGSQL.5432'].map(async (name) => (await stat(join(folder, name))).mode & 0o777),
    );
    expect(modes.map((mode) => mode.toString(8))).toEqual(['700', '600', '600']);
    const { code, stdout: told } = await first.end();
    expect(code).toBe(0);
    const messages = told
      .split('\n')
      .flatMap((line) => /^\{.*"context":"database".*"msg":"(.*)"\}$/.exec(line)?.[1] ?? []);
    expect(messages).toEqual([
      `creating the embedded database in ${join(folder, 'postgres')}; this takes some seconds, once`,
      `creating the tables of Usher: ${usherMigrations.map(({ name }) => name).join(', ')}`,
      'the database is ready',
    ]);
    const second = await startServer(settings);
    const { stdout, stderr } = await second.end();
    expect(stdout).not.toContain('creating');
    expect(stdout + stderr).not.toContain('client_secret');
    expect(stdout + stderr).not.toContain(secret);
  });
});
