import type { AuditEvent } from '../../../audit/audit-event.entity.js';
import { type Html, html } from '../../../http/html.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import type { Backlog, Due, QueueDepth } from '../../health/backlog.js';
import type { Answers } from '../../health/cached-query.js';
import { type Processes, workersOf } from '../../health/processes.js';
import { shownMs } from '../figures/figures.js';
import { clientLink, type Columns, notice, receiverLink, statusBadge, table, time } from '../frame/parts.js';
import { type FailingReceiver, MAX_FAILING } from './overview-data.js';

/** `paused`: the event that paused it, if the audit knows it. */
export type ShownQueue = QueueDepth & { paused?: AuditEvent | undefined };

/** What tells whether something is wrong. Null: no answer in time. */
export interface State extends Answers<Backlog['queries']> {
  queues: ShownQueue[] | null;
  processes: Processes | null;
  failing?: FailingReceiver[] | null;
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
  const receivers = failing ?? [];
  return [
    due === null && databaseDown,
    isQueueUp === null && queueDown,
    ...(queues ?? []).map(stoppedQueue),
    isQueueUp && due && processes && missingWorkers(processes, due),
    due && lateDeliveries(due),
    ...receivers.slice(0, MAX_FAILING - 1).map(failingReceiver),
    receivers.length >= MAX_FAILING && moreReceivers,
  ].filter((problem) => !!problem);
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
function stoppedQueue({ queue, isPaused, limit, paused }: ShownQueue): Problem | null {
  const link = queueLink(queue);
  if (isPaused)
    return {
      kind: 'bad',
      what: html`The queue ${link} is paused${paused && html` by ${paused.actor}, ${time(paused.createdAt)}`}.`,
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
  const explained = lastDiagnosis && DIAGNOSES[lastDiagnosis];
  return {
    kind: 'warning',
    what: html`${receiverLink(host)} of ${clientLink(client)} has failed since ${time(failingSince)}.`,
    remedy: html`${explained?.meaning ?? lastError} ${explained?.remedy}`,
  };
}

const moreReceivers: Problem = {
  kind: 'warning',
  what: html`Further receivers fail.`,
  remedy: html`<a href="/ops/receivers">Receivers</a> lists them all.`,
};

/** The queues, and their jobs by state. */
export function queueTable(queues: ShownQueue[]): Html {
  const states = Object.keys(queues[0]?.jobs ?? {});
  const columns: Columns<ShownQueue> = {
    Queue: ({ queue }) => queueLink(queue),
    State: stateOf,
    ...Object.fromEntries(states.map((state) => [state, { number: ({ jobs }: ShownQueue) => jobs[state] ?? 0 }])),
  };
  return table(columns, queues);
}

const queueLink = (queue: string): Html => html`<a href="/ops/queues/queue/${queue}">${queue}</a>`;

function stateOf({ isPaused, limit }: ShownQueue): Html {
  if (isPaused) return statusBadge('paused');
  return limit === null ? statusBadge('up') : html`${statusBadge('limited', 'warning')} ${limit}`;
}
