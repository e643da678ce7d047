import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Inject,
  Injectable,
  Post,
  Req,
  Res,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import type { HttpResponse } from '../../http/exchange.js';
import { OAuthRoute, parametersOf, UsherRoutes } from '../../http/oauth-route.js';
import {
  BasicGuard,
  ClientAuthentication,
  type ClientRequest,
  type OAuthRequest,
} from '../client-authentication/client-authentication.js';
import { IssuedTokens } from './issued-tokens.js';
import { TokenEvents, TokenService } from './token.service.js';
import { GUIDES_URL, logServerError, oauthCodeOf, problemOf, sendOAuthError } from '../../http/error-response.js';

/** Answers the errors of the OAuth routes as RFC 6749 §5.2 has it, whatever filters the application has. */
@Catch()
@Injectable()
export class OAuthErrorFilter implements ExceptionFilter {
  constructor(
    private readonly events: TokenEvents,
    @Inject(GUIDES_URL) private readonly guides: string | null,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<OAuthRequest>();
    const problem = problemOf(error);
    const code = oauthCodeOf(error, problem);
    if (problem.getStatus() >= 500) logServerError(request, error);
    else this.events.refused(request, code);
    sendOAuthError(http.getResponse<HttpResponse>(), code, problem, this.guides);
  }
}

/**
 * The OAuth routes. They read the body and write the response themselves, so that an application's global pipes and
 * interceptors cannot change what the specification defines.
 */
@Controller('auth')
@UsherRoutes()
@UseGuards(BasicGuard)
@UseFilters(OAuthErrorFilter)
export class TokenController {
  constructor(
    private readonly authentication: ClientAuthentication,
    private readonly tokens: TokenService,
    private readonly issued: IssuedTokens,
  ) {}

  /** Specification 4.1. */
  @Post('token')
  @OAuthRoute()
  async token(@Req() request: ClientRequest, @Res() response: HttpResponse): Promise<void> {
    const issue = () => this.tokens.token(request.user, parametersOf(request), request.rememberedSecret, request);
    sendOk(response, await this.authentication.withCurrentClient(request, issue));
  }

  /** Specification 4.2. */
  @Post('refresh')
  @OAuthRoute()
  async refresh(@Req() request: ClientRequest, @Res() response: HttpResponse): Promise<void> {
    const refresh = () => this.tokens.refresh(request.user, parametersOf(request), request.rememberedSecret);
    sendOk(response, await this.authentication.withCurrentClient(request, refresh));
  }

  /** RFC 7009: an empty 200, also for an unknown token. */
  @Post('revoke')
  @OAuthRoute()
  async revoke(@Req() request: ClientRequest, @Res() response: HttpResponse): Promise<void> {
    await this.issued.revoke(request.user, parametersOf(request));
    sendOk(response, '');
  }

  /** RFC 7662. */
  @Post('introspect')
  @OAuthRoute({ internal: true })
  async introspect(@Req() request: OAuthRequest, @Res() response: HttpResponse): Promise<void> {
    sendOk(response, await this.issued.introspect(request.user ?? null, parametersOf(request)));
  }
}

function sendOk(response: HttpResponse, body: object | string): void {
  response.status(200);
  response.send(body);
}
