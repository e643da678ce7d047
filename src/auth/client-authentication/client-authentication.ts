import { Inject, Injectable } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { InjectRepository } from '@nestjs/typeorm';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Repository } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { hasCredentials, parseBasicHeader } from '../../http/basic-credentials.js';
import { OAuthError } from '../../http/oauth-error.js';
import { NO_STORE, type OAuthRoute } from '../../http/oauth-route.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { BasicGuard } from './basic.strategy.js';
import { type Caller, FailureLimit } from './failure-limit.js';

/** The fields that client authentication adds to a request. */
export interface OAuthRequest {
  /** The authenticated client. Null if the caller used the internal credential. */
  user?: Client | null;
  /** The client id of a failed authentication, if a client with this id exists. */
  claimedClient?: string;
}

/** Client authentication (specification 5.2) of the OAuth routes, before the body is read. */
@Injectable()
export class ClientAuthentication {
  constructor(
    private readonly guard: BasicGuard,
    private readonly failures: FailureLimit,
    @InjectRepository(Client) private readonly clients: Repository<Client>,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Stores the client on the request, or throws an {@link OAuthError}. */
  async authenticate(request: FastifyRequest & OAuthRequest, reply: FastifyReply, route: OAuthRoute): Promise<void> {
    reply.headers(NO_STORE);
    checkSingleHeader(request);
    const caller = callerOf(request);
    if (caller) await this.failures.check(caller);
    try {
      await this.identify(request, reply, route);
    } catch (error) {
      if (caller && isInvalidClient(error)) await this.recordFailure(request, caller);
      throw error;
    }
  }

  private async identify(
    request: FastifyRequest & OAuthRequest,
    reply: FastifyReply,
    { internal }: OAuthRoute,
  ): Promise<void> {
    if (internal && hasCredentials(request.headers.authorization, this.options.internal)) request.user = null;
    else await this.guard.canActivate(new ExecutionContextHost([request, reply]));
  }

  /** Only an existing client id goes into the log: any other text may be a secret typed into the wrong field. */
  private async recordFailure(request: OAuthRequest, caller: Caller): Promise<void> {
    const claimed = await this.clients.findOne({ where: { id: caller.clientId }, select: { id: true } });
    if (claimed) request.claimedClient = claimed.id;
    await this.failures.recordFailure(caller);
  }
}

/** With two Authorization headers it is undefined which one applies, so reject the request. */
function checkSingleHeader({ raw }: FastifyRequest): void {
  const isAuthorization = (name: string, index: number): boolean =>
    index % 2 === 0 && name.toLowerCase() === 'authorization';
  if (raw.rawHeaders.filter(isAuthorization).length > 1)
    throw new OAuthError('invalid_request', 'send exactly one Authorization header');
}

/** Uses the decoded client id, so that different encodings of one id count together. Null without credentials. */
function callerOf({ headers, ip }: FastifyRequest): Caller | null {
  const credentials = parseBasicHeader(headers.authorization).at(-1);
  return credentials ? { clientId: credentials.id, address: ip } : null;
}

const isInvalidClient = (error: unknown): boolean => error instanceof OAuthError && error.code === 'invalid_client';
