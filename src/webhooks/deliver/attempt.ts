import type { Outcome } from '../transport/outcome.js';
import type { Webhook, WebhookStatus } from '../webhook.entity.js';

/** A moment of the database's clock, and what this process's monotonic clock said then. */
export interface Moment {
  databaseMs: number;
  monotonicMs: number;
}

/** The right to make one attempt, already counted and written down. */
export interface Claim {
  webhook: Webhook;
  attempt: number;
  at: Moment;
}

export type ClaimResult =
  | { kind: 'claimed'; claim: Claim }
  | { kind: 'not-due'; inMs: number }
  /** Nothing is left to do: it ended, or the row is gone. */
  | { kind: 'ended' };

export interface FinishedAttempt {
  claim: Claim;
  outcome: Outcome;
  /** By the database's clock. */
  endedAt: number;
}

/** Where a webhook stands after an attempt was recorded. */
export interface DeliveryState {
  status: WebhookStatus;
  nextAttemptAt: number | null;
  /** Whether it was this attempt that ended it. */
  endedWebhook: boolean;
}
