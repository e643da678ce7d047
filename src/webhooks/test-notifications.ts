import { Inject, Injectable } from '@nestjs/common';
import type { Client } from '../clients/client.entity.js';
import { ClientsService } from '../clients/clients.service.js';
import type { Config } from '../config.js';
import { CONFIG } from '../config.module.js';
import { newId } from '../core/identifier.js';
import type { Rate } from '../core/rate.js';
import { Problem } from '../http/problem.js';
import { validated } from '../http/validated.js';
import type { Limiter } from '../limits/limiter.js';
import { Limits } from '../limits/limits.module.js';
import { NotificationSender } from './notification-sender.js';
import { signedRequest } from './signed-request.js';
import { SigningSecrets } from './signing-secrets.js';
import { resultOf, sampleBody, TEST_HEADER, TestRequest, type TestResult } from './test-notification.js';

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
    @Inject(CONFIG) private readonly config: Config,
  ) {
    this.limiter = limits.limiter('test-notifications', TEST_LIMIT);
  }

  /** `input` is a {@link TestRequest}; 400 for a bad Notify URL, 422 without any, 429 after {@link TEST_LIMIT}. */
  async send(client: Client, input: unknown): Promise<TestResult> {
    const url = await this.notifyUrl(client, validated(TestRequest, input ?? {}).notifyUrl);
    await this.count(client);
    const now = Date.now();
    const id = newId(this.config.environment, now);
    const body = sampleBody(this.config.environment, now);
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
