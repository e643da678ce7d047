import { firstFault, type Step } from '../model/trace.js';
import type { Arrival } from './arrivals.js';
import { groupBy, isSuccess } from './evidence.js';
import { LIMITS } from './limits.js';
import type { Query } from './tables.js';

/** A step of a notification that triggers of the run recorded, in the transaction that made it. */
export type Traced = Step & { webhook: string };

const COLUMNS = `kind, session, webhook, at, was, status, attempts_was, attempts, due_was, due, number, started_at, duration_ms, response_status`;
const OF_ATTEMPT = (row: string): string =>
  `NULL, NULL, NULL, NULL, NULL, NULL, ${row}.number, ${row}.started_at, ${row}.duration_ms, ${row}.response_status`;

/** What each trigger records: its event, the condition, and the values after kind, session, webhook and time. */
const TRIGGERS = [
  [
    'webhook',
    'INSERT',
    'NEW',
    '',
    'NULL, NEW.status, NULL, NEW.attempts, NULL, NEW.next_attempt_at, NULL, NULL, NULL, NULL',
  ],
  [
    'webhook',
    'UPDATE',
    'NEW',
    `OLD.status <> NEW.status OR OLD.attempts <> NEW.attempts OR COALESCE(OLD.next_attempt_at, 0) <> COALESCE(NEW.next_attempt_at, 0)`,
    'OLD.status, NEW.status, OLD.attempts, NEW.attempts, OLD.next_attempt_at, NEW.next_attempt_at, NULL, NULL, NULL, NULL',
  ],
  ['webhook_attempt', 'INSERT', 'NEW', '', OF_ATTEMPT('NEW')],
  ['webhook_attempt', 'UPDATE', 'NEW', 'OLD.duration_ms IS NULL', OF_ATTEMPT('NEW')],
  ['webhook_attempt', 'DELETE', 'OLD', '', OF_ATTEMPT('OLD')],
] as const;

/** SYSDATE and clock_timestamp give the time of the row's change, not of the start of its statement. */
const CLOCK = {
  mariadb: 'CONNECTION_ID()|ROUND(UNIX_TIMESTAMP(SYSDATE(3)) * 1000)',
  postgres: 'pg_backend_pid()|ceil(extract(epoch from clock_timestamp()) * 1000)',
};

const statementsOf = (dialect: keyof typeof CLOCK): string[] => {
  const [session, clock] = CLOCK[dialect].split('|');
  const isMariadb = dialect === 'mariadb';
  return [
    `CREATE TABLE chaos_trace (seq ${isMariadb ? 'BIGINT AUTO_INCREMENT' : 'BIGSERIAL'} PRIMARY KEY, kind VARCHAR(20),
       session BIGINT, webhook VARCHAR(22) ${isMariadb ? 'COLLATE utf8mb4_bin' : ''}, at BIGINT, was VARCHAR(10), status VARCHAR(10),
       attempts_was INT, attempts INT, due_was BIGINT, due BIGINT, number INT, started_at BIGINT, duration_ms BIGINT, response_status INT)`,
    ...TRIGGERS.flatMap(([table, event, row, condition, values]) => {
      const name = `chaos_${table}_${event}`.toLowerCase();
      const id = table === 'webhook' ? `${row}.id` : `${row}.webhook_id`;
      const insert = `INSERT INTO chaos_trace (${COLUMNS}) VALUES ('${table}', ${session}, ${id}, ${clock}, ${values})`;
      const on = `CREATE TRIGGER ${name} AFTER ${event} ON usher_${table} FOR EACH ROW`;
      if (isMariadb) return [`${on} ${condition && `IF ${condition} THEN`} ${insert}${condition && '; END IF'}`];
      const body = `BEGIN ${insert}; RETURN NULL; END`;
      return [
        `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ ${body} $$`,
        `${on} ${condition && `WHEN (${condition})`} EXECUTE FUNCTION ${name}()`,
      ];
    }),
  ];
};

export const JOURNAL = { mariadb: statementsOf('mariadb'), postgres: statementsOf('postgres') };

/**
 * Joins the change of a webhook with the change of its attempt in the same transaction. A claim of 0.2.0 changes the webhook first.
 * The transaction that records a webhook makes no attempt: after a crash of the server, another session has its number.
 */
export async function readTrace(query: Query): Promise<Traced[]> {
  const rows = await query('SELECT * FROM chaos_trace ORDER BY seq');
  const trace: Traced[] = [];
  const last = new Map<string, { step: Traced; session: unknown }>();
  for (const row of rows) {
    const step = tracedOf(row);
    const previous = last.get(step.webhook);
    if (step.attempt && previous?.step.row?.before && !previous.step.attempt && previous.session === row.session) {
      previous.step.attempt = step.attempt;
      continue;
    }
    const claimed = previous?.step.row ? undefined : previous?.step.attempt;
    if (previous && previous.session === row.session && claimed && step.row?.after.attempts === claimed.number) {
      Object.assign(previous.step, step);
      continue;
    }
    trace.push(step);
    last.set(step.webhook, { step, session: row.session });
  }
  return trace;
}

function tracedOf(row: Record<string, unknown>): Traced {
  const number = (name: string): number | null => (row[name] === null ? null : Number(row[name]));
  const rowOf = (status: string, attempts: string, due: string) => ({
    status: String(row[status]),
    attempts: Number(row[attempts]),
    due: number(due),
  });
  const step = { webhook: String(row.webhook), at: Number(row.at) };
  if (row.kind === 'webhook')
    return {
      ...step,
      row: {
        before: row.was === null ? null : rowOf('was', 'attempts_was', 'due_was'),
        after: rowOf('status', 'attempts', 'due'),
      },
    };
  const attempt = { number: Number(row.number), startedAt: Number(row.started_at), durationMs: number('duration_ms') };
  return { ...step, attempt: { ...attempt, wasOk: isSuccess(number('response_status')) } };
}

/** The whole trace of each notification that has a step which the table of transitions does not know. */
export function unknownSteps(trace: Traced[], arrivals: Arrival[]): string[] {
  const sent = groupBy(arrivals, ({ webhook }) => webhook);
  return [...groupBy(trace, ({ webhook }) => webhook)].flatMap(([webhook, changes]) => {
    // What was recorded before there were triggers has no beginning.
    if (changes[0]?.row?.before !== null) return [];
    const steps = withRequests(changes, sent.get(webhook) ?? []);
    const fault = firstFault(steps, LIMITS);
    if (!fault) return [];
    const lines = steps.map((step, index) => `${index === fault.index ? '  > ' : '    '}${lineOf(step)}`);
    return [`${webhook}: ${fault.why}\n${lines.join('\n')}`];
  });
}

/** With the same time, the request comes before its outcome. */
function withRequests(changes: Step[], arrivals: Arrival[]): Step[] {
  const steps = [...changes];
  for (const { attempt: sent, at } of arrivals) {
    const isOutcome = ({ attempt }: Step): boolean => attempt?.number === sent && attempt.durationMs !== null;
    const next = steps.findIndex((step) => step.at > at || isOutcome(step));
    steps.splice(next === -1 ? steps.length : next, 0, { at, sent });
  }
  return steps;
}

function lineOf({ at, row, attempt, sent }: Step): string {
  const time = new Date(at).toISOString().slice(11, 23);
  const due = (ms: number | null): string => (ms === null ? '' : ` due ${new Date(ms).toISOString().slice(11, 23)}`);
  if (sent !== undefined) return `${time} the request of attempt ${sent} arrived`;
  const change = row ? `${row.after.status} attempts ${row.after.attempts}${due(row.after.due)}` : 'the row unchanged';
  if (!attempt) return `${time} ${change}`;
  const { number, durationMs, wasOk } = attempt;
  const outcome = durationMs === null ? 'claimed or released' : `${wasOk ? '2xx' : 'failed'} after ${durationMs} ms`;
  return `${time} ${change}; attempt ${number} ${outcome}`;
}
