import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { sampleBody, TEST_MARK } from '../../../packages/receiver/dist/tools.js';
import type { Client } from '../../clients/client.entity.js';
import { ClientsService } from '../../clients/clients.service.js';
import { PendingLimit } from '../pending-limit.js';
import { DatabaseClock } from '../../database/database-clock.js';
import { named } from '../../http/operation.js';
import { countRequest, type MinuteLimit } from '../../http/minute-limit.js';
import { validated } from '../../http/problem.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { newId, type Environment } from '../../values/identifier.js';
import { signedRequest, SigningSecrets } from '../deliver/signing.js';
import { NotificationSender } from '../transport/notification-sender.js';
import { diagnosisOf } from '../transport/diagnosis.js';
import { failureOf, type Outcome } from '../transport/outcome.js';
import { AttemptView } from '../webhook-view.js';
import { hidePrivateResponse } from './client-view.js';

/** Low, so that a client cannot use Usher to flood other servers. */
export const TEST_LIMIT: MinuteLimit = { name: 'test-notifications', count: 10, what: 'tests' };

/** Sends a test notification with the guard, sender and signature of real notifications. Nothing is stored. */
@Injectable()
export class TestNotifications {
  constructor(
    private readonly limits: Limits,
    private readonly clients: ClientsService,
    private readonly secrets: SigningSecrets,
    private readonly sender: NotificationSender,
    private readonly pending: PendingLimit,
    private readonly clock: DatabaseClock,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * `input` is a {@link TestRequest}. 400 for an invalid Notify URL, 422 without one, 429 above {@link TEST_LIMIT} or while
   * too many webhooks of the client are pending.
   */
  async send(client: Client, input: unknown): Promise<TestResult> {
    const { notifyUrl } = validated(TestRequest, input ?? {}, 'body', (given) =>
      this.clients.notifyUrlErrors(given.notifyUrl),
    );
    const url = notifyUrl ?? (await this.clients.registeredNotifyUrl(client.id));
    await this.pending.check(client.id);
    return this.sendTo(client, url);
  }

  /**
   * Sends a test notification to a Notify URL that was checked. 429 above {@link TEST_LIMIT}. Pending webhooks do not matter,
   * because a client whose receiver failed for long must be able to change its URL.
   */
  async sendTo(client: Pick<Client, 'id'>, url: string): Promise<TestResult> {
    countRequest(this.limits, TEST_LIMIT, client.id);
    const now = await this.clock.now();
    const id = newId(this.options.environment, now);
    const body = sampleBody(newId(this.options.environment, now), now);
    const { headers, ...request } = signedRequest(await this.secrets.of(client.id), { id, attempt: 1, url, body }, now);
    const outcome = await this.sender.send({ ...request, headers: { ...headers, ...TEST_MARK } });
    return resultOf(this.options.environment, id, url, outcome);
  }
}

export const TestRequest = named(
  'TestRequest',
  z.strictObject({
    notifyUrl: z.string().optional().describe('Where to send it. Default: the Notify URL registered for the client.'),
  }),
);

export const TestResult = named(
  'TestResult',
  z.object({
    id: z.string().describe('The X-Webhook-Id of the test. It is not in the list of notifications.'),
    notifyUrl: z.string(),
    outcome: z.enum(['delivered', 'refused', 'timed-out', 'unreachable', 'blocked']),
    ...AttemptView.pick({ responseStatus: true, address: true, diagnosis: true, responseSnippet: true }).shape,
    durationMs: z.int(),
    phase: z.string().describe('The last phase reached: dns, connect, tls, headers or body.'),
    error: z.string().nullable().describe('Why the test failed.'),
  }),
);
export type TestResult = z.infer<typeof TestResult>;

export function resultOf(environment: Environment, id: string, notifyUrl: string, outcome: Outcome): TestResult {
  const { kind, durationMs, phase, address, snippet } = outcome;
  const responseStatus = 'status' in outcome ? outcome.status : null;
  const failure = failureOf(outcome);
  const diagnosis = failure && diagnosisOf(failure.diagnosis);
  const found = hidePrivateResponse({ address, error: failure?.error ?? null, responseSnippet: snippet }, environment);
  return { id, notifyUrl, outcome: kind, responseStatus, durationMs, phase, ...found, diagnosis };
}
