import { type ArgumentsHost, Catch, type ExceptionFilter, Injectable } from '@nestjs/common';
import { logServerError, oauthCodeOf, problemOf, sendOAuthError } from '../http/error-response.js';
import type { HttpResponse } from '../http/exchange.js';
import type { OAuthRequest } from './client-authentication/client-authentication.js';
import { TokenEvents } from './tokens/token.service.js';

/** Answers the errors of the OAuth routes as RFC 6749 §5.2 has it, whatever filters the application has. */
@Catch()
@Injectable()
export class OAuthErrorFilter implements ExceptionFilter {
  constructor(private readonly events: TokenEvents) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<OAuthRequest>();
    const problem = problemOf(error);
    const code = oauthCodeOf(error, problem);
    if (problem.getStatus() >= 500) logServerError(request, error);
    else this.events.refused(request, code);
    sendOAuthError(http.getResponse<HttpResponse>(), code, problem);
  }
}
