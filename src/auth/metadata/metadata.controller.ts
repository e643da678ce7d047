import { Controller, Get, Inject, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { notFound, Problem } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { type ServerMetadata, serverMetadata } from './server-metadata.js';

/** A scheme, a host and an optional port. A user, a path or a query is not allowed. */
const BASE_URL = /^https?:\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d*)?$/i;

/** Authorization server metadata (RFC 8414). */
@Controller('.well-known/oauth-authorization-server')
export class MetadataController {
  constructor(@Inject(USHER_OPTIONS) private readonly options: ResolvedOptions) {}

  @Get()
  metadata(@Req() request: FastifyRequest): ServerMetadata {
    return serverMetadata(this.options.authUrl ?? this.requestBaseUrl(request));
  }

  /** Only the sandbox trusts the Host header of the request. */
  private requestBaseUrl({ protocol, host }: FastifyRequest): string {
    if (this.options.environment === 'production') throw notFound('USHER_AUTH_URL is not set');
    const baseUrl = `${protocol}://${host}`;
    if (!BASE_URL.test(baseUrl) || !URL.canParse(baseUrl))
      throw new Problem(400, 'Bad Request', 'the Host header is malformed');
    return new URL(baseUrl).origin;
  }
}
