import { setTimeout as pause } from 'node:timers/promises';
import { request } from 'undici';
import { BACKENDS, type BackendName } from '../harness/backend.js';
import { median } from '../harness/measure.js';
import { progress } from '../harness/progress.js';
import type { Check, Effort, Line, Row } from '../harness/row.js';
import type { ServerProcess } from '../harness/server-process.js';
import { openServices } from '../usher/library.js';
import { addManyWebhooks, type ManyWebhooks } from '../usher/many-webhooks.js';
import { basic, BenchUsher } from '../usher/usher.js';

/** No page may take longer. */
const MOST_MS = 300;
/** Longer than a page uses the result of a query, so that every request asks the database. */
const FORGOTTEN_MS = 40_000;

/** Every page of the console that reads, by the name in the table. */
const PAGES: Record<string, (known: ManyWebhooks) => string> = {
  overview: () => '/ops',
  notifications: () => '/ops/notifications',
  'notifications that failed': () => '/ops/notifications?status=FAILED',
  'notifications of a client': ({ clientId }) => `/ops/notifications?client=${clientId}`,
  'notifications of a host that failed': ({ host }) => `/ops/notifications?status=FAILED&host=${host}`,
  'notifications with a reason': () => '/ops/notifications?status=FAILED&reason=receiver-failed',
  'a notification': ({ webhookId }) => `/ops/webhooks/${webhookId}`,
  'search for a name': () => '/ops/search?q=cinema',
  'receivers, 24 h': () => '/ops/receivers',
  'receivers, 7 d': () => '/ops/receivers?range=7d',
  'a receiver, 7 d': ({ host }) => `/ops/receivers/${host}?range=7d`,
  clients: () => '/ops/clients',
  'a client': ({ clientId }) => `/ops/clients/${clientId}`,
  members: () => '/ops/members',
  audit: () => '/ops/audit',
  'audit of a client': ({ clientId }) => `/ops/audit?subject=${encodeURIComponent(`client:${clientId}`)}`,
  health: () => '/ops/health',
  operators: () => '/ops/operators',
};

export const consolePages: Row = {
  name: 'console',
  title: 'milliseconds of the pages of the console, from the request to the last byte, with many webhooks',
  plotted: BACKENDS[0],
  async run(effort) {
    const size = effort.isQuick ? 20_000 : 1_000_000;
    const times: Record<string, Record<string, number[]>> = {};
    for (const backend of BACKENDS) {
      const timesOf = await measured(backend, size, effort);
      for (const [page, samples] of Object.entries(timesOf)) (times[page] ??= {})[backend] = samples;
    }
    const lines = Object.entries(times).map(([subject, byBackend]): Line => {
      const figures = Object.fromEntries(Object.entries(byBackend).map(([name, samples]) => [name, median(samples)]));
      return { subject, isReference: false, figures };
    });
    const checks = BACKENDS.map((backend): Check => {
      const slowest = Math.max(...lines.map(({ figures }) => figures[backend]!));
      const page = lines.find(({ figures }) => figures[backend] === slowest)!.subject;
      return { what: `${backend}, slowest page (${page}), ms`, value: slowest, target: { most: MOST_MS } };
    });
    return { lines, checks };
  },
};

async function measured(backend: BackendName, size: number, { isQuick }: Effort): Promise<Record<string, number[]>> {
  const usher = await BenchUsher.prepare(backend);
  const services = await openServices(usher.settings);
  const known = await addManyWebhooks(services.dataSource, size);
  await services.close();
  const server = await usher.start('api');
  const headers = { ...basic(usher.settings.OPS_USER!, usher.settings.OPS_PASSWORD!), accept: 'text/html' };
  const times: Record<string, number[]> = {};
  // The first round compiles the code and fills the memory of the database.
  for (let round = 0; round <= (isQuick ? 1 : 3); round += 1) {
    progress(`${backend}: round ${round}`);
    for (const [page, pathOf] of Object.entries(PAGES)) {
      const ms = await timeOf(server, pathOf(known), headers);
      if (round > 0) (times[page] ??= []).push(ms);
    }
    await pause(FORGOTTEN_MS);
  }
  await server.stop();
  return times;
}

async function timeOf(server: ServerProcess, path: string, headers: Record<string, string>): Promise<number> {
  const startedAt = performance.now();
  const { statusCode, body } = await request(server.url + path, { headers });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}: ${text.slice(0, 200)}`);
  return performance.now() - startedAt;
}
