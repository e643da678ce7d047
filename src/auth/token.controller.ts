import { Body, Controller, HttpCode, Post, Req } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { Client } from '../clients/client.entity.js';
import type { Parameters } from '../core/request-body.js';
import { OAUTH_ROUTE } from '../http/oauth-route.js';
import type { TokenResponse } from './token.schemas.js';
import { TokenService } from './token.service.js';

/** What of the request the token endpoints need: the client that ClientGate let in. */
export interface ClientRequest {
  user: Client;
}

@Controller('auth')
export class TokenController {
  constructor(private readonly tokens: TokenService) {}

  /** Specification 4.1. */
  @Post('token')
  @HttpCode(200)
  @RouteConfig(OAUTH_ROUTE)
  token(@Req() { user }: ClientRequest, @Body() parameters: Parameters): Promise<TokenResponse> {
    return this.tokens.token(user, parameters);
  }

  /** Specification 4.2. */
  @Post('refresh')
  @HttpCode(200)
  @RouteConfig(OAUTH_ROUTE)
  refresh(@Req() { user }: ClientRequest, @Body() parameters: Parameters): Promise<TokenResponse> {
    return this.tokens.refresh(user, parameters);
  }
}
