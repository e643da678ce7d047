import { Injectable, Logger } from '@nestjs/common';
import { Batcher, IF_SLOW } from '../../database/statements/batcher.js';
import { isDatabaseDown } from '../../database/errors.js';
import type { Span } from '@opentelemetry/api';
import { NotificationSender, type SignedRequest } from '../transport/notification-sender.js';
import { lineOf } from '../transport/outcome.js';
import {
  type Claim,
  type ClaimResult,
  type Moment,
  type DeliveryState,
  type FinishedAttempt,
  type NoAttempt,
} from './claim.js';
import { DeliveryEvents, describeOutcome, inAttemptSpan } from './delivery-events.js';
import { ClaimStore, thisMoment } from './claim.store.js';
import { DatabaseOutage } from './database-outage.js';
import { OutcomeStore } from './outcome.store.js';
import { signedRequest, SigningSecrets } from './signing.js';

export type DeliveryResult =
  | NoAttempt
  | { kind: 'delivered'; line: string; attempt: number }
  | { kind: 'failed'; line: string; attempt: number; dueInMs: number }
  | { kind: 'exhausted'; line: string; attempt: number };

/** A process paused for longer than this between claim and send releases the claim, because its lease may end. */
const STALE_CLAIM_MS = 5_000;
/** When a released webhook is looked at again; its row then says when it is due. */
const RELEASED_MS = 1_000;

/** How many recordings run at the same time. One that waits for a locked row does not hold up the others. */
const MAX_RECORDING = 4;

/** One attempt of one webhook: claim → sign → send → record. */
@Injectable()
export class Delivery {
  private readonly logger = new Logger('Usher Delivery');
  private readonly claims: Batcher<string, ClaimResult>;
  private readonly records: Batcher<FinishedAttempt, DeliveryState>;

  constructor(
    private readonly claimStore: ClaimStore,
    outcomeStore: OutcomeStore,
    private readonly secrets: SigningSecrets,
    private readonly sender: NotificationSender,
    private readonly events: DeliveryEvents,
    private readonly outage: DatabaseOutage,
  ) {
    this.claims = new Batcher((ids) => claimStore.claim(ids));
    this.records = new Batcher((finished) => outcomeStore.record(finished), MAX_RECORDING, IF_SLOW);
  }

  /** Call it before the first attempt, whose claim would otherwise wait while the HTTP client is loaded. */
  async prepare(): Promise<void> {
    await this.sender.prepare();
  }

  async attempt(webhookId: string): Promise<DeliveryResult> {
    const answer = await this.claims.run(webhookId);
    if (answer.kind !== 'claimed') return answer;
    const { claim } = answer;
    return inAttemptSpan(claim, async (span) => {
      const request = await this.sign(claim).catch((error: unknown) => this.cannotBe('signed', claim, error));
      if (request === null || isStale(claim.at)) return this.release(claim);
      return this.send(claim, request, span);
    });
  }

  private async sign({ webhook, attempt, at, sealedSecrets }: Claim): Promise<SignedRequest> {
    const { id, clientId, notifyUrl: url, body } = webhook;
    const secret = await this.secrets.of(clientId, sealedSecrets);
    return signedRequest(secret, { id, attempt, url, body: Buffer.from(body) }, databaseTime(at));
  }

  /**
   * The secret cannot be read or decrypted, or this process could not open a socket. This is not the receiver's fault, so it
   * does not count as an attempt.
   */
  private cannotBe(done: 'signed' | 'sent', { webhook }: Claim, error: unknown): null {
    if (isDatabaseDown(error)) void this.outage.begin(error);
    else this.logger.error(`webhook ${webhook.id} cannot be ${done}: ${(error as Error).message}`);
    return null;
  }

  private async release(claim: Claim): Promise<DeliveryResult> {
    await this.outage.untilStored(claim, () => this.claimStore.release(claim));
    return { kind: 'deferred', inMs: RELEASED_MS };
  }

  private async send(claim: Claim, request: SignedRequest, span: Span): Promise<DeliveryResult> {
    const outcome = await this.sender.send(request).catch((error: unknown) => this.cannotBe('sent', claim, error));
    if (outcome === null) return this.release(claim);
    describeOutcome(span, outcome);
    const endedMonotonicMs = performance.now();
    const endedAt = Math.ceil(databaseTime(claim.at, endedMonotonicMs));
    const summary = { line: lineOf(outcome), attempt: claim.attempt };
    const finished = { claim, outcome, endedAt, signedWith: request.signedWith };
    const state = await this.outage.untilStored(claim, () => this.records.run(finished));
    this.events.attemptEnded(finished, state);
    if (outcome.kind === 'delivered') return { kind: 'delivered', ...summary };
    return afterFailure(state, summary, endedAt + performance.now() - endedMonotonicMs);
  }
}

/** `now` is on the database's clock. */
function afterFailure(
  { status, nextAttemptAt }: DeliveryState,
  summary: { line: string; attempt: number },
  now: number,
): DeliveryResult {
  if (status === 'SUCCESS') return { kind: 'ended' };
  if (status === 'FAILED') return { kind: 'exhausted', ...summary };
  return { kind: 'failed', ...summary, dueInMs: (nextAttemptAt ?? now) - now };
}

/** By either clock: on Linux the monotonic one stands still while the machine is suspended. */
function isStale({ monotonicMs, wallMs }: Moment): boolean {
  const now = thisMoment();
  return Math.max(now.monotonicMs - monotonicMs, now.wallMs - wallMs) > STALE_CLAIM_MS;
}

/** The database's time at the moment, plus what has passed since then on the monotonic clock. */
const databaseTime = ({ databaseMs, monotonicMs }: Moment, now = performance.now()): number =>
  databaseMs + now - monotonicMs;
