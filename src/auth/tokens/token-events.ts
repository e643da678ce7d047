import { Injectable } from '@nestjs/common';
import { Counter } from 'prom-client';
import { AuditLog } from '../../audit/audit.module.js';
import { FailureCounts } from '../../audit/failure-counts.js';
import { addressOf } from '../../audit/request-actor.js';
import { routeOf } from '../../http/exchange.js';
import { MetricsRegistry } from '../../metrics/metrics.module.js';
import type { OAuthRequest } from '../client-authentication/client-authentication.js';

const TOKEN_ENDPOINTS = ['/auth/token', '/auth/refresh'] as const;
export type TokenEndpoint = (typeof TOKEN_ENDPOINTS)[number];

interface TokenSubject {
  client: string;
  grant: string;
}

/** The errors of a caller that is not authenticated. */
const AUTHENTICATION_ERRORS = ['invalid_client', 'slow_down'];

/** Writes token events to the audit log and counts them in the metrics. */
@Injectable()
export class TokenEvents {
  private readonly issuedTokens: Counter<'endpoint'>;
  private readonly refusedRequests: Counter<'endpoint' | 'error'>;

  constructor(
    private readonly audit: AuditLog,
    private readonly failures: FailureCounts,
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
    for (const endpoint of TOKEN_ENDPOINTS) this.issuedTokens.inc({ endpoint }, 0);
  }

  issued({ client, grant }: TokenSubject): void {
    this.audit.log('token.issued', { client, grant });
    this.issuedTokens.inc({ endpoint: '/auth/token' });
  }

  refreshed({ client, grant }: TokenSubject, endpoint: TokenEndpoint): void {
    this.audit.log('token.refreshed', { client, grant });
    this.issuedTokens.inc({ endpoint });
  }

  refused(request: OAuthRequest, error: string): void {
    const path = routeOf(request);
    this.audit.log('token.refused', {
      client: request.user?.id ?? request.claimedClient ?? null,
      error,
      path,
      address: addressOf(request) ?? 'unknown',
    });
    this.refusedRequests.inc({ endpoint: path ?? '', error });
    if (request.user === undefined && AUTHENTICATION_ERRORS.includes(error)) this.countFailure(request, error);
  }

  private countFailure(request: OAuthRequest, error: string): void {
    const { claimedClient } = request;
    this.failures.count({
      action: 'client.authentication-failed',
      subject: claimedClient === undefined ? null : `client:${claimedClient}`,
      address: addressOf(request),
      isBlocked: error === 'slow_down',
    });
  }
}
