import { Body, HttpCode, Injectable, Post } from '@nestjs/common';
import { type Answer, type Certification, certify, type TestRequest } from '../../../packages/receiver/dist/tools.js';
import { ClientController, CurrentClient } from '../../auth/bearer/bearer.guard.js';
import type { Client } from '../../clients/client.entity.js';
import { countRequest, type MinuteLimit } from '../../http/minute-limit.js';
import { conflict, notFound, unprocessable, validated } from '../../http/problem.js';
import { WebhookModule } from '../webhook.module.js';
import { VERSION } from '../../values/version.js';
import { TestSender } from '../api/test-notifications.js';
import { CertificationRequest } from './certification.schemas.js';
import { UsherNamedModule } from '../../telemetry/usher-named.js';

/** Each sends six requests. */
export const CERTIFICATION_LIMIT: MinuteLimit = { name: 'certifications', count: 3, what: 'certifications' };

/** Certifies the receiver at a client's registered Notify URL. */
@Injectable()
export class Certifications extends TestSender {
  /**
   * The result says whether the receiver passed. 404 outside the sandbox, 409 during a change of the secret, 422 without a
   * Notify URL, 429 above {@link CERTIFICATION_LIMIT}.
   */
  async run(id: string): Promise<Certification> {
    if (this.options.environment !== 'sandbox') throw onlyInSandbox();
    const { notifyUrl } = await this.clients.get(id);
    if (notifyUrl === null) throw noNotifyUrl();
    const secret = await this.secrets.of(id);
    // It is not known which of the two secrets the receiver has.
    if (secret.next !== null) throw secretBeingChanged();
    await this.pending.check(id);
    countRequest(this.limits, CERTIFICATION_LIMIT, id);
    return certify((request) => this.send(notifyUrl, request), notifyUrl, secret.current, await this.clock.now());
  }

  private async send(url: string, { headers, body }: TestRequest): Promise<Answer> {
    const request = { url, headers: { ...headers, 'User-Agent': `Usher/${VERSION}` }, body };
    const { responseStatus: status, durationMs, error } = await this.post('', request);
    return { status, durationMs, fault: error ?? '' };
  }
}

@ClientController('sandbox/certifications')
export class CertificationsController {
  constructor(private readonly certifications: Certifications) {}

  /** Only with a token of the client itself. Always 200, see {@link Certifications.run}. */
  @Post()
  @HttpCode(200)
  run(@CurrentClient() { id }: Client, @Body() input: unknown) {
    validated(CertificationRequest, input ?? {});
    return this.certifications.run(id);
  }
}

const onlyInSandbox = () => notFound('certifications exist only in the sandbox');
export const noNotifyUrl = () => unprocessable('the client has no Notify URL; set one with PUT /client/notify-url');
export const secretBeingChanged = () => conflict('the secret of this client is being changed; finish that first');

/** {@link Certifications} without the route. */
@UsherNamedModule({ imports: [WebhookModule], providers: [Certifications], exports: [Certifications] })
export class CertificationModule {}

/** The REST route with which a client of a sandbox certifies its receiver. */
@UsherNamedModule({ imports: [CertificationModule], controllers: [CertificationsController] })
export class CertificationRoutesModule {}
