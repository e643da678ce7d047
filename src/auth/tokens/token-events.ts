import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { Counter } from 'prom-client';
import { AuditLog } from '../../audit/audit.module.js';
import { routeOf } from '../../http/exchange.js';
import { MetricsRegistry } from '../../metrics/metrics.module.js';
import type { OAuthRequest } from '../client-authentication/client-authentication.js';

interface TokenSubject {
  client: string;
  grant: string;
}

/** Writes token events to the audit log and counts them in the metrics. */
@Injectable()
export class TokenEvents {
  private readonly issuedTokens: Counter<'endpoint'>;
  private readonly refusedRequests: Counter<'endpoint' | 'error'>;

  constructor(
    private readonly audit: AuditLog,
    registry: MetricsRegistry,
  ) {
    const registers = [registry];
    this.issuedTokens = new Counter({
      name: 'usher_tokens_issued_total',
      help: 'Access tokens issued, by endpoint.',
      labelNames: ['endpoint'],
      registers,
    });
    this.refusedRequests = new Counter({
      name: 'usher_token_refusals_total',
      help: 'Requests rejected by an OAuth endpoint, by endpoint and OAuth error.',
      labelNames: ['endpoint', 'error'],
      registers,
    });
    for (const endpoint of ['/auth/token', '/auth/refresh']) this.issuedTokens.inc({ endpoint }, 0);
  }

  issued({ client, grant }: TokenSubject): void {
    this.audit.record('token.issued', { client, grant });
    this.issuedTokens.inc({ endpoint: '/auth/token' });
  }

  refreshed({ client, grant }: TokenSubject): void {
    this.audit.record('token.refreshed', { client, grant });
    this.issuedTokens.inc({ endpoint: '/auth/refresh' });
  }

  refused(request: OAuthRequest, error: string): void {
    const path = routeOf(request);
    const { ip = '' } = request;
    this.audit.record('token.refused', {
      client: request.user?.id ?? request.claimedClient ?? null,
      error,
      path,
      address: isIP(ip) === 0 ? 'unknown' : ip,
    });
    this.refusedRequests.inc({ endpoint: path ?? '', error });
  }
}
