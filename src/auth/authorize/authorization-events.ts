import { Injectable } from '@nestjs/common';
import { Counter } from 'prom-client';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';

/** How an authorization request ended: with a code, or with one of the errors of RFC 6749 §4.1.2.1. */
@Injectable()
export class AuthorizationEvents {
  private readonly responses: Counter<'result'>;

  constructor(registry: MetricsRegistry) {
    this.responses = new Counter({
      name: 'usher_authorization_responses_total',
      help: 'Responses to authorization requests, by result: code, or the error.',
      labelNames: ['result'],
      registers: [registry],
    });
    for (const result of ['code', 'access_denied']) this.responses.inc({ result }, 0);
  }

  responded(result: string): void {
    this.responses.inc({ result });
  }
}
