import { type DataSource, In, IsNull, Not } from 'typeorm';
import { z } from 'zod';
import { heldBy } from '../auth/bearer/bearer.guard.js';
import { moment, named } from '../http/operation.js';
import { diagnosisOf } from './transport/diagnosis.js';
import { hostOf } from '../values/urls/notify-url.js';
import { OptionalDiagnosis, time } from './webhook-view.js';
import { DeliveryPause, Webhook, WebhookAttempt } from './webhook.entity.js';

/** How many of the newest and of the oldest pending webhooks are read. This bounds the cost of a request. */
const MAX_RECENT = 200;
const MAX_PENDING = 1_000;
/** How many answers of a host its answer times are computed from. */
const MAX_ANSWERS = 100;

const HostHealth = named(
  'HostHealth',
  z.object({
    host: z.string().describe('The host and port of Notify URLs in use.'),
    failuresInARow: z.int().describe('Failed attempts since the last one that succeeded.'),
    lastSuccessAt: moment.nullable().describe('When the last successful attempt began.'),
    lastFailureAt: moment.nullable().describe('When the last failed attempt began.'),
    lastDiagnosis: OptionalDiagnosis.describe('Why the last failed attempt failed.'),
    oldestPendingAt: moment.nullable().describe('When the oldest pending notification was made.'),
    pausedSince: moment.nullable().describe('When an operator paused deliveries to this host, or null.'),
    answerTimes: z
      .object({ attemptCount: z.int(), medianMs: z.int(), p95Ms: z.int() })
      .nullable()
      .describe('In milliseconds, of the last attempts that got an HTTP status, at most 100. Null if none did.'),
  }),
);

export const WebhookHealth = named(
  'WebhookHealth',
  z.object({ hosts: z.array(HostHealth).describe('The host with the most failures in a row comes first.') }),
  'Computed from the newest 200 notifications and the oldest 1000 pending ones.',
);
/** The state of a client’s receivers. Times as RFC 3339 text in UTC, durations in milliseconds. */
export type WebhookHealth = z.infer<typeof WebhookHealth>;
type HostHealth = z.infer<typeof HostHealth>;

/** The health of the hosts that a client's newest and pending notifications go to. */
export async function webhookHealth({ manager }: DataSource, clientId: string): Promise<WebhookHealth> {
  const whose = heldBy({ clientId, ownerId: null });
  const select = { id: true, notifyUrl: true, createdAt: true } as const;
  const [newest, pending] = await Promise.all([
    manager.find(Webhook, { select, where: whose, order: { id: 'DESC' }, take: MAX_RECENT }),
    manager.find(Webhook, {
      select,
      where: { ...whose, status: 'PENDING' },
      order: { id: 'ASC' },
      take: MAX_PENDING,
    }),
  ]);
  const recent = newest.filter(({ notifyUrl }) => notifyUrl !== '');
  const attempts = await manager.find(WebhookAttempt, {
    select: {
      webhookId: true,
      number: true,
      startedAt: true,
      durationMs: true,
      responseStatus: true,
      error: true,
      diagnosis: true,
    },
    where: {
      webhookId: In([...recent, ...pending.slice(0, MAX_RECENT)].map(({ id }) => id)),
      durationMs: Not(IsNull()),
    },
    order: { startedAt: 'DESC' },
  });
  const hosts = new Map([...recent, ...pending].map(({ id, notifyUrl }) => [id, hostOf(notifyUrl)]));
  const names = [...new Set(hosts.values())];
  const subject = In(names.map((host) => `host:${host}`));
  const pauses = await manager.findBy(DeliveryPause, { subject, resumedAt: IsNull() });
  const found = names.map((host) => ({
    ...healthOf(
      host,
      attempts.filter(({ webhookId }) => hosts.get(webhookId) === host),
      pending.find(({ id }) => hosts.get(id) === host),
    ),
    pausedSince: time(pauses.find((pause) => pause.subject === `host:${host}`)?.since),
  }));
  return { hosts: found.sort((left, right) => right.failuresInARow - left.failuresInARow) };
}

/** `attempts` have ended, and the newest comes first. */
function healthOf(host: string, attempts: WebhookAttempt[], oldestPending: Webhook | undefined) {
  const lastSuccess = attempts.findIndex(({ error }) => error === null);
  const lastFailure = attempts.find(({ error }) => error !== null);
  const answered = attempts.filter(({ responseStatus }) => responseStatus !== null).slice(0, MAX_ANSWERS);
  return {
    host,
    failuresInARow: lastSuccess < 0 ? attempts.length : lastSuccess,
    lastSuccessAt: time(attempts[lastSuccess]?.startedAt),
    lastFailureAt: time(lastFailure?.startedAt),
    lastDiagnosis: lastFailure?.diagnosis ? diagnosisOf(lastFailure.diagnosis) : null,
    oldestPendingAt: time(oldestPending?.createdAt),
    answerTimes: timesOf(answered.map(({ durationMs }) => durationMs ?? 0)),
  };
}

function timesOf(durations: number[]): HostHealth['answerTimes'] {
  const sorted = durations.toSorted((left, right) => left - right);
  const quantile = (part: number): number => sorted[Math.ceil(sorted.length * part) - 1] ?? 0;
  return sorted.length === 0 ? null : { attemptCount: sorted.length, medianMs: quantile(0.5), p95Ms: quantile(0.95) };
}
