import { cpus, freemem, hostname, loadavg, totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { Inject, Injectable } from '@nestjs/common';
import { type ListedProcess, ProcessList } from '../../../clients/keys/processes.js';
import { type Html, html } from '../../../http/html.js';
import { VERSION } from '../../../values/version.js';
import { Backlog } from '../../health/backlog.js';
import { type Answers, answersOf } from '../../health/cached-query.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';
import { locationsOf } from '../../startup-banner.js';
import { shownMs } from '../figures/figures.js';
import type { Page, View, Visit } from '../../../http/pages/site.js';
import {
  type Columns,
  duration,
  emptyState,
  facts,
  notice,
  statusBadge,
  table,
  time,
} from '../../../http/pages/parts.js';
import { bad, type Problem, problemNotice, problemsOf, queueTable, type State, warning } from '../overview/problems.js';
import { type Checked, HealthData } from './health-data.js';

/** What the page on health knows. Null: no answer in time. */
type HealthState = State & Answers<HealthData['queries']> & { ownId: string };

/** Versions, servers, processes and settings. It works while the database or the queue is down. */
@Injectable()
export class HealthPages {
  constructor(
    private readonly data: HealthData,
    private readonly backlog: Backlog,
    private readonly list: ProcessList,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {}

  readonly pages: Page[] = [{ path: '/ops/health', show: (visit) => this.show(visit) }];

  private async show({ request }: Visit): Promise<View> {
    const state = await answersOf({ ...this.data.queries, ...this.backlog.queries });
    const body = healthPage({ ...state, request, ownId: this.list.id }, this.config);
    return { title: 'Health', section: 'health', body, isLive: true };
  }
}

function healthPage(state: HealthState, config: Config): Html {
  const { database, queue, processes } = state;
  const faults = faultsOf(state);
  const locations = locationsOf(config);
  const atDatabase = locations.queue === 'embedded' || locations.queue === locations.database;
  return html`${faults.length > 0 ? faults.map(problemNotice) : notice('good', 'No fault is known.')}
    <div class="columns">
      <section class="card">
        <h2>Versions</h2>
        ${facts({
          Usher: VERSION,
          'Node.js': process.version,
          Database: database?.answer ? database.answer.version?.split(' on ')[0] : 'not known: it does not answer',
          Redis: queue?.answer?.version,
        })}
      </section>
      <section class="card">
        <h2>Database</h2>
        ${facts({
          Address: locations.database,
          ...stateFacts(database),
          Migrations: database?.answer && shownMigrations(database.answer.migrations),
          'Connections of this process': `at most ${config.databasePool}`,
          'Free disk space': state.freeDisk === null ? null : shownSize(state.freeDisk),
        })}
      </section>
      <section class="card">
        <h2>Queue</h2>
        ${facts({
          Address: atDatabase ? 'in the database' : locations.queue,
          ...stateFacts(queue),
          'Workers connected': processes?.connectedWorkers,
        })}
      </section>
      ${machineCard(state)}
    </div>
    <h2>Queues</h2>
    ${state.queues ? queueTable(state.queues) : emptyState('The queue does not answer, so its jobs are not known.')}
    <h2>Processes</h2>
    ${processTable(state)}
    <h2>Settings of this process</h2>
    ${settingsTable(config, locations)}`;
}

const stateFacts = (server: Checked<{ answerMs: number }> | null) =>
  server?.answer
    ? { State: statusBadge('up'), 'Answers in': shownMs(server.answer.answerMs) }
    : { State: html`${statusBadge('down')} ${server?.reason ?? 'no answer in time'}` };

function shownMigrations({ done, missing }: { done: string[]; missing: string[] }): Html {
  if (missing.length === 0) return html`${done.length} of ${done.length} done`;
  return html`${statusBadge('missing', 'bad')} ${missing.join(', ')}`;
}

function machineCard({ database }: HealthState): Html {
  const { heap_size_limit, used_heap_size } = getHeapStatistics();
  const [load = 0] = loadavg();
  return html`<section class="card">
    <h2>This process</h2>
    ${facts({
      Machine: `${hostname()}, process ${process.pid}`,
      'Runs for': duration(process.uptime() * 1_000),
      Clock: database?.answer && shownClock(database.answer.clockAheadMs),
      Memory: `${shownSize(process.memoryUsage.rss())}; heap ${shownSize(used_heap_size)} of ${shownSize(heap_size_limit)}`,
      'Memory of the machine': `${shownSize(freemem())} free of ${shownSize(totalmem())}`,
      Load: `${load.toFixed(2)} on ${cpus().length} processor(s)`,
    })}
  </section>`;
}

function processTable({ processes, ownId }: HealthState): Html {
  if (processes === null) return emptyState('The database does not answer, so the other processes are not known.');
  const columns: Columns<ListedProcess> = {
    Process: ({ id, name }) => html`${name} ${id === ownId && html`<span class="dim">(this one)</span>`}`,
    State: ({ isAlive }) => (isAlive ? statusBadge('up') : statusBadge('silent', 'warning')),
    Role: ({ role }) => role,
    Version: ({ version }) => version,
    Started: ({ startedAt }) => time(startedAt),
    Seen: ({ seenAt }) => time(seenAt),
    Clock: ({ clockAheadMs }) => shownClock(clockAheadMs),
    'Master keys': ({ keyIds }) => keyIds?.join(', ') ?? 'not known',
  };
  return html`${table(columns, processes.processes, 'No process has written its row yet.')}
    <p class="dim">
      Each process of the server, and of an application that embeds Usher, writes its row once a minute. A silent one
      stopped without a word, or does not reach the database.
    </p>`;
}

/** The settings of this process, except its secrets. */
function settingsTable(config: Config, { unencrypted, webhookProxy }: ReturnType<typeof locationsOf>): Html {
  const { texts, queuePrefix, contactMessages, unsafeDefaults } = config;
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

/** Signatures carry the database's time, but the log and the queue use this process's. A clock that drifts does not stop there. */
const MAX_CLOCK_MS = 5_000;
const MIN_FREE_DISK = 1_000_000_000;

/** What is wrong, the worst first, and what to do about it. */
function faultsOf(state: HealthState): Problem[] {
  const processes = state.processes?.processes ?? [];
  const alive = processes.filter(({ isAlive }) => isAlive);
  const silent = processes.filter(({ isAlive }) => !isAlive);
  return [
    ...problemsOf(state),
    missingMigrations(state),
    diskFull(state),
    ...wrongClocks(state, alive),
    severalVersions(alive),
    silent.length > 0 && silentProcesses(silent),
  ].filter((fault) => !!fault);
}

function missingMigrations({ database }: HealthState): Problem | null {
  const { missing = [] } = database?.answer?.migrations ?? {};
  if (missing.length === 0) return null;
  return bad(html`Migrations are missing: ${missing.join(', ')}.`, html`Run <code>usher migrate</code>.`);
}

function diskFull({ freeDisk }: HealthState): Problem | null {
  if (freeDisk === null || freeDisk >= MIN_FREE_DISK) return null;
  return warning(
    html`Only ${shownSize(freeDisk)} of disk space are free where the embedded database is.`,
    html`Make room before it is full: the database then accepts nothing.`,
  );
}

function wrongClocks({ database, ownId }: HealthState, alive: ListedProcess[]): Problem[] {
  const own = database?.answer ? [{ ...database.answer, name: 'This process' }] : [];
  return [...own, ...alive.filter(({ id }) => id !== ownId)]
    .filter(({ clockAheadMs }) => Math.abs(clockAheadMs) > MAX_CLOCK_MS)
    .map(({ name, clockAheadMs }) =>
      warning(
        html`The clock of ${name} is ${shownClock(clockAheadMs)}.`,
        html`The log and the queue use this clock. Signatures carry the time of the database, and receivers refuse wrong
        ones. Synchronise the clocks of both machines, for example with NTP.`,
      ),
    );
}

function severalVersions(alive: ListedProcess[]): Problem | null {
  const versions = new Set(alive.map(({ version }) => version));
  if (versions.size < 2) return null;
  return warning(
    html`Processes of different versions run: ${[...versions].sort().join(', ')}.`,
    html`Finish the upgrade: restart those of the older version.`,
  );
}

const silentProcesses = (silent: ListedProcess[]): Problem =>
  warning(
    html`${silent.length} process(es) stopped within the last hour without a word:
    ${silent.map(({ name }) => name).join(', ')}.`,
    html`A killed process looks like this. Nothing is lost; read the end of its log if nobody stopped it.`,
  );

/** How far a clock is from that of the database. */
function shownClock(aheadMs: number): string {
  if (Math.abs(aheadMs) < 100) return 'as the database’s';
  return `${Math.abs(aheadMs / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the database’s`;
}

const shownSize = (bytes: number): string =>
  bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
