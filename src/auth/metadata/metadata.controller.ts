import { Controller, Get, Inject, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { notFound, Problem } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { type ServerMetadata, serverMetadata } from './server-metadata.js';

/** A scheme, a name or an address, and maybe a port: nothing that a parser would read as more than that. */
const ADDRESS = /^https?:\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d*)?$/i;

/** RFC 8414: where the endpoints are and what they take. */
@Controller('.well-known/oauth-authorization-server')
export class MetadataController {
  constructor(@Inject(USHER_OPTIONS) private readonly options: ResolvedOptions) {}

  @Get()
  metadata(@Req() request: FastifyRequest): ServerMetadata {
    return serverMetadata(this.options.publicUrl ?? this.ownAddress(request));
  }

  /** Only the sandbox believes what a request says of the address it was sent to. */
  private ownAddress({ protocol, host }: FastifyRequest): string {
    if (this.options.environment === 'production') throw notFound('USHER_AUTH_URL is not set');
    const address = `${protocol}://${host}`;
    if (!ADDRESS.test(address) || !URL.canParse(address))
      throw new Problem(400, 'Bad Request', 'the Host header is malformed');
    return new URL(address).origin;
  }
}
