import { cpus, freemem, hostname, loadavg, totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { type Html, html } from '../../../http/html.js';
import { VERSION } from '../../../values/version.js';
import type { Config } from '../../settings/settings.js';
import { bannerFields } from '../../startup-banner.js';
import { shownMs } from '../figures/numbers.js';
import { duration, emptyState, facts, notice, statusBadge, table, time } from '../frame/parts.js';
import { problemNotice, type Problem, type ShownQueue } from '../overview/problems.js';
import { type HealthState, shownClock, shownSize } from './health-faults.js';
import { settingsTable } from './settings-table.js';

export function healthPage(state: HealthState, faults: Problem[], config: Config): Html {
  const { database, queue, processes } = state;
  const locations = bannerFields(config, { url: '', firstClient: null, firstMember: null });
  const atDatabase = locations.queue === 'embedded' || locations.queue === locations.database;
  return html`${faults.length > 0 ? faults.map(problemNotice) : notice('good', 'No fault is known.')}
    <div class="columns">
      <section class="card">
        <h2>Versions</h2>
        ${facts([
          ['Usher', VERSION],
          ['Node.js', process.version],
          [
            'Database',
            database?.isUp ? (database.answer.version.split(' on ')[0] ?? '') : 'not known: it does not answer',
          ],
          ['Redis', queue?.isUp ? queue.answer.redisVersion : null],
        ])}
      </section>
      <section class="card">
        <h2>Database</h2>
        ${facts([
          ['Address', locations.database],
          [
            'State',
            database?.isUp
              ? statusBadge('up')
              : html`${statusBadge('down')} ${database?.reason ?? 'no answer in time'}`,
          ],
          ['Answers in', database?.isUp ? shownMs(database.answer.answerMs) : null],
          ['Migrations', database?.isUp ? shownMigrations(database.answer.migrations) : null],
          ['Connections of this process', `at most ${config.databasePool}`],
          ['Free disk space', state.freeDisk === null ? null : shownSize(state.freeDisk)],
        ])}
      </section>
      <section class="card">
        <h2>Queue</h2>
        ${facts([
          ['Address', atDatabase ? 'in the database' : locations.queue],
          [
            'State',
            queue?.isUp ? statusBadge('up') : html`${statusBadge('down')} ${queue?.reason ?? 'no answer in time'}`,
          ],
          ['Answers in', queue?.isUp ? shownMs(queue.answer.answerMs) : null],
          ['Workers connected', processes?.connectedWorkers ?? null],
        ])}
      </section>
      ${machineCard(state)}
    </div>
    <h2>Queues</h2>
    ${state.queues ? depths(state.queues) : emptyState('The queue does not answer, so its jobs are not known.')}
    <h2>Processes</h2>
    ${processTable(state)}
    <h2>Settings of this process</h2>
    ${settingsTable(config, locations)}`;
}

function shownMigrations({ done, missing }: { done: string[]; missing: string[] }): Html {
  if (missing.length === 0) return html`${done.length} of ${done.length} done`;
  return html`${statusBadge('missing', 'bad')} ${missing.join(', ')}`;
}

function machineCard({ database }: HealthState): Html {
  const { heap_size_limit, used_heap_size } = getHeapStatistics();
  const [load = 0] = loadavg();
  return html`<section class="card">
    <h2>This process</h2>
    ${facts([
      ['Machine', `${hostname()}, process ${process.pid}`],
      ['Runs for', duration(process.uptime() * 1_000)],
      ['Clock', database?.isUp ? shownClock(database.answer.clockAheadMs) : null],
      [
        'Memory',
        `${shownSize(process.memoryUsage.rss())}; heap ${shownSize(used_heap_size)} of ${shownSize(heap_size_limit)}`,
      ],
      ['Memory of the machine', `${shownSize(freemem())} free of ${shownSize(totalmem())}`],
      ['Load', `${load.toFixed(2)} on ${cpus().length} processor(s)`],
    ])}
  </section>`;
}

const PROCESS_COLUMNS = ['Process', 'State', 'Role', 'Version', 'Started', 'Seen', 'Clock'].map((name) => ({ name }));

function processTable({ processes, ownId }: HealthState): Html {
  if (processes === null) return emptyState('The database does not answer, so the other processes are not known.');
  const rows = processes.processes.map(({ id, name, role, version, startedAt, seenAt, clockAheadMs, isAlive }) => [
    html`${name} ${id === ownId ? html`<span class="dim">(this one)</span>` : null}`,
    isAlive ? statusBadge('up') : statusBadge('silent', 'warning'),
    html`${role}`,
    html`${version}`,
    time(startedAt),
    time(seenAt),
    html`${shownClock(clockAheadMs)}`,
  ]);
  return html`${rows.length === 0 ? emptyState('No process has written its row yet.') : table(PROCESS_COLUMNS, rows)}
    <p class="dim">
      Each process of the server writes its row once a minute. A silent one stopped without a word, or does not reach
      the database. Applications that embed Usher are not in this list.
    </p>`;
}

function depths(queues: ShownQueue[]): Html {
  const states = Object.keys(queues[0]?.jobs ?? {});
  const columns = [{ name: 'Queue' }, { name: 'State' }, ...states.map((name) => ({ name, isNumber: true }))];
  const rows = queues.map(({ queue, isPaused, limit, jobs }) => [
    html`<a href="/ops/queues/queue/${queue}">${queue}</a>`,
    isPaused
      ? statusBadge('paused')
      : limit === null
        ? statusBadge('up')
        : html`${statusBadge('limited', 'warning')} ${limit}`,
    ...states.map((state) => html`${jobs[state] ?? 0}`),
  ]);
  return table(columns, rows);
}
