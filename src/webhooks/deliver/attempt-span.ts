import { type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { inSpan, orderAttributes } from '../../tracing/tracing.js';
import { lineOf, type Outcome } from '../transport/outcome.js';
import type { Claim } from './attempt.js';

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
