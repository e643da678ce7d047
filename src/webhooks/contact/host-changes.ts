import type { Failure } from '../transport/outcome.js';
import { hostOf } from '../../values/urls/notify-url.js';
import type { ClaimedWebhook } from '../deliver/claim.js';
import type { FailingHost } from './failing-host.entity.js';

/** An attempt that ended at a host of a client. */
export interface HostAttempt {
  clientId: string;
  host: string;
  endedAt: number;
  /** When the notification was made, if it goes to the client's registered Notify URL; null if the order has its own. */
  madeAt: number | null;
  /** Null: the host accepted the notification. `endedFailed`: the notification ended FAILED with this attempt. */
  failure: (Failure & { endedFailed: boolean }) | null;
}

export const hostOfWebhook = ({ clientId, notifyUrl, usesClientUrl, createdAt }: ClaimedWebhook) => ({
  clientId,
  host: hostOf(notifyUrl),
  madeAt: usesClientUrl ? createdAt : null,
});

/** A host that has failed for so long is announced, even if no notification has ended FAILED. */
const FAILING_AFTER_MS = 600_000;
/** How often the time of the last failure is written. Writing each failure would make the row a bottleneck. */
const WRITE_EVERY_MS = 60_000;

/** The row after an attempt: null if there is none, and `row` itself if nothing changes. Applying it twice changes nothing more. */
export function afterAttempt(row: FailingHost | null, attempt: HostAttempt): FailingHost | null {
  const { endedAt, failure } = attempt;
  if (failure === null) return row && afterSuccess(row, endedAt);
  return afterFailure(row ?? firstRow(attempt), attempt, failure);
}

/**
 * The row of a host after an attempt at another host of the client. A delivery to the registered Notify URL ends the alarm
 * of the earlier registered one, if the notification was made after that one began to fail.
 */
export function afterAttemptElsewhere(row: FailingHost, { endedAt, madeAt, failure }: HostAttempt): FailingHost {
  const isReplaced = failure === null && row.isRegisteredUrl && madeAt !== null && madeAt > row.failingSince;
  const isAlarming = row.recoveredAt === null && row.alarmEndedAt === null && endedAt > row.lastFailedAt;
  return isReplaced && isAlarming ? { ...row, alarmEndedAt: endedAt } : row;
}

/** The row of the first failed attempt, without the failure. */
const firstRow = ({ clientId, host, endedAt }: HostAttempt): FailingHost => ({
  clientId,
  host,
  failingSince: endedAt,
  lastFailedAt: -Infinity,
  lastError: '',
  lastDiagnosis: null,
  firstEndedFailedAt: null,
  recoveredAt: null,
  announcedAt: null,
  messageDueAt: null,
  isRegisteredUrl: null,
  ...ALARM,
});

const ALARM = { alarmEndedAt: null, acknowledgedBy: null, acknowledgement: null };

function afterFailure(
  row: FailingHost,
  { endedAt: at, madeAt }: HostAttempt,
  failure: NonNullable<HostAttempt['failure']>,
): FailingHost {
  const { error, diagnosis, endedFailed } = failure;
  const isLong = at - row.failingSince >= FAILING_AFTER_MS;
  const next: FailingHost = {
    ...row,
    firstEndedFailedAt: row.firstEndedFailedAt ?? (endedFailed ? at : null),
    // The contact does not know of the recovery yet, so the recovery is forgotten.
    recoveredAt: null,
    isRegisteredUrl: madeAt !== null && row.isRegisteredUrl !== false,
    ...(endedFailed && row.alarmEndedAt !== null && at > row.alarmEndedAt && ALARM),
    ...(at - row.lastFailedAt >= WRITE_EVERY_MS && { lastFailedAt: at, lastError: error, lastDiagnosis: diagnosis }),
  };
  if (row.announcedAt !== null) next.messageDueAt = null;
  else if (endedFailed || isLong) next.messageDueAt ??= at;
  return isEqual(row, next) ? row : next;
}

/**
 * Deletes the row unless the contact was told of the host, or is to be told: then the message may be on its way. After an outage of
 * the database a success can be recorded behind a later failure.
 */
function afterSuccess(row: FailingHost, at: number): FailingHost | null {
  if (row.recoveredAt !== null || at < row.lastFailedAt) return row;
  const isToTell = row.announcedAt !== null || row.messageDueAt !== null;
  return isToTell ? { ...row, recoveredAt: at, messageDueAt: at } : null;
}

const isEqual = (row: FailingHost, next: FailingHost): boolean =>
  (Object.keys(next) as (keyof FailingHost)[]).every((name) => row[name] === next[name]);
