import { Body, HttpCode, Inject, Injectable, Module, Post } from '@nestjs/common';
import { ClientController, CurrentClient } from '../../auth/bearer/bearer.guard.js';
import type { Client } from '../../clients/client.entity.js';
import { ClientsService } from '../../clients/clients.service.js';
import { PendingLimit } from '../pending-limit.js';
import { conflict, notFound, type Problem, tooManyPerMinute, unprocessable, validated } from '../../http/problem.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Rate } from '../../values/duration.js';
import { SigningSecrets } from '../deliver/signing.js';
import { NotificationSender } from '../transport/notification-sender.js';
import { WebhookModule } from '../webhook.module.js';
import { type Certification, CertificationRequest } from './certification.schema.js';
import { certify } from './certify.js';

/** Per client. Each sends six requests. */
const LIMIT: Rate = { count: 3, seconds: 60 };

/** Certifies the receiver at a client's registered Notify URL, with the guard and the sender of real notifications. */
@Injectable()
export class Certifications {
  private readonly limiter: Limiter;

  constructor(
    limits: Limits,
    private readonly clients: ClientsService,
    private readonly secrets: SigningSecrets,
    private readonly sender: NotificationSender,
    private readonly pending: PendingLimit,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.limiter = limits.limiter('certifications', LIMIT);
  }

  /** 404 outside of the sandbox, 409 during a change of the secret, 422 without a Notify URL, 429 above {@link LIMIT}. */
  async run({ id }: Client, input: unknown): Promise<Certification> {
    if (this.options.environment !== 'sandbox') throw onlyInSandbox();
    validated(CertificationRequest, input ?? {});
    const { notifyUrl } = await this.clients.get(id);
    if (notifyUrl === null) throw noNotifyUrl();
    const secret = await this.secrets.of(id);
    // Which of its two secrets the receiver has is not known.
    if (secret.next !== null) throw secretBeingChanged();
    await this.pending.check(id);
    const wait = this.limiter.count(limitKey(id));
    if (wait > 0) throw tooManyCertifications(wait);
    return certify(this.sender, notifyUrl, secret.current);
  }
}

export const onlyInSandbox = (): Problem => notFound('certifications exist only in the sandbox');
export const noNotifyUrl = (): Problem => unprocessable('the client has no Notify URL; ask the operator to set one');
export const secretBeingChanged = (): Problem =>
  conflict('the secret of this client is being changed; finish that first');
export const tooManyCertifications = (waitSeconds?: number): Problem =>
  tooManyPerMinute(LIMIT.count, 'certifications', waitSeconds);

@ClientController('sandbox/certifications')
export class CertificationsController {
  constructor(private readonly certifications: Certifications) {}

  /** Only with a token of the client itself. Always 200; the result says whether the receiver passed. */
  @Post()
  @HttpCode(200)
  run(@CurrentClient() client: Client, @Body() body: unknown): Promise<Certification> {
    return this.certifications.run(client, body);
  }
}

/** The REST route with which a client of a sandbox certifies its receiver. */
@Module({
  imports: [WebhookModule],
  controllers: [CertificationsController],
  providers: [Certifications],
})
export class CertificationRoutesModule {}
