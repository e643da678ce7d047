import { Injectable, Logger } from '@nestjs/common';
import { Batcher } from '../../database/statements/batcher.js';
import { isDatabaseDown } from '../../database/sql.js';
import type { Span } from '@opentelemetry/api';
import { NotificationSender, type SignedRequest } from '../transport/notification-sender.js';
import { lineOf } from '../transport/outcome.js';
import type { Claim, ClaimResult, FinishedAttempt, DeliveryState } from './claim.js';
import { DeliveryEvents, describeOutcome, inAttemptSpan } from './delivery-events.js';
import { ClaimStore } from './claim.store.js';
import { DatabaseOutage } from './database-outage.js';
import { OutcomeStore } from './outcome.store.js';
import { signedRequest, SigningSecrets } from './signing.js';

export type DeliveryResult =
  | { kind: 'ended' }
  | { kind: 'delivered'; line: string; attempt: number }
  /** No attempt was made; try again after `inMs` milliseconds. */
  | { kind: 'deferred'; inMs: number }
  | { kind: 'failed'; line: string; attempt: number; dueInMs: number }
  | { kind: 'exhausted'; line: string; attempt: number };

/** A process paused for longer than this between claim and send releases the claim, because its lease may end. */
const STALE_CLAIM_MS = 5_000;
/** When a released webhook is looked at again; its row then says when it is due. */
const RELEASED_MS = 1_000;

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
    this.records = new Batcher((finished) => outcomeStore.record(finished));
  }

  /** Call it before the first attempt, whose claim would otherwise wait while the HTTP client is loaded. */
  async prepare(): Promise<void> {
    await this.sender.prepare();
  }

  async attempt(webhookId: string): Promise<DeliveryResult> {
    const answer = await this.claims.run(webhookId);
    if (answer.kind === 'ended') return answer;
    if (answer.kind === 'not-due') return { kind: 'deferred', inMs: answer.inMs };
    const { claim } = answer;
    return inAttemptSpan(claim, async (span) => {
      const request = await this.sign(claim).catch((error: unknown) => this.notSigned(claim, error));
      if (request === null || performance.now() - claim.at.monotonicMs > STALE_CLAIM_MS) return this.release(claim);
      return this.send(claim, request, span);
    });
  }

  private async sign({ webhook, attempt }: Claim): Promise<SignedRequest> {
    const { id, clientId, notifyUrl: url, body } = webhook;
    return signedRequest(await this.secrets.of(clientId), { id, attempt, url, body: Buffer.from(body) });
  }

  /** The secret cannot be read or decrypted. This is not the receiver's fault, so it does not count as an attempt. */
  private notSigned({ webhook }: Claim, error: unknown): null {
    if (isDatabaseDown(error)) void this.outage.begin(error);
    else this.logger.error(`webhook ${webhook.id} cannot be signed: ${(error as Error).message}`);
    return null;
  }

  private async release(claim: Claim): Promise<DeliveryResult> {
    await this.outage.untilStored(claim, () => this.claimStore.release(claim));
    return { kind: 'deferred', inMs: RELEASED_MS };
  }

  private async send(claim: Claim, request: SignedRequest, span: Span): Promise<DeliveryResult> {
    const outcome = await this.sender.send(request).catch((error: Error) => this.notSent(claim, error));
    if (outcome === null) return this.release(claim);
    describeOutcome(span, outcome);
    const endedMonotonicMs = performance.now();
    const endedAt = Math.ceil(claim.at.databaseMs + endedMonotonicMs - claim.at.monotonicMs);
    const summary = { line: lineOf(outcome), attempt: claim.attempt };
    const state = await this.outage.untilStored(claim, () => this.records.run({ claim, outcome, endedAt }));
    this.events.attemptEnded({ claim, outcome, endedAt }, state);
    if (outcome.kind === 'delivered') return { kind: 'delivered', ...summary };
    return afterFailure(state, summary, endedAt + performance.now() - endedMonotonicMs);
  }

  /** This process could not open a socket. */
  private notSent({ webhook }: Claim, error: Error): null {
    this.logger.error(`webhook ${webhook.id} cannot be sent: ${error.message}`);
    return null;
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
