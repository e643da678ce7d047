import type { Outcome } from '../transport/outcome.js';
import type { Webhook, WebhookStatus } from '../webhook.entity.js';

/** The same moment on the database's clock, and on the monotonic clock and the wall clock of this process. */
export interface Moment {
  databaseMs: number;
  monotonicMs: number;
  wallMs: number;
}

export type ClaimedWebhook = Pick<
  Webhook,
  'id' | 'referenceId' | 'clientId' | 'notifyUrl' | 'usesClientUrl' | 'body' | 'createdAt' | 'resendOf' | 'requestId'
>;

/** The right to make one attempt, which is already counted and recorded. */
export interface Claim {
  webhook: ClaimedWebhook;
  attempt: number;
  at: Moment;
  /** Whether the client had a failing host at the claim. Only then a success must also be recorded for its host. */
  hasFailingHost: boolean;
  /** The client's valid secrets at the claim, encrypted. Without one: null, or on Postgres a space. */
  sealedSecrets: string | null;
}

export type NoAttempt =
  | { kind: 'deferred'; inMs: number }
  /** Nothing is left to do: the webhook has ended, or a pause holds it. */
  | { kind: 'ended' }
  /** The database has no such webhook: its client was erased, or its job is of another application. */
  | { kind: 'missing' };

export type ClaimResult = { kind: 'claimed'; claim: Claim } | NoAttempt;

export interface FinishedAttempt {
  claim: Claim;
  outcome: Outcome;
  signedWith?: string | undefined;
  /** On the database's clock. */
  endedAt: number;
}

/** The state of a webhook after an attempt was recorded. */
export interface DeliveryState {
  status: WebhookStatus;
  nextAttemptAt: number | null;
  /** Whether this attempt ended the webhook. */
  endedWebhook: boolean;
}
