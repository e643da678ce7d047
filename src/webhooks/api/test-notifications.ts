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
import { newId } from '../../values/identifier.js';
import { signedRequest, SigningSecrets } from '../deliver/signing.js';
import { NotificationSender, type SignedRequest } from '../transport/notification-sender.js';
import { diagnosisOf } from '../transport/diagnosis.js';
import { failureOf } from '../transport/outcome.js';
import { AttemptView } from '../webhook-view.js';
import { hidePrivateResponse } from './client-view.js';

/** Low, so that a client cannot use Usher to flood other servers. */
export const TEST_LIMIT: MinuteLimit = { name: 'test-notifications', count: 10, what: 'tests' };

/** Sends notifications that are tests, with the guard and the sender of real ones. Nothing is stored. */
@Injectable()
export abstract class TestSender {
  constructor(
    protected readonly limits: Limits,
    protected readonly clients: ClientsService,
    protected readonly secrets: SigningSecrets,
    private readonly sender: NotificationSender,
    protected readonly pending: PendingLimit,
    protected readonly clock: DatabaseClock,
    @Inject(USHER_OPTIONS) protected readonly options: ResolvedOptions,
  ) {}

  /** A private address is not shown. */
  protected async post(id: string, request: SignedRequest): Promise<TestResult> {
    const outcome = await this.sender.send(request);
    const { kind, durationMs, phase, address, snippet } = outcome;
    const responseStatus = 'status' in outcome ? outcome.status : null;
    const failure = failureOf(outcome);
    const diagnosis = failure && diagnosisOf(failure.diagnosis);
    const details = { address, error: failure?.error ?? null, responseSnippet: snippet };
    const found = hidePrivateResponse(details, this.options.environment);
    return { id, notifyUrl: request.url, outcome: kind, responseStatus, durationMs, phase, ...found, diagnosis };
  }
}

/** Sends a test notification to one receiver of a client. */
@Injectable()
export class TestNotifications extends TestSender {
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
    return this.post(id, { ...request, headers: { ...headers, ...TEST_MARK } });
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
