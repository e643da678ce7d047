import { Body, Controller, HttpCode, Post, Req } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { Client } from '../clients/client.entity.js';
import type { Parameters } from '../core/request-body.js';
import { INTERNAL_OAUTH_ROUTE, OAUTH_ROUTE } from '../http/oauth-route.js';
import { IntrospectionService } from './introspection.service.js';
import { RevocationService } from './revocation.service.js';
import type { Introspection } from './token.schemas.js';

@Controller('auth')
export class TokenStatusController {
  constructor(
    private readonly revocations: RevocationService,
    private readonly introspections: IntrospectionService,
  ) {}

  /** RFC 7009: 200 and nothing else, whether there was such a token or not. */
  @Post('revoke')
  @HttpCode(200)
  @RouteConfig(OAUTH_ROUTE)
  revoke(@Req() { user }: { user: Client }, @Body() parameters: Parameters): Promise<void> {
    return this.revocations.revoke(user, parameters);
  }

  /** RFC 7662. */
  @Post('introspect')
  @HttpCode(200)
  @RouteConfig(INTERNAL_OAUTH_ROUTE)
  introspect(@Req() { user }: { user: Client | null }, @Body() parameters: Parameters): Promise<Introspection> {
    return this.introspections.introspect(user, parameters);
  }
}
