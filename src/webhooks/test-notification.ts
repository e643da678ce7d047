import { z } from 'zod';
import { newId, orderKey, type Environment } from '../core/identifier.js';
import { NOTIFY_ORDER_COMPLETION } from '../core/notification.js';
import { named } from '../http/operation.js';
import { withoutPrivateAnswer } from './client-view.js';
import { NOTIFICATION_EXAMPLE } from './notification.schema.js';
import type { Outcome } from './outcome.js';
import { errorOf } from './outcome-line.js';

/** The body of `POST /webhooks/test`. */
export const TestRequest = z
  .object({
    notifyUrl: z
      .string()
      .optional()
      .meta({ description: 'Where to send it. Left out: the Notify URL registered for the client.' }),
  })
  .register(named, { id: 'TestRequest' });

export const TestResult = z
  .object({
    id: z.string().meta({ description: 'X-Webhook-Id of the test; it is not among the webhooks.' }),
    notifyUrl: z.string(),
    outcome: z.enum(['delivered', 'refused', 'timed-out', 'unreachable', 'blocked']),
    responseStatus: z.int().nullable(),
    durationMs: z.int(),
    phase: z.string().meta({ description: 'How far it came: dns, connect, tls, headers, body.' }),
    address: z.string().nullable().meta({ description: 'Connected to; null where it is private.' }),
    error: z.string().nullable().meta({ description: 'Why it failed.' }),
    responseSnippet: z
      .string()
      .nullable()
      .meta({ description: 'The beginning of the answer’s body, at most 1 KiB; null where the address is private.' }),
  })
  .register(named, { id: 'TestResult' });
export type TestResult = z.infer<typeof TestResult>;

/** The mark that is signed, beside {@link TEST_HEADER}, which is not. */
const TEST_MARK = { test: true };
export const TEST_HEADER = { 'X-Webhook-Test': 'true' };

/** A notification of an order that does not exist. */
export function sampleBody(environment: Environment, now: number): Buffer {
  const at = new Date(now).toISOString();
  const key = orderKey(newId(environment, now));
  const data = { ...NOTIFICATION_EXAMPLE.data, key, createdAt: at, lastUpdatedAt: at };
  return Buffer.from(JSON.stringify({ eventType: NOTIFY_ORDER_COMPLETION, ...TEST_MARK, data }));
}

/** An outcome as the client may see it. */
export function resultOf(id: string, notifyUrl: string, outcome: Outcome): TestResult {
  const { kind, durationMs, phase, address, snippet } = outcome;
  const responseStatus = 'status' in outcome ? outcome.status : null;
  const found = { address, error: errorOf(outcome), responseSnippet: snippet };
  return { id, notifyUrl, outcome: kind, responseStatus, durationMs, phase, ...withoutPrivateAnswer(found) };
}
