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

/** Lets a request through that carries a good access token, and notes its client for {@link CurrentClient}. */
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
      // An application of its own has another error filter than ours, and owes the challenge all the same.
      const headers = error instanceof Problem ? error.headers : {};
      for (const [name, value] of Object.entries(headers)) http.getResponse<BearerResponse>().header(name, value);
      throw error;
    }
  }

  private async clientOf(token: string): Promise<Client> {
    const client = await this.tokens.clientOf(token);
    if (!client) throw invalidToken(this.elsewhere(token) ?? 'the access token is unknown, expired or revoked');
    return client;
  }

  /** Of all mistakes the likeliest; the token says it of itself, so that telling gives nothing away. */
  private elsewhere(token: string): string | null {
    const { environment: here } = this.options;
    const environment = parseToken(token)?.environment ?? here;
    return environment === here ? null : `this token is of the ${environment} environment; this is ${here}`;
  }
}

function bearerToken(header: string | undefined): string {
  const token = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(header ?? '')?.[1];
  if (token === undefined)
    throw unauthorized('an access token is missing: send Authorization: Bearer <access_token>', 'Bearer realm="usher"');
  return token;
}

/** RFC 6750 §3.1. */
const invalidToken = (why: string): Problem =>
  unauthorized(why, `Bearer realm="usher", error="invalid_token", error_description="${why}"`);

/** Injects the {@link Client} that {@link BearerGuard} found. */
export const CurrentClient = createParamDecorator((_: unknown, context: ExecutionContext): Client => {
  const { user } = context.switchToHttp().getRequest<BearerRequest>();
  if (!user) throw new Error('@CurrentClient() needs @UseGuards(BearerGuard)');
  return user;
});
