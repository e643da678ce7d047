import type { DataSource } from 'typeorm';
import { unfairness } from './crowd.js';
import type { Arrival } from './receivers.js';

interface Row {
  id: string;
  reference: string;
  client: string;
  url: string;
  status: string;
  attempts: number;
  created: number;
}

interface AttemptRow {
  webhook: string;
  number: number;
  started: number;
  duration: number | null;
}

const MAX_ATTEMPTS = 5;
const MIN_INTERVAL_MS = 30_000;
const RETRY_EVERY_MS = 120_000;
/** How long after its claim a request is sent at the latest. */
const STALE_CLAIM_MS = 5_000;
/** The shortest lease of a claim. */
const MIN_LEASE_MS = 70_000;

/** Until when a failed attempt delayed the next one, by the webhook's row. */
export interface NextAttempt {
  webhook: string;
  attempt: number;
  at: number;
}

/** A pause of deliveries, from its commit to the beginning of its resumption. */
export interface Paused {
  subject: string;
  from: number;
  until: number;
}

/** What was observed during a schedule. */
export interface Observations {
  log: Arrival[];
  /** References whose completion was committed. */
  completed: Set<string>;
  /** The ids of all jobs that were ever added. */
  jobs: Set<string>;
  /** By webhook: when its SUCCESS was recorded. */
  recordedAt: Map<string, number>;
  /** By webhook and number of the attempt: when its outcome was recorded. */
  outcomeAt: Map<string, number>;
  nextAttempts: NextAttempt[];
  /** How many requests a crowd may have open. */
  crowdShare: number;
  paused: Paused[];
}

/** Checks a finished schedule by the observations and the tables. Returns every violation. */
export async function violations(dataSource: DataSource, observed: Observations): Promise<string[]> {
  const { log, completed, jobs, recordedAt, outcomeAt, nextAttempts, crowdShare, paused } = observed;
  const webhooks = await read(dataSource);
  const attempts = await readAttempts(dataSource);
  const found = [
    ...unfairness(webhooks, log, crowdShare),
    ...wrongWaits(nextAttempts, log),
    ...sentWhilePaused(paused, webhooks, log),
    ...(await wrongFigures(dataSource)),
  ];
  for (const reference of completed) {
    if (!webhooks.some((webhook) => webhook.reference === reference)) found.push(`${reference} has no webhook`);
  }
  for (const job of jobs) {
    if (!webhooks.some(({ id }) => id === job)) found.push(`job ${job} belongs to a webhook that was never committed`);
  }
  for (const reference of new Set(webhooks.map((webhook) => webhook.reference))) {
    const all = webhooks.filter((webhook) => webhook.reference === reference);
    if (all.filter(({ status }) => status !== 'FAILED').length > 1) found.push(`${reference} has two live webhooks`);
    found.push(...spacing(reference, all, log));
  }
  for (const webhook of webhooks)
    found.push(
      ...ofOne(
        webhook,
        arrivalsOf(webhook, log),
        attempts.filter(({ webhook: id }) => id === webhook.id),
        outcomeAt,
        recordedAt.get(webhook.id),
      ),
    );
  return found;
}

function ofOne(
  webhook: Row,
  arrivals: Arrival[],
  attempts: AttemptRow[],
  outcomeAt: Observations['outcomeAt'],
  recordedAt = Infinity,
): string[] {
  const found: string[] = [];
  const report = (what: string): void => void found.push(`webhook ${webhook.id}: ${what}`);
  if (webhook.status === 'PENDING') report('is still PENDING');
  if (arrivals.length > MAX_ATTEMPTS) report(`arrived ${arrivals.length} times`);
  if (webhook.attempts > MAX_ATTEMPTS) report(`has ${webhook.attempts} attempts`);
  if (attempts.length !== webhook.attempts) report(`counts ${webhook.attempts} attempts and shows ${attempts.length}`);
  if (arrivals.length > attempts.length) report('arrived more often than it has recorded attempts');
  if (webhook.status === 'FAILED' && webhook.attempts < MAX_ATTEMPTS) report(`gave up after ${webhook.attempts}`);
  if (webhook.status === 'SUCCESS' && !arrivals.some(({ acceptedAt }) => acceptedAt !== null))
    report('succeeded without a 2xx');
  if (attempts.some(({ started }) => started > recordedAt)) report('was tried again after a recorded SUCCESS');
  for (const [index, arrival] of arrivals.entries()) {
    if (index > 0 && arrival.at < firstRunAfter((arrivals[index - 1]?.at ?? 0) + MIN_INTERVAL_MS))
      report('was retried before a retry run');
    const acceptedBefore = arrivals
      .slice(0, index)
      .filter(({ acceptedAt }) => acceptedAt !== null && acceptedAt <= arrival.at);
    const isRecorded = recordedAt < arrival.at || recordedAt === Infinity;
    if (acceptedBefore.length > 0 && isRecorded && !explained(acceptedBefore, attempts, outcomeAt))
      report('was repeated after a 2xx that arrived');
  }
  return found;
}

/** A repeat is explained by an attempt that was cut off, whose 2xx came after the timeout, or that was recorded after its lease. */
function explained(accepted: Arrival[], attempts: AttemptRow[], outcomeAt: Observations['outcomeAt']): boolean {
  return accepted.every(({ webhook, attempt, at, acceptedAt }) => {
    const isCutOff = attempts.some(({ started, duration }) => started <= at && duration === null);
    const isLate = (outcomeAt.get(`${webhook} ${attempt}`) ?? at) - at >= MIN_LEASE_MS - STALE_CLAIM_MS;
    return isCutOff || isLate || (acceptedAt ?? 0) - at >= 30_000;
  });
}

/** Checks the minimum interval for all webhooks of a reference, including resends. */
function spacing(reference: string, webhooks: Row[], log: Arrival[]): string[] {
  const ids = new Set(webhooks.map(({ id }) => id));
  const times = log
    .filter(({ webhook }) => ids.has(webhook))
    .map(({ at }) => at)
    .sort((left, right) => left - right);
  return times.slice(1).some((at, index) => at - (times[index] ?? 0) < MIN_INTERVAL_MS)
    ? [`${reference}: two attempts within 30 s`]
    : [];
}

/** Only an attempt that was claimed before a pause may be sent in it, soon after. */
function sentWhilePaused(paused: Paused[], webhooks: Row[], log: Arrival[]): string[] {
  return log.flatMap(({ webhook, at }) => {
    const { client, url } = webhooks.find(({ id }) => id === webhook)!;
    const subjects = [`client:${client}`, `host:${new URL(url).host}`];
    return paused
      .filter(({ subject, from, until }) => subjects.includes(subject) && at > from + STALE_CLAIM_MS && at < until)
      .map(({ subject, from }) => `webhook ${webhook} was sent ${at - from} ms after the pause of ${subject}`);
  });
}

/** A Retry-After moves the next attempt later: never sooner than the schedule, never beyond three retry runs. */
function wrongWaits(nextAttempts: NextAttempt[], log: Arrival[]): string[] {
  return nextAttempts.flatMap(({ webhook, attempt, at }) => {
    const arrival = log.find((one) => one.webhook === webhook && one.attempt === attempt);
    if (!arrival) return [`webhook ${webhook}: attempt ${attempt} was recorded but never arrived`];
    const { endedAt, retryAfterMs } = arrival;
    const ordinary = firstRunAfter(endedAt + MIN_INTERVAL_MS);
    const latest = ordinary + 2 * RETRY_EVERY_MS;
    const asked = Math.min(firstRunAfter(endedAt + retryAfterMs), latest);
    const waited = `webhook ${webhook}: after attempt ${attempt} the next one is due ${at - endedAt} ms after its end`;
    if (at < ordinary) return [`${waited}, sooner than the schedule`];
    if (at > latest) return [`${waited}, beyond three retry runs`];
    if (at < asked) return [`${waited}; its receiver asked for ${retryAfterMs} ms`];
    return at > Math.max(ordinary, asked) ? [`${waited}, later than needed`] : [];
  });
}

/** The figures of deliveries are the sums of what the tables say, both those of all clients and those of each one. */
async function wrongFigures(dataSource: DataSource): Promise<string[]> {
  const [recorded] = await dataSource.query<object[]>(
    `SELECT (SELECT COUNT(*) FROM usher_webhook_attempt WHERE duration_ms IS NOT NULL) AS attempts,
       (SELECT COUNT(*) FROM usher_webhook_attempt WHERE duration_ms IS NOT NULL AND error IS NOT NULL) AS failures,
       (SELECT COUNT(*) FROM usher_webhook WHERE status = 'SUCCESS') AS delivered,
       (SELECT COUNT(*) FROM usher_webhook WHERE status = 'FAILED') AS failed,
       (SELECT COALESCE(SUM(duration_ms), 0) FROM usher_webhook_attempt) AS duration`,
  );
  const sums = await Promise.all(
    ["client_id = ''", "client_id <> ''"].map((rows) =>
      dataSource.query<object[]>(
        `SELECT COALESCE(SUM(attempts), 0) AS attempts, COALESCE(SUM(failures), 0) AS failures,
           COALESCE(SUM(delivered), 0) AS delivered, COALESCE(SUM(ended_failed), 0) AS failed,
           COALESCE(SUM(duration_sum), 0) AS duration FROM usher_delivery_figure WHERE ${rows}`,
      ),
    ),
  );
  return sums
    .map(([sum]) => JSON.stringify(sum))
    .filter((sum) => sum !== JSON.stringify(recorded))
    .map((sum) => `the figures are ${sum}, recorded was ${JSON.stringify(recorded)}`);
}

const firstRunAfter = (moment: number): number => Math.ceil(moment / RETRY_EVERY_MS) * RETRY_EVERY_MS;

const arrivalsOf = ({ id }: Row, log: Arrival[]): Arrival[] => log.filter(({ webhook }) => webhook === id);

async function read(dataSource: DataSource): Promise<Row[]> {
  const rows = await dataSource.query<Record<keyof Row, string | null>[]>(
    'SELECT id, reference_id AS reference, client_id AS client, notify_url AS url, status, attempts, created_at AS created FROM usher_webhook',
  );
  return rows.map((row) => ({
    id: String(row.id),
    reference: String(row.reference),
    client: String(row.client),
    url: String(row.url),
    status: String(row.status),
    attempts: Number(row.attempts),
    created: Number(row.created),
  }));
}

async function readAttempts(dataSource: DataSource): Promise<AttemptRow[]> {
  const rows = await dataSource.query<Record<keyof AttemptRow, string | null>[]>(
    'SELECT webhook_id AS webhook, number, started_at AS started, duration_ms AS duration FROM usher_webhook_attempt',
  );
  return rows.map(({ webhook, number, started, duration }) => ({
    webhook: String(webhook),
    number: Number(number),
    started: Number(started),
    duration: duration === null ? null : Number(duration),
  }));
}
