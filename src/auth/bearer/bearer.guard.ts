import { type CanActivate, createParamDecorator, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Client } from '../../clients/client.entity.js';
import { Problem, unauthorized } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { parseToken } from '../tokens/token.js';
import { AccessTokens } from './access-tokens.js';

interface BearerRequest {
  headers: { authorization?: string };
  user?: Client;
}

interface BearerResponse {
  header(name: string, value: string): unknown;
}

/** Requires a valid access token and stores its client on the request, for {@link CurrentClient}. */
@Injectable()
export class BearerGuard implements CanActivate {
  constructor(
    private readonly tokens: AccessTokens,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<BearerRequest>();
    try {
      request.user = await this.clientOf(bearerToken(request.headers.authorization));
      return true;
    } catch (error) {
      // The challenge is set here because an embedding application may use its own error filter.
      const headers = error instanceof Problem ? error.headers : {};
      for (const [name, value] of Object.entries(headers)) http.getResponse<BearerResponse>().header(name, value);
      throw error;
    }
  }

  private async clientOf(token: string): Promise<Client> {
    const client = await this.tokens.clientOf(token);
    if (!client) throw invalidToken(this.wrongEnvironment(token) ?? 'the access token is unknown, expired or revoked');
    return client;
  }

  /** The most common mistake. The environment is readable in the token's prefix, so naming it reveals nothing. */
  private wrongEnvironment(token: string): string | null {
    const { environment: expected } = this.options;
    const environment = parseToken(token)?.environment ?? expected;
    return environment === expected
      ? null
      : `this token is for the ${environment} environment; use a ${expected} token`;
  }
}

function bearerToken(header: string | undefined): string {
  const token = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(header ?? '')?.[1];
  if (token === undefined)
    throw unauthorized(
      'the access token is missing; send Authorization: Bearer <access_token>',
      'Bearer realm="usher"',
    );
  return token;
}

/** RFC 6750 §3.1. */
const invalidToken = (reason: string): Problem =>
  unauthorized(reason, `Bearer realm="usher", error="invalid_token", error_description="${reason}"`);

/** Injects the {@link Client} that {@link BearerGuard} found. */
export const CurrentClient = createParamDecorator((_: unknown, context: ExecutionContext): Client => {
  const { user } = context.switchToHttp().getRequest<BearerRequest>();
  if (!user) throw new Error('@CurrentClient() needs @UseGuards(BearerGuard)');
  return user;
});
