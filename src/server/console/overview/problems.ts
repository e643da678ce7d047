import { type Html, html } from '../../../http/html.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import type { Due, QueueDepth } from '../../health/backlog.js';
import { type Processes, workersOf } from '../../health/processes.js';
import { shownMs } from '../figures/numbers.js';
import { clientLink, type Column, notice, receiverLink, statusBadge, table, time } from '../frame/parts.js';
import { type FailingReceiver, MAX_FAILING } from './overview-data.js';

/** `pausedBy`: the actor and the time, or null if it is not paused or the audit does not say. */
export type ShownQueue = QueueDepth & { pausedBy: { actor: string; at: number } | null };

/** What tells whether something is wrong. Null: no answer in time. */
export interface State {
  due: Due | null;
  queues: ShownQueue[] | null;
  isQueueUp: true | null;
  processes: Processes | null;
  failing: FailingReceiver[] | null;
}

/** What is wrong, and what to do about it. */
export interface Problem {
  kind: 'bad' | 'warning';
  what: Html;
  remedy: Html;
}

/** A notification that waits for longer is late: the queue takes what is due within seconds. */
const LATE_MS = 120_000;

/** The worst first: what stops everything, then what stops single receivers. */
export function problemsOf({ due, queues, isQueueUp, processes, failing }: State): Problem[] {
  return [
    due === null ? databaseDown : null,
    isQueueUp === null ? queueDown : null,
    ...(queues ?? []).map(stoppedQueue),
    isQueueUp && due && processes ? missingWorkers(processes, due) : null,
    due && lateDeliveries(due),
    ...(failing ?? []).slice(0, MAX_FAILING - 1).map(failingReceiver),
    (failing ?? []).length >= MAX_FAILING ? moreReceivers : null,
  ].filter((problem) => problem !== null);
}

export const problemNotice = ({ kind, what, remedy }: Problem): Html =>
  notice(kind, html`<strong>${what}</strong> ${remedy}`);

const health = html`<a href="/ops/health">Health</a>`;

const databaseDown: Problem = {
  kind: 'bad',
  what: html`The database does not answer, or it refuses to write.`,
  remedy: html`Orders, tokens and deliveries wait for it. Check that its server runs, has free disk space and is not
  read-only. ${health} has its last answer.`,
};

const queueDown: Problem = {
  kind: 'bad',
  what: html`The queue accepts no jobs.`,
  remedy: html`Notifications are recorded and wait; they are sent by themselves when it is back. Check that the server
  of the queue runs and has free memory. ${health} has its address.`,
};

/** Nothing else on the page would explain it. */
function stoppedQueue({ queue, isPaused, limit, pausedBy }: ShownQueue): Problem | null {
  const link = html`<a href="/ops/queues/queue/${queue}">${queue}</a>`;
  if (isPaused)
    return {
      kind: 'bad',
      what: html`The queue ${link} is paused${pausedBy && html` by ${pausedBy.actor}, ${time(pausedBy.at)}`}.`,
      remedy: html`Its jobs wait. Resume it on its page when the reason is over.`,
    };
  if (limit === null) return null;
  return {
    kind: 'warning',
    what: html`The queue ${link} is limited: ${limit}.`,
    remedy: html`Its jobs wait. Usher sets no such limit; another program did. Lift it on its page.`,
  };
}

/** Workers of applications on Postgres are not known, so it matters only if something waits. */
function missingWorkers(processes: Processes, { count, oldestAgeMs }: Due): Problem | null {
  const isCertain = processes.connectedWorkers !== null || (count > 0 && oldestAgeMs > LATE_MS);
  if (workersOf(processes) > 0 || !isCertain) return null;
  return {
    kind: 'bad',
    what: html`No worker runs, so nothing is sent.`,
    remedy: html`Start a process with <code>USHER_ROLE=worker</code> or <code>all</code>. ${health} lists the processes.`,
  };
}

function lateDeliveries({ count, oldestAgeMs }: Due): Problem | null {
  if (count === 0 || oldestAgeMs <= LATE_MS) return null;
  return {
    kind: 'warning',
    what: html`Notifications are late: the oldest of ${count} that are due waits for ${shownMs(oldestAgeMs)}.`,
    remedy: html`If no fault is named above, the workers cannot keep up: start another one, or look for receivers that
      answer slowly in <a href="/ops/receivers">Receivers</a>.`,
  };
}

function failingReceiver({ client, host, failingSince, lastError, lastDiagnosis }: FailingReceiver): Problem {
  const explained = lastDiagnosis === null ? null : DIAGNOSES[lastDiagnosis];
  return {
    kind: 'warning',
    what: html`${receiverLink(host)} of ${clientLink(client)} has failed since ${time(failingSince)}.`,
    remedy: html`${explained?.meaning ?? lastError} ${explained?.remedy ?? null}`,
  };
}

const moreReceivers: Problem = {
  kind: 'warning',
  what: html`Further receivers fail.`,
  remedy: html`<a href="/ops/receivers">Receivers</a> lists them all.`,
};

/** The queues, and their jobs by state. */
export function queueTable(queues: ShownQueue[]): Html {
  const columns: Column<ShownQueue>[] = [
    { name: 'Queue', cell: ({ queue }) => html`<a href="/ops/queues/queue/${queue}">${queue}</a>` },
    { name: 'State', cell: stateOf },
    ...Object.keys(queues[0]?.jobs ?? {}).map((name) => ({
      name,
      isNumber: true,
      cell: ({ jobs }: ShownQueue) => jobs[name] ?? 0,
    })),
  ];
  return table(columns, queues);
}

function stateOf({ isPaused, limit }: ShownQueue): Html {
  if (isPaused) return statusBadge('paused');
  return limit === null ? statusBadge('up') : html`${statusBadge('limited', 'warning')} ${limit}`;
}
