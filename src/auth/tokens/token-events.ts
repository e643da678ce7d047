import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Counter } from 'prom-client';
import { AuditLog } from '../../audit/audit.module.js';
import { oauthRoute } from '../../http/oauth-route.js';
import { MetricsRegistry } from '../../metrics/metrics.module.js';
import type { AdmittedRequest } from '../client-authentication/client-gate.js';

interface TokenSubject {
  client: string;
  grant: string;
}

/** What happens to tokens, told to the audit log and counted. */
@Injectable()
export class TokenEvents {
  private readonly issues: Counter<'endpoint'>;
  private readonly refusals: Counter<'endpoint' | 'error'>;

  constructor(
    private readonly audit: AuditLog,
    registry: MetricsRegistry,
  ) {
    const registers = [registry];
    this.issues = new Counter({
      name: 'usher_tokens_issued_total',
      help: 'Access tokens issued, by the endpoint they were asked of.',
      labelNames: ['endpoint'],
      registers,
    });
    this.refusals = new Counter({
      name: 'usher_token_refusals_total',
      help: 'Requests that an OAuth endpoint refused, by endpoint and OAuth error.',
      labelNames: ['endpoint', 'error'],
      registers,
    });
    for (const endpoint of ['/auth/token', '/auth/refresh']) this.issues.inc({ endpoint }, 0);
  }

  issued({ client, grant }: TokenSubject): void {
    this.audit.record('token.issued', { client, grant });
    this.issues.inc({ endpoint: '/auth/token' });
  }

  refreshed({ client, grant }: TokenSubject): void {
    this.audit.record('token.refreshed', { client, grant });
    this.issues.inc({ endpoint: '/auth/refresh' });
  }

  refused(request: FastifyRequest & AdmittedRequest, error: string): void {
    const route = oauthRoute(request);
    if (!route) return;
    const path = request.routeOptions.url ?? null;
    this.audit.record('token.refused', {
      client: request.user?.id ?? request.claimedClient ?? null,
      error,
      path,
      address: isIP(request.ip) === 0 ? 'unknown' : request.ip,
    });
    this.refusals.inc({ endpoint: path ?? '', error });
  }
}
