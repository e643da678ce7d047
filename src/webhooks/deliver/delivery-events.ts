import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { Counter, Gauge, Histogram } from 'prom-client';
import { type FinalStatus, UsherEmitter, WebhookEnded } from '../../events/events.js';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';
import { inSpan, orderAttributes } from '../../telemetry/tracing.js';
import { lineOf, type Outcome, type Verdict } from '../transport/outcome.js';
import type { Webhook } from '../webhook.entity.js';
import type { Claim, DeliveryState, FinishedAttempt } from './claim.js';
import { LogLine } from '../../values/log-line.js';

const OUTCOMES: Verdict['kind'][] = ['delivered', 'refused', 'timed-out', 'unreachable', 'blocked'];
/** Up to slightly more than the specified timeout of 30 s. */
const ATTEMPT_BUCKETS_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 35];
/** From a fast first attempt to a fifth attempt that a receiver's Retry-After moved, half an hour later. */
const LATENCY_BUCKETS_S = [0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 120, 180, 300, 600, 1_200, 1_800];
/** How many clients have a label of their own. More would be costly in Prometheus. */
const TOP_CLIENTS = 10;

/** Emits {@link WebhookEnded} to the application's listeners. Deliveries do not wait for them. */
@Injectable()
export class WebhookEndedEmitter implements OnApplicationShutdown {
  private readonly logger = new Logger('Usher WebhookEndedEmitter');
  private readonly underWay = new Set<Promise<unknown>>();

  constructor(@Inject(UsherEmitter) private readonly emitter: Pick<UsherEmitter, 'hasListeners' | 'emitAndWait'>) {}

  emitAll(status: FinalStatus, webhooks: EndedWebhook[]): void {
    if (!this.emitter.hasListeners(WebhookEnded.NAME)) return;
    for (const { id, referenceId, clientId, attempts, resendOf } of webhooks) {
      const event = new WebhookEnded(id, referenceId, clientId, status, attempts, resendOf);
      const emitting = Promise.resolve()
        .then(() => this.emitter.emitAndWait(WebhookEnded.NAME, event))
        .catch((error: unknown) => this.logger.error(`a listener for ${WebhookEnded.NAME} failed: ${String(error)}`))
        .finally(() => this.underWay.delete(emitting));
      this.underWay.add(emitting);
    }
  }

  /** Waits for running listeners, while the database is still open. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.underWay);
  }
}

/** The events of deliveries. Each writes its log line and its metrics and informs the application. */
@Injectable()
export class DeliveryEvents {
  private readonly logger = new Logger('Usher delivery');
  private readonly attempts: Counter<'outcome'>;
  private readonly durations: Histogram<'outcome'>;
  private readonly finished: Counter<'status'>;
  private readonly latency: Histogram;
  private readonly failures = new FailureWindow();

  constructor(
    registry: MetricsRegistry,
    private readonly endedEmitter: WebhookEndedEmitter,
  ) {
    const registers = [registry];
    this.attempts = new Counter({
      name: 'usher_delivery_attempts_total',
      help: 'Delivery attempts that ended, by outcome.',
      labelNames: ['outcome'],
      registers,
    });
    this.durations = new Histogram({
      name: 'usher_delivery_attempt_duration_seconds',
      help: 'How long delivery attempts took, by outcome.',
      labelNames: ['outcome'],
      buckets: ATTEMPT_BUCKETS_S,
      registers,
    });
    this.finished = new Counter({
      name: 'usher_webhooks_finished_total',
      help: 'Webhooks that ended, by their last status.',
      labelNames: ['status'],
      registers,
    });
    this.latency = new Histogram({
      name: 'usher_delivery_latency_seconds',
      help: 'From the completion of an order to the end of the attempt that delivered it; without resends.',
      buckets: LATENCY_BUCKETS_S,
      registers,
    });
    const { failures } = this;
    new Gauge({
      name: 'usher_client_failed_attempts',
      help: `Failed attempts of the last 15 minutes, of the ${TOP_CLIENTS} clients with the most in this process.`,
      labelNames: ['client'],
      registers,
      collect() {
        this.reset();
        for (const [client, count] of failures.top(TOP_CLIENTS)) this.set({ client }, count);
      },
    });
    for (const outcome of OUTCOMES) this.attempts.inc({ outcome }, 0);
    for (const status of ['SUCCESS', 'FAILED']) this.finished.inc({ status }, 0);
  }

  /** The second argument is the state of the webhook after the attempt. */
  attemptEnded(
    { claim: { webhook, attempt }, outcome, endedAt }: FinishedAttempt,
    { status, endedWebhook }: DeliveryState,
  ): void {
    this.logger.log(
      new LogLine({
        webhook: webhook.id,
        reference: webhook.referenceId,
        client: webhook.clientId,
        attempt,
        outcome: lineOf(outcome),
        durationMs: Math.round(outcome.durationMs),
        phase: outcome.phase,
        address: outcome.address,
        status,
        requestId: webhook.requestId,
      }),
    );
    const { kind } = outcome;
    this.attempts.inc({ outcome: kind });
    if (kind !== 'delivered') this.failures.count(webhook.clientId);
    this.durations.observe({ outcome: kind }, outcome.durationMs / 1_000);
    if (status !== 'PENDING' && endedWebhook) {
      this.finished.inc({ status });
      this.endedEmitter.emitAll(status, [{ attempts: attempt, ...webhook }]);
    }
    const isFirst = kind === 'delivered' && webhook.resendOf === null;
    if (isFirst) this.latency.observe(Math.max(0, endedAt - webhook.createdAt) / 1_000);
  }

  /** Webhooks that ended FAILED because a crash cut off their last attempt. */
  lastAttemptsCutOff(webhooks: EndedWebhook[]): void {
    this.logger.warn(`${webhooks.length} webhook(s) ended FAILED: the process stopped during their last attempt`);
    this.finished.inc({ status: 'FAILED' }, webhooks.length);
    this.endedEmitter.emitAll('FAILED', webhooks);
  }
}

/**
 * Runs an attempt in a span: a child of its job's span, or the beginning of a trace if the retry run added the job. The
 * URL is left out, because a Notify URL may contain a secret.
 */
export function inAttemptSpan<T>({ webhook, attempt }: Claim, work: (span: Span) => Promise<T>): Promise<T> {
  return inSpan('webhook attempt', work, () => ({
    kind: SpanKind.CLIENT,
    attributes: {
      ...orderAttributes(webhook.referenceId, webhook.clientId),
      'usher.webhook.id': webhook.id,
      'usher.webhook.attempt': attempt,
      'http.request.method': 'POST',
      'server.address': new URL(webhook.notifyUrl).hostname,
    },
  }));
}

export function describeOutcome(span: Span, outcome: Outcome): void {
  span.setAttribute('usher.webhook.outcome', outcome.kind);
  if ('status' in outcome) span.setAttribute('http.response.status_code', outcome.status);
  if (outcome.kind !== 'delivered') span.setStatus({ code: SpanStatusCode.ERROR, message: lineOf(outcome) });
}

export type EndedWebhook = Pick<Webhook, 'id' | 'referenceId' | 'clientId' | 'attempts' | 'resendOf'>;

const SLOT_MS = 60_000;
const SLOTS = 15;
/** Clients counted in one slot. More than that would only cost memory: the metric shows few of them. */
const MAX_CLIENTS = 1_000;

/** Failed attempts of each client in the last 15 minutes, in slots of a minute. Its memory is bounded. */
export class FailureWindow {
  /** By the number of the slot: the failures of each client. */
  private readonly slots = new Map<number, Map<string, number>>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  count(client: string): void {
    const slot = this.dropOld();
    const failures = this.slots.get(slot) ?? new Map<string, number>();
    this.slots.set(slot, failures);
    const before = failures.get(client);
    if (before !== undefined || failures.size < MAX_CLIENTS) failures.set(client, (before ?? 0) + 1);
  }

  /** The clients with the most failures, the most first. */
  top(most: number): [client: string, failures: number][] {
    this.dropOld();
    const sums = new Map<string, number>();
    for (const failures of this.slots.values())
      for (const [client, count] of failures) sums.set(client, (sums.get(client) ?? 0) + count);
    return [...sums].sort(([, left], [, right]) => right - left).slice(0, most);
  }

  /** Returns the number of the present slot. */
  private dropOld(): number {
    const present = Math.floor(this.now() / SLOT_MS);
    for (const slot of this.slots.keys()) if (slot <= present - SLOTS) this.slots.delete(slot);
    return present;
  }
}
