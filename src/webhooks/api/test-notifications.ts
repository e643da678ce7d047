import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { Client } from '../../clients/client.entity.js';
import { ClientsService } from '../../clients/clients.service.js';
import { named } from '../../http/operation.js';
import { Problem, validated } from '../../http/problem.js';
import type { Limiter } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { NOTIFY_ORDER_COMPLETION } from '../../protocol/notification.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Rate } from '../../values/duration.js';
import { newId, orderKey, type Environment } from '../../values/identifier.js';
import { signedRequest, SigningSecrets } from '../deliver/signing.js';
import { NotificationSender } from '../transport/notification-sender.js';
import { type Outcome, errorOf } from '../transport/outcome.js';
import { withoutPrivateAnswer } from './client-view.js';
import { NOTIFICATION_EXAMPLE } from './notification.schema.js';

/** Per client: enough to try things out, too little to make others' servers suffer. */
const TEST_LIMIT: Rate = { count: 10, seconds: 60 };

/** Sends a client a sample, with the guard, the sender and the signature of real notifications, and no trace of it. */
@Injectable()
export class TestNotifications {
  private readonly limiter: Limiter;

  constructor(
    limits: Limits,
    private readonly clients: ClientsService,
    private readonly secrets: SigningSecrets,
    private readonly sender: NotificationSender,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.limiter = limits.limiter('test-notifications', TEST_LIMIT);
  }

  /** `input` is a {@link TestRequest}; 400 for a bad Notify URL, 422 without any, 429 after {@link TEST_LIMIT}. */
  async send(client: Client, input: unknown): Promise<TestResult> {
    const url = await this.notifyUrl(client, validated(TestRequest, input ?? {}).notifyUrl);
    await this.count(client);
    const now = Date.now();
    const id = newId(this.options.environment, now);
    const body = sampleBody(this.options.environment, now);
    const request = signedRequest(await this.secrets.of(client.id), { id, attempt: 1, url, body });
    const outcome = await this.sender.send({ ...request, headers: { ...request.headers, ...TEST_HEADER } });
    return resultOf(id, url, outcome);
  }

  private async notifyUrl({ id }: Client, given?: string): Promise<string> {
    if (given === undefined) return this.clients.registeredNotifyUrl(id);
    this.clients.checkNotifyUrlField(given);
    return given;
  }

  private async count({ id }: Client): Promise<void> {
    const wait = await this.limiter.count(id);
    if (wait > 0)
      throw new Problem(429, 'Too Many Requests', `only ${TEST_LIMIT.count} tests a minute are sent`).with({
        'Retry-After': String(wait),
      });
  }
}

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
