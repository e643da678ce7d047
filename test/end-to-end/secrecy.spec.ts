import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getDataSourceToken } from '@nestjs/typeorm';
import type { Queue } from 'bullmq';
import type { DataSource } from 'typeorm';
import { CommandModule } from '../../src/cli/services.js';
import { PURGE_QUEUE } from '../../src/retention/purge.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { WEBHOOK_QUEUE } from '../../src/webhooks/queue/delivery.queue.js';
import { RETRY_RUN_QUEUE } from '../../src/webhooks/queue/retry-run.js';
import { createBackend, type Settings } from '../support/backend.js';
import { startServer, type ServerProcess, usher as run, usherJson } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, SHORT_TIMES } from '../support/usher.js';

type Json = Record<string, unknown>;

/** Values that must not appear anywhere. */
const hidden: string[] = [];
/** The logs of the server and the commands. */
let log = '';

async function post(url: string, authorization: string, body: object): Promise<Json> {
  const headers = { authorization, 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await response.json()) as Json;
}

/** Runs a command and keeps its log. Only its output may show a secret. */
async function command(settings: Settings, ...args: string[]): Promise<Json> {
  const { code, stdout, stderr } = await run(settings, [...args, '--json']);
  if (code !== 0) throw new Error(stderr);
  log += stderr;
  return JSON.parse(stdout) as Json;
}

async function main(settings: Settings, server: ServerProcess, receiver: TestReceiver): Promise<void> {
  const created = await command(settings, 'client', 'create', '--name', 'Secrecy', '--notify-url', receiver.url);
  const [id, secret] = [String(created.client_id), String(created.client_secret)];
  const tokens = await post(`${server.url}/auth/token`, basic(id, secret), { grant_type: 'client_credentials' });
  hidden.push(secret, String(tokens.access_token), String(tokens.refresh_token));
  const rotated = String((await command(settings, 'client', 'rotate-secret', id)).client_secret);
  hidden.push(rotated);
  await sendBadRequests(server, id, secret, tokens);
  const refresh = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token };
  const refreshed = await post(`${server.url}/auth/refresh`, basic(id, rotated), refresh);
  hidden.push(String(refreshed.access_token));
  receiver.behaviour = (response, arrival, nth) => answer(nth === 1 ? 500 : 200)(response, arrival, nth);
  const bearer = `Bearer ${String(refreshed.access_token)}`;
  const { key } = await post(`${server.url}/movie-orders`, bearer, NEW_ORDER);
  await post(`${server.url}/sandbox/movie-orders/${String(key)}/complete`, bearer, COMPLETION);
  await receiver.waitFor(String(key), 2);
  await command(settings, 'client', 'finish-rotation', id);
  await command(settings, 'client', 'disable', id);
  await command(settings, 'keys', 'rotate');
}

/** Sends requests that are refused, because errors are logged too. */
async function sendBadRequests(server: ServerProcess, id: string, secret: string, tokens: Json): Promise<void> {
  const wrong = `${secret}-wrong`;
  hidden.push(wrong);
  await post(`${server.url}/auth/token`, basic(id, wrong), { grant_type: 'client_credentials' });
  await post(`${server.url}/auth/token`, basic(id, secret), { client_secret: secret });
  await post(`${server.url}/auth/refresh`, basic(id, secret), {
    grant_type: 'refresh_token',
    refresh_token: tokens.access_token,
  });
  await post(`${server.url}/movie-orders`, `Bearer ${String(tokens.refresh_token)}`, {});
}

async function dump(app: INestApplicationContext): Promise<{ tables: string[]; text: string }> {
  const dataSource = app.get<DataSource>(getDataSourceToken('usher'));
  const found = await dataSource.query<{ name: string }[]>(
    dataSource.options.type === 'postgres'
      ? `SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) AS name FROM information_schema.tables
         WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`
      : 'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
  );
  const tables = found.map(({ name }) => name);
  const rows = await Promise.all(tables.map((name) => dataSource.query<unknown>(`SELECT * FROM ${name}`)));
  return { tables, text: JSON.stringify(rows) };
}

async function jobs(app: INestApplicationContext): Promise<string> {
  const queues = [WEBHOOK_QUEUE, RETRY_RUN_QUEUE, PURGE_QUEUE].map((name) =>
    app.get<Queue>(getQueueToken(name), { strict: false }),
  );
  const found = await Promise.all(queues.map((queue) => queue.getJobs()));
  return JSON.stringify(found.flat().map((job) => job.asJSON()));
}

test('no secret, token or master key is in plain text in the database, the queue or a log', async () => {
  const { settings: fresh, drop } = await createBackend();
  const masterKey = randomBytes(32).toString('base64');
  const settings = { ...fresh, ...SHORT_TIMES, USHER_MASTER_KEYS: `main:${masterKey}`, LOG_LEVEL: 'trace' };
  hidden.push(masterKey, Buffer.from(masterKey, 'base64').toString('hex'));
  await usherJson(settings, ['client', 'create', '--name', 'First']);
  const receiver = await TestReceiver.start();
  const server = await startServer(settings);
  const app = await NestFactory.createApplicationContext(
    CommandModule.forConfig(loadConfig({ ...settings, LOG_LEVEL: 'silent' }), 'with-queue'),
    { logger: false },
  );
  try {
    await main(settings, server, receiver);
    const { tables, text } = await dump(app);
    const jobsText = await jobs(app);
    log += server.stdout + server.stderr;
    expect(tables.filter((name) => name.includes('usher_')).length).toBeGreaterThanOrEqual(7);
    expect(jobsText).toContain('"deliver"');
    for (const event of [
      'client.created',
      'secret.rotated',
      'secret.rotation-finished',
      'client.disabled',
      'keys.rotated',
    ])
      expect(log).toContain(`"event":"${event}"`);
    const sources = { database: text, queue: jobsText, log };
    for (const [source, all] of Object.entries(sources)) {
      const shown = hidden
        .flatMap((one) => [one, Buffer.from(one).toString('base64')])
        .filter((one) => all.includes(one));
      expect({ source, shown }).toEqual({ source, shown: [] });
    }
  } finally {
    await app.close();
    await server.end();
    receiver.close();
    await drop();
  }
});
