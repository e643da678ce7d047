import { cpus, freemem, hostname, loadavg, totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { type Html, html } from '../../../http/html.js';
import { VERSION } from '../../../values/version.js';
import type { Config } from '../../settings/settings.js';
import { bannerFields } from '../../startup-banner.js';
import type { Processes } from '../../health/processes.js';
import { shownMs } from '../figures/numbers.js';
import { type Column, duration, emptyState, facts, notice, statusBadge, table, time } from '../frame/parts.js';
import { type Problem, problemNotice, queueTable } from '../overview/problems.js';
import { type HealthState, shownClock, shownSize } from './health-faults.js';

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
    ${state.queues ? queueTable(state.queues) : emptyState('The queue does not answer, so its jobs are not known.')}
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

function processTable({ processes, ownId }: HealthState): Html {
  if (processes === null) return emptyState('The database does not answer, so the other processes are not known.');
  const columns: Column<Processes['processes'][number]>[] = [
    {
      name: 'Process',
      cell: ({ id, name }) => html`${name} ${id === ownId ? html`<span class="dim">(this one)</span>` : null}`,
    },
    { name: 'State', cell: ({ isAlive }) => (isAlive ? statusBadge('up') : statusBadge('silent', 'warning')) },
    { name: 'Role', cell: ({ role }) => role },
    { name: 'Version', cell: ({ version }) => version },
    { name: 'Started', cell: ({ startedAt }) => time(startedAt) },
    { name: 'Seen', cell: ({ seenAt }) => time(seenAt) },
    { name: 'Clock', cell: ({ clockAheadMs }) => shownClock(clockAheadMs) },
  ];
  return html`${table(columns, processes.processes, 'No process has written its row yet.')}
    <p class="dim">
      Each process of the server writes its row once a minute. A silent one stopped without a word, or does not reach
      the database. Applications that embed Usher are not in this list.
    </p>`;
}

/** The settings of this process, except its secrets. */
function settingsTable(config: Config, { unencrypted, webhookProxy }: ReturnType<typeof bannerFields>): Html {
  const { texts, queuePrefix, contactMessages, unsafeDefaults } = config;
  return html`${facts([
    ...Object.entries({ ...texts, QUEUE_PREFIX: queuePrefix }),
    ['WEBHOOK_PROXY', webhookProxy ?? 'not set'],
    ['Messages to contacts', contactMessages && 'kind' in contactMessages ? contactMessages.kind : 'off'],
    ['Tracing', config.tracing ? 'on' : 'off'],
    ['Not encrypted', unencrypted.length === 0 ? 'nothing' : `the connection to the ${unencrypted.join(' and the ')}`],
    ['For local use only', unsafeDefaults.length === 0 ? null : unsafeDefaults.join(', ')],
  ])}`;
}
