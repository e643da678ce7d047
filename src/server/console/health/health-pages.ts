import { statfs } from 'node:fs/promises';
import { availableParallelism, freemem, hostname, loadavg, totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { Cluster, Redis } from 'ioredis';
import type { DataSource } from 'typeorm';
import { ProcessList } from '../../../clients/keys/processes.js';
import { pendingMigrations, usherMigrations } from '../../../database/migrator.js';
import { html } from '../../../http/html.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../../queue/queue-connections.js';
import { withTimeout } from '../../../values/duration.js';
import { VERSION } from '../../../values/version.js';
import { Backlog } from '../../health/backlog.js';
import { type Answers, answersOf, CachedQuery } from '../../health/cached-query.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';
import { locationsOf } from '../../startup-banner.js';
import { shownMs } from '../figures/figures.js';
import { pagesWith } from '../../../http/pages/site.js';
import { duration, emptyState, facts, notice, statusBadge, table } from '../../../http/pages/parts.js';
import { bad, problemsOf, queueTable, type State, warning } from '../overview/problems.js';

/** Below the time after which a {@link CachedQuery} gives up, so that the page has the reason. */
const ANSWER_MS = 1_500;

/** What the page on health knows. Null: no answer in time. */
type HealthState = State & Answers<ReturnType<typeof queriesOf>> & { ownId: string };

/** Versions, servers, processes and settings. Its queries end in time, so it works while the database or the queue is down. */
export const healthPages = pagesWith([Backlog, ProcessList], (backlog, list, { app, dataSource }) => {
  const config = app.get<Config>(SERVER_CONFIG);
  const queries = { ...queriesOf(dataSource, app.get(QUEUE_CONNECTIONS), config), ...backlog.queries };
  return [
    {
      path: '/ops/health',
      show: async ({ request }) => {
        const state = { ...(await answersOf(queries)), request, ownId: list.id };
        return { title: 'Health', body: healthPage(state, config), isLive: true };
      },
    },
  ];
});

function queriesOf(dataSource: DataSource, connections: QueueConnections, { database }: Config) {
  return {
    database: answering(
      () => dataSource.query<[{ version: string }]>('SELECT VERSION() AS version'),
      async ([{ version }]) => ({ version, missingMigrations: await pendingMigrations(dataSource) }),
    ),
    queue: answering(
      () => connections.probe(),
      async () => ({ version: await redisVersion(connections) }),
    ),
    /** Free bytes where an embedded database is; null elsewhere. */
    freeDisk: new CachedQuery(async () => {
      if (database.kind !== 'embedded') return null;
      const { bavail, bsize } = await statfs(database.folder);
      return bavail * bsize;
    }),
  };
}

/** Null if the queue is not on Redis. */
async function redisVersion({ redis, producer }: QueueConnections) {
  if (redis === null) return null;
  // A provider may forbid INFO.
  const info = await (producer as Redis | Cluster).info('server').catch(() => '');
  return /redis_version:(\S+)/.exec(info)?.[1] ?? 'unknown';
}

/** How long a server takes to answer and what `read` gets from it, or the reason why it does not answer. */
const answering = <Answer, Known>(ask: () => Promise<Answer>, read: (answer: Answer) => Promise<Known>) =>
  new CachedQuery(async () => {
    const startedAt = performance.now();
    const known = async () => {
      const answer = await ask();
      const answerMs = performance.now() - startedAt;
      return { ...(await read(answer)), answerMs };
    };
    try {
      return { answer: await withTimeout(known(), ANSWER_MS) };
    } catch (error) {
      const { message, code } = error as Error & { code?: string };
      // The error of a connection to several addresses has a code only.
      return { reason: message || (code ?? 'it does not answer') };
    }
  });

function healthPage(state: HealthState, config: Config) {
  const { database, queue, queues, isQueueUp, clock, processes, freeDisk } = state;
  const faults = faultsOf(state);
  const missing = database?.answer?.missingMigrations;
  const locations = locationsOf(config);
  const { heap_size_limit, used_heap_size } = getHeapStatistics();
  return html`${faults.length > 0 ? faults : notice('good', 'No fault is known.')}
    <div class="columns">
      <section class="card">
        <h2>Versions</h2>
        ${facts({
          Usher: VERSION,
          'Node.js': process.version,
          Database: database?.answer ? database.answer.version.split(' on ')[0] : 'not known: it does not answer',
          Redis: queue?.answer?.version,
        })}
      </section>
      <section class="card">
        <h2>Database</h2>
        ${facts({
          Address: locations.database,
          ...stateFacts(database),
          Migrations: missing && `${usherMigrations.length - missing.length} of ${usherMigrations.length} done`,
          'Connections of this process': `at most ${config.databasePool}`,
          'Free disk space': freeDisk === null ? null : shownSize(freeDisk),
        })}
      </section>
      <section class="card">
        <h2>Queue</h2>
        ${facts({
          Address: ['embedded', locations.database].includes(locations.queue) ? 'in the database' : locations.queue,
          ...stateFacts(queue),
          'Workers connected': processes?.connectedWorkers,
        })}
      </section>
      <section class="card">
        <h2>This process</h2>
        ${facts({
          Machine: `${hostname()}, process ${process.pid}`,
          'Runs for': duration(process.uptime() * 1_000),
          Clock: clock && shownClock(clock.clockAheadMs),
          Memory: `${shownSize(process.memoryUsage.rss())}; heap ${shownSize(used_heap_size)} of ${shownSize(heap_size_limit)}`,
          'Memory of the machine': `${shownSize(freemem())} free of ${shownSize(totalmem())}`,
          Load: `${loadavg()[0]?.toFixed(2)} on ${availableParallelism()} processor(s)`,
        })}
      </section>
    </div>
    <h2>Queues</h2>
    ${queueTable(queues, isQueueUp)}
    <h2>Processes</h2>
    ${processTable(state)}
    <details>
      <summary>Settings of this process, without its secrets</summary>
      ${settingsTable(config)}
    </details>`;
}

const stateFacts = (server: HealthState['database'] | HealthState['queue']) =>
  server?.answer
    ? { State: statusBadge('up'), 'Answers in': shownMs(server.answer.answerMs) }
    : { State: html`${statusBadge('down')} ${server?.reason ?? 'no answer in time'}` };

function processTable({ processes, ownId }: HealthState) {
  if (processes === null) return emptyState('The database does not answer, so the other processes are not known.');
  return html`${table(
      {
        Process: ({ id, name }) => html`${name} ${id === ownId && html`<span class="dim">(this one)</span>`}`,
        State: ({ isAlive }) => (isAlive ? statusBadge('up') : statusBadge('silent', 'warning')),
        Role: 'role',
        Version: 'version',
        Started: { time: 'startedAt' },
        Seen: { time: 'seenAt' },
        Clock: ({ clockAheadMs }) => shownClock(clockAheadMs),
        'Master keys': ({ keyIds }) => keyIds?.join(', ') ?? 'not known',
      },
      processes.processes,
      'No process has written its row yet.',
    )}
    <p class="dim">
      Each process of the server, and of an application that embeds Usher, writes its row once a minute. A silent
      process was killed, or cannot reach the database.
    </p>`;
}

function settingsTable(config: Config) {
  const { texts, queuePrefix, contactMessages, unsafeDefaults } = config;
  const { unencrypted, webhookProxy } = locationsOf(config);
  return facts({
    ...texts,
    QUEUE_PREFIX: queuePrefix,
    WEBHOOK_PROXY: webhookProxy ?? 'not set',
    'Messages to contacts': contactMessages && 'kind' in contactMessages ? contactMessages.kind : 'off',
    Tracing: config.tracing ? 'on' : 'off',
    'Not encrypted': unencrypted.length === 0 ? 'nothing' : `the connection to the ${unencrypted.join(' and the ')}`,
    'For local use only': unsafeDefaults.length === 0 ? null : unsafeDefaults.join(', '),
  });
}

/** Signatures carry the database's time, but the log and the queue use the process's. */
const MAX_CLOCK_MS = 5_000;
const MIN_FREE_DISK = 1_000_000_000;

function faultsOf(state: HealthState) {
  const { database, queue, due, isQueueUp, clock, freeDisk, ownId } = state;
  // What is cached may be older than the last answer of a server.
  const known = { ...state, due: database?.answer ? due : null, isQueueUp: queue?.answer ? isQueueUp : null };
  const processes = state.processes?.processes ?? [];
  const alive = processes.filter(({ isAlive }) => isAlive);
  const silent = processes.filter(({ isAlive }) => !isAlive);
  const encryptingKey = processes.find(({ id }) => id === ownId)?.keyIds?.[0];
  const lacking = alive.filter(({ keyIds }) => encryptingKey && keyIds && !keyIds.includes(encryptingKey));
  const versions = [...new Set(alive.map(({ version }) => version))].sort();
  const missing = database?.answer?.missingMigrations ?? [];
  const own = clock ? [{ ...clock, name: 'This process' }] : [];
  const wrongClocks = [...own, ...alive.filter(({ id }) => id !== ownId)].filter(
    ({ clockAheadMs }) => Math.abs(clockAheadMs) > MAX_CLOCK_MS,
  );
  return [
    ...problemsOf(known),
    missing.length > 0 &&
      bad(html`Migrations are missing: ${missing.join(', ')}.`, html`Run <code>usher migrate</code>.`),
    freeDisk !== null &&
      freeDisk < MIN_FREE_DISK &&
      warning(
        html`Only ${shownSize(freeDisk)} of disk space are free where the embedded database is.`,
        html`Free some space: on a full disk the database accepts no writes.`,
      ),
    ...wrongClocks.map(({ name, clockAheadMs }) =>
      warning(
        html`The clock of ${name} is ${shownClock(clockAheadMs)}.`,
        html`The log and the queue use this clock. Signatures carry the time of the database, and receivers refuse wrong
        ones. Synchronise the clocks of both machines, for example with NTP.`,
      ),
    ),
    lacking.length > 0 &&
      bad(
        html`Without master key ${encryptingKey}: ${lacking.map(({ name }) => name).join(', ')}.`,
        html`They cannot open what this process encrypts. Add the key to <code>USHER_MASTER_KEYS</code> of each, and
          restart it.`,
      ),
    versions.length > 1 &&
      warning(
        html`Processes of different versions run: ${versions.join(', ')}.`,
        html`Finish the upgrade: restart those of the older version.`,
      ),
    silent.length > 0 &&
      warning(
        html`${silent.length} process(es) fell silent within the last hour:
        ${silent.map(({ name }) => name).join(', ')}.`,
        html`Either they were killed, or they cannot reach the database. Nothing is lost. Read the end of their logs if
        nobody stopped them.`,
      ),
  ].filter((fault) => !!fault);
}

function shownClock(aheadMs: number) {
  if (Math.abs(aheadMs) < 100) return 'as the database’s';
  return `${Math.abs(aheadMs / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the database’s`;
}

const shownSize = (bytes: number) =>
  bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
