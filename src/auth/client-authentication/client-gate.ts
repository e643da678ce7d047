import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { Inject, Injectable } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DataSource, Repository } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { hasCredentials, parseBasicHeader } from '../../http/basic-credentials.js';
import { OAuthError } from '../../http/oauth-error.js';
import { NO_STORE, type OAuthRoute } from '../../http/oauth-route.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { BasicGuard } from './basic.strategy.js';
import { type Attempt, FailureLimit } from './failure-limit.js';

/** What the gate notes of a request. */
export interface AdmittedRequest {
  /** The client that authenticated; null: the internal credential did. */
  user?: Client | null;
  /** The client that somebody else claimed to be, where there is such a client. */
  claimedClient?: string;
}

/** Client authentication (specification 5.2) of the OAuth routes, before the body is read. */
@Injectable()
export class ClientGate {
  private readonly clients: Repository<Client>;

  constructor(
    private readonly guard: BasicGuard,
    private readonly failures: FailureLimit,
    @Inject(USHER_DATA_SOURCE) dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.clients = dataSource.getRepository(Client);
  }

  /** Throws an {@link OAuthError} where the request may not come in, and notes its client where it may. */
  async admit(request: FastifyRequest & AdmittedRequest, reply: FastifyReply, route: OAuthRoute): Promise<void> {
    reply.headers(NO_STORE);
    checkOneHeader(request);
    const attempt = attemptOf(request);
    if (attempt) await this.failures.check(attempt);
    try {
      await this.identify(request, reply, route);
    } catch (error) {
      if (attempt && isWrongClient(error)) await this.noteFailure(request, attempt);
      throw error;
    }
  }

  private async identify(
    request: FastifyRequest & AdmittedRequest,
    reply: FastifyReply,
    { internal }: OAuthRoute,
  ): Promise<void> {
    if (internal && hasCredentials(request.headers.authorization, this.options.internal)) request.user = null;
    else await this.guard.canActivate(new ExecutionContextHost([request, reply]));
  }

  /** An id that exists is no secret typed into the wrong field, so that only such a one is noted for the log. */
  private async noteFailure(request: AdmittedRequest, attempt: Attempt): Promise<void> {
    const claimed = await this.clients.findOne({ where: { id: attempt.clientId }, select: { id: true } });
    if (claimed) request.claimedClient = claimed.id;
    await this.failures.note(attempt);
  }
}

/** Which of two would count is anybody's guess. */
function checkOneHeader({ raw }: FastifyRequest): void {
  const isAuthorization = (name: string, index: number): boolean =>
    index % 2 === 0 && name.toLowerCase() === 'authorization';
  if (raw.rawHeaders.filter(isAuthorization).length > 1)
    throw new OAuthError('invalid_request', 'send one Authorization header');
}

/** By the decoded reading, so that one id cannot be spelt in many ways; null where nobody claims to be anybody. */
function attemptOf({ headers, ip }: FastifyRequest): Attempt | null {
  const claimed = parseBasicHeader(headers.authorization).at(-1);
  return claimed ? { clientId: claimed.id, address: ip } : null;
}

const isWrongClient = (error: unknown): boolean => error instanceof OAuthError && error.code === 'invalid_client';
