import { Evidence, groupBy, isSuccess, type Observed } from './evidence.js';
import { unknownSteps } from './journal.js';
import { LIMITS } from './limits.js';
import { type Reason, REASONS, type Repeat, repeats, wronglyFailed } from './repeats.js';
import type { AttemptRow } from './tables.js';
import { wrongWaits } from './waits.js';

/** One line of the report: a number, or a rule with its violations. */
export interface Line {
  name: string;
  count: number;
  /** Ids that violate the rule; null for a plain number. */
  offenders: string[] | null;
}

/** Computed only from the receivers' log and the tables, without Usher's code. */
export function verdict(logged: Observed, seed: number): Line[] {
  const evidence = new Evidence(logged);
  const waits = rule('attempts not due as Retry-After asks', wrongWaits(seed, evidence));
  const { tables, arrivals } = evidence.observed;
  const unknown = rule('notifications with a step that the model does not know', unknownSteps(tables.trace, arrivals));
  return [...figures(evidence), ...repeatLines(evidence), ...rules(evidence), waits, unknown];
}

function figures({ observed, attempts }: Evidence): Line[] {
  const { tables, arrivals, acknowledged, faults } = observed;
  const ended = (status: string): number => tables.webhooks.filter((webhook) => webhook.status === status).length;
  return [
    figure('faults', faults.length),
    figure('orders completed, by the database', tables.orders.filter(({ status }) => status === 'COMPLETED').length),
    figure('orders completed, as acknowledged', acknowledged.length),
    figure('webhooks', tables.webhooks.length),
    figure('  SUCCESS', ended('SUCCESS')),
    figure('  FAILED', ended('FAILED')),
    figure('attempts', [...attempts.values()].flat().length),
    figure('arrivals', arrivals.length),
    ...fairness(observed),
  ];
}

/** How long the clients whose receivers answer waited. The hanging hosts of the other client should not make it longer. */
function fairness({ arrivals, requestedAt }: Observed): Line[] {
  const firstArrival = new Map(arrivals.toReversed().map(({ key, at }) => [key, at]));
  const waits = [...requestedAt].map(([key, at]) => (firstArrival.get(key) ?? Infinity) - at);
  const sorted = waits.filter(Number.isFinite).sort((left, right) => left - right);
  const quantile = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? 0;
  return [
    figure('ms to the first arrival at receivers that answer: median', quantile(0.5)),
    figure('ms to the first arrival at receivers that answer: p99', quantile(0.99)),
  ];
}

function repeatLines(evidence: Evidence): Line[] {
  const found = repeats(evidence);
  const failed = wronglyFailed(evidence);
  const because = (reason: Reason): Line =>
    figure(`  ${REASONS[reason]}`, found.filter((repeat) => repeat.reason === reason).length);
  return [
    figure('repeats after a 2xx', found.length),
    ...(Object.keys(REASONS) as Reason[]).map(because),
    figure('FAILED after a 2xx that was not recorded in time', failed.filter(({ reason }) => reason !== null).length),
    rule('repeats after a 2xx, unexplained', unexplained(found)),
    rule('FAILED after a 2xx, unexplained', unexplained(failed)),
  ];
}

const unexplained = (found: Repeat[]): string[] =>
  found.filter(({ reason }) => reason === null).map(({ webhook, attempt }) => `${webhook} attempt ${attempt}`);

function rules(evidence: Evidence): Line[] {
  const { tables, unexpectedResponses, unexpectedEnds, guessed, rotated, arrivals } = evidence.observed;
  const badlySigned = arrivals.filter(({ isSigned }) => !isSigned).map(({ webhook }) => webhook);
  const stuck = tables.webhooks.filter(({ status }) => status === 'PENDING').map(({ id }) => id);
  return [
    ...orderRules(evidence),
    ...attemptRules(evidence),
    rule('bad signatures', badlySigned),
    rule('stuck', stuck),
    rule('orders that could not be completed', unexpectedResponses),
    rule('processes that ended by themselves, or not at SIGTERM', unexpectedEnds),
    rule('guesses of a client secret beyond the limit', guessed),
    rule('master keys rotated while a process lacked them', rotated),
  ];
}

function orderRules({ observed: { tables, acknowledged, arrivals } }: Evidence): Line[] {
  const completed = new Set(tables.orders.filter(({ status }) => status === 'COMPLETED').map(({ key }) => key));
  const referenced = new Set(tables.webhooks.map(({ referenceId }) => referenceId));
  const live = groupBy(
    tables.webhooks.filter(({ status }) => status !== 'FAILED'),
    ({ referenceId, eventType }) => `${eventType} ${referenceId}`,
  );
  const several = [...live].filter(([, webhooks]) => webhooks.length > 1).map(([name]) => name);
  return [
    rule(
      'acknowledged but not completed',
      [...acknowledged].filter((key) => !completed.has(key)),
    ),
    rule(
      'completed without a webhook',
      [...completed].filter((key) => !referenced.has(key)),
    ),
    rule(
      'a webhook of an order not completed',
      [...referenced].filter((key) => !completed.has(key)),
    ),
    rule('two live webhooks of one reference', several),
    rule(
      'arrivals of an order not completed',
      arrivals.map(({ key }) => key).filter((key) => !completed.has(key)),
    ),
  ];
}

function attemptRules(evidence: Evidence): Line[] {
  const { attempts, arrivals, observed, successAt } = evidence;
  const { webhooks, changes } = observed.tables;
  const after = (row: AttemptRow): boolean => row.startedAt > (successAt.get(row.webhook) ?? Infinity);
  const received = new Set(observed.arrivals.filter(({ status }) => isSuccess(status)).map(({ webhook }) => webhook));
  const early = changes.filter(({ isClaim, due, at }) => isClaim && at < due);
  const ended = (status: string) => webhooks.filter((webhook) => webhook.status === status);
  const most = LIMITS.maxAttempts;
  return [
    rule('more than 5 attempts', [...longer(attempts, most), ...longer(arrivals, most), ...overcounted(webhooks)]),
    rule('FAILED before 5 attempts', ids(ended('FAILED').filter((webhook) => webhook.attempts < most))),
    rule(
      'attempts begun before they were due',
      early.map(({ webhook }) => webhook),
    ),
    rule(
      'attempts too close together',
      tooClose(attempts, ({ startedAt }) => startedAt),
    ),
    rule(
      'arrivals too close together',
      tooClose(arrivals, ({ at }) => at),
    ),
    rule(
      'attempts begun after a recorded SUCCESS',
      observed.tables.attempts.filter(after).map(({ webhook }) => webhook),
    ),
    rule('SUCCESS without a 2xx', ids(ended('SUCCESS').filter(({ id }) => !received.has(id)))),
    rule(
      'changed after its end',
      changes.filter(({ before }) => before !== 'PENDING').map(({ webhook }) => webhook),
    ),
    rule(
      'arrivals without an attempt',
      observed.arrivals.filter((one) => !evidence.rowOf(one)).map(({ webhook }) => webhook),
    ),
    rule('arrivals of one attempt twice', sameAttempt(arrivals)),
  ];
}

const ids = (list: { id: string }[]): string[] => list.map(({ id }) => id);

const longer = (groups: Map<string, unknown[]>, most: number): string[] =>
  [...groups].filter(([, group]) => group.length > most).map(([name]) => name);

const overcounted = (webhooks: { id: string; attempts: number }[]): string[] =>
  ids(webhooks.filter(({ attempts }) => attempts > LIMITS.maxAttempts));

function tooClose<T>(groups: Map<string, T[]>, timeOf: (item: T) => number): string[] {
  return [...groups].flatMap(([name, group]) => {
    const gaps = group.slice(1).map((item, index) => timeOf(item) - timeOf(group[index] as T));
    const shortest = Math.min(...gaps);
    return shortest < LIMITS.minIntervalMs ? [`${name} (${shortest} ms)`] : [];
  });
}

function sameAttempt(arrivals: Evidence['arrivals']): string[] {
  return [...arrivals]
    .filter(([, group]) => new Set(group.map(({ attempt }) => attempt)).size < group.length)
    .map(([name]) => name);
}

const figure = (name: string, count: number): Line => ({ name, count, offenders: null });

function rule(name: string, offenders: string[]): Line {
  const distinct = [...new Set(offenders)];
  return { name, count: distinct.length, offenders: distinct };
}
