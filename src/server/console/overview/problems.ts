import type { AuditEvent } from '../../../audit/audit-event.entity.js';
import type { HttpRequest } from '../../../http/exchange.js';
import { type Html, html } from '../../../http/html.js';
import { type Due, MAX_COUNTED } from '../../../webhooks/usher-health.js';
import { type Backlog, type Processes, type QueueDepth, workersOf } from '../../health/backlog.js';
import type { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { diagnosisOf } from '../../../webhooks/transport/diagnosis.js';
import type { Answers } from '../../health/cached-query.js';
import { shownMs } from '../figures/figures.js';
import { hiddenField } from '../../../http/pages/fields.js';
import { postForm } from '../../../http/pages/form.js';
import { emptyState, notice, statusBadge, table, time } from '../../../http/pages/parts.js';
import { kindAndId } from '../audit/audit-search.js';
import { clientLink, receiverLink } from '../frame/links.js';
import { isAlarming, MAX_PAUSES, type NamedClient, type OverviewAnswers } from './overview-data.js';

/** `paused`: the event that paused it, if the audit knows it. */
type ShownQueue = QueueDepth & { paused?: AuditEvent | undefined };

/** What tells whether something is wrong. Null: no answer in time. */
export interface State extends Answers<Backlog['queries']> {
  queues: ShownQueue[] | null;
  request: HttpRequest;
}

/** Says what is wrong and what helps. `action`: a form that helps. */
const problem = (kind: 'bad' | 'warning') => (what: Html, remedy: Html, action?: Html | null) =>
  notice(kind, html`<strong>${what}</strong> ${remedy}`, action);

export const bad = problem('bad');
/** A problem that delays deliveries, stops those to single receivers, or may do so. */
export const warning = problem('warning');

/** A notification that waits for longer is late: the queue takes what is due within seconds. */
const LATE_MS = 120_000;

/** The worst first. */
export function problemsOf({ due, queues, isQueueUp, areSecretsReadable, processes, request }: State) {
  return [
    due === null && databaseDown,
    isQueueUp === null && queueDown,
    areSecretsReadable === false && secretsUnreadable,
    ...(queues ?? []).map((queue) => stoppedQueue(queue, request)),
    isQueueUp && due && processes && missingWorkers(processes, due),
    due && lateDeliveries(due),
  ].filter((problem) => !!problem);
}

const health = html`<a href="/ops/health">Health</a>`;

const databaseDown = bad(
  html`The database does not answer, or it refuses to write.`,
  html`Orders, tokens and deliveries wait for it. Check that its server runs, has free disk space and is not read-only.
  ${health} has its last answer.`,
);

const queueDown = bad(
  html`The queue accepts no jobs.`,
  html`Notifications are recorded and wait; they are sent by themselves when the queue is back. Check that the server of
  the queue runs and has free memory. ${health} has its address.`,
);

const secretsUnreadable = bad(
  html`This process lacks a master key, so it cannot open client secrets.`,
  html`It answers 503 to the clients of these secrets, and signs nothing for them. Add the key and restart the process;
  ${health} lists the keys of each process.`,
);

/** Without it, nothing on the page would say why jobs wait. */
function stoppedQueue({ queue, isPaused, limit, paused }: ShownQueue, request: HttpRequest) {
  const link = queueLink(queue);
  if (isPaused)
    return bad(
      html`The queue ${link} is paused${paused && html` by ${paused.actor}, ${time(paused.createdAt)}`}.`,
      html`Its jobs wait. Resume it when the reason is over.`,
      postForm(request, '/ops/resume-queue', { button: 'Resume' }, [hiddenField('queue', queue)]),
    );
  if (limit === null) return null;
  return warning(
    html`The queue ${link} is limited: ${limit}.`,
    html`Its jobs wait. Usher sets no such limit; another program did. Lift it on the page of the queue.`,
  );
}

export function pausedDeliveries(pauses: NonNullable<OverviewAnswers['pauses']>) {
  const shown = pauses.slice(0, MAX_PAUSES).map(({ subject, client, since, reason }) => {
    const [kind, id] = kindAndId(subject);
    const whose = kind === 'client' ? html`of ${clientLink(client)}` : html`to ${receiverLink(id)}`;
    return warning(
      html`Deliveries ${whose} are paused since ${time(since)}: ${reason}.`,
      html`The notifications wait. Resume the deliveries on the page that is linked.`,
    );
  });
  const others = html`See the others in <a href="/ops/audit?action=delivery.paused">the audit</a>.`;
  return pauses.length <= MAX_PAUSES ? shown : [...shown, warning(html`Only the oldest pauses are shown.`, others)];
}

/** With the queue on Postgres, workers of embedding applications are unknown, so a lack shows only if something waits. */
function missingWorkers(processes: Processes, { count, oldestAgeMs }: Due) {
  const isCertain = processes.connectedWorkers !== null || (count > 0 && oldestAgeMs > LATE_MS);
  if (workersOf(processes) > 0 || !isCertain) return null;
  return bad(
    html`No worker runs, so nothing is sent.`,
    html`Start a process with <code>USHER_ROLE=worker</code> or <code>all</code>. ${health} lists the processes.`,
  );
}

export const shownCount = (count: number) => (count < MAX_COUNTED ? String(count) : '100,000 or more');

function lateDeliveries({ count, oldestAgeMs }: Due) {
  if (count === 0 || oldestAgeMs <= LATE_MS) return null;
  return warning(
    html`Notifications are late: the oldest of ${shownCount(count)} that are due has waited for ${shownMs(oldestAgeMs)}.`,
    html`If no fault is named above, the workers cannot keep up: start another one, or look for receivers that answer
      slowly in <a href="/ops/receivers">Receivers</a>.`,
  );
}

export function queueTable(queues: ShownQueue[] | null, isQueueUp: boolean | null) {
  if (queues === null) return emptyState('The queue does not answer, so its jobs are not known.');
  const states = Object.keys(queues[0]?.jobs ?? {});
  return table(
    {
      Queue: ({ queue }) => queueLink(queue),
      State: (queue) => stateOf(queue, isQueueUp),
      ...Object.fromEntries(states.map((state) => [state, { number: ({ jobs }: ShownQueue) => jobs[state] ?? 0 }])),
    },
    queues,
  );
}

const queueLink = (queue: string) => html`<a href="/ops/queues/queue/${queue}">${queue}</a>`;

function stateOf({ isPaused, limit }: ShownQueue, isQueueUp: boolean | null) {
  if (isPaused) return statusBadge('paused');
  return limit === null ? statusBadge(isQueueUp ? 'up' : 'down') : html`${statusBadge('limited', 'warning')} ${limit}`;
}

export const reasonOf = ({ lastDiagnosis, lastError }: FailingHost) =>
  (lastDiagnosis && diagnosisOf(lastDiagnosis).meaning) ?? `${lastError}.`;

/** Which host fails, since when and why, and what to do or who has acknowledged it. */
export function failure(failing: FailingHost, client?: NamedClient) {
  const { host, failingSince, lastDiagnosis, alarmEndedAt, acknowledgedBy, acknowledgement } = failing;
  const known =
    acknowledgedBy &&
    html`<strong>Acknowledged by ${acknowledgedBy} ${time(alarmEndedAt)}: ${acknowledgement}</strong>`;
  return html`${receiverLink(host)}${client && html` of ${clientLink(client)}`} has failed since ${time(failingSince)}.
  ${reasonOf(failing)} ${known ?? (lastDiagnosis && diagnosisOf(lastDiagnosis).remedy)}`;
}

export const failureNotice = (failing: FailingHost, client?: NamedClient) =>
  notice(isAlarming(failing) ? 'bad' : 'warning', failure(failing, client));
