import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Inject, Logger } from '@nestjs/common';
import { isDatabaseDown } from '../database/errors.js';
import { type HttpRequest, type HttpResponse, idOfRequest, setHeaders } from './exchange.js';
import { anchorOf } from './html.js';
import { OAuthError, type OAuthErrorCode } from './oauth-error.js';
import { NO_STORE } from './oauth-route.js';
import { Problem, PROBLEM_TITLES, standardProblem, unavailable } from './problem.js';
import { LogLine } from '../values/log-line.js';

export const BASIC_CHALLENGE = 'Basic realm="usher", charset="UTF-8"';

const logger = new Logger('Usher http');

/** The response to any thrown error. The cause of a 5xx goes only to the log, never to the client. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof OAuthError) return problemFromOAuth(error);
  const status = statusOf(error);
  // An upload that its client aborted has a status of 400, and ECONNRESET like a database connection that was cut.
  if (status >= 500 && isDatabaseDown(error)) return unavailable();
  if (status >= 500) return standardProblem(500, 'an internal error occurred; try again later');
  const parsersText = error instanceof HttpException ? undefined : MESSAGES[status];
  return standardProblem(status, parsersText ?? textOf(error as Error));
}

/** Where only the parser of the request can have failed. Nest makes HttpExceptions of its errors. */
export const parserProblem = (error: unknown): Problem =>
  problemOf(error instanceof HttpException ? { statusCode: error.getStatus(), message: error.message } : error);

/** A ValidationPipe gives an array of texts, and a general message beside it. An application may give plain objects instead. */
function textOf(error: Error): string {
  const response = error instanceof HttpException ? error.getResponse() : error;
  const { message = error.message } = Object(response) as { message?: unknown };
  const texts = [message].flat().map(String);
  return texts.includes('[object Object]') ? error.message : texts.join('; ');
}

/** Of what the parser of a request refuses. */
const MESSAGES: Record<number, string> = {
  400: 'the request is malformed, or its body ended early',
  413: 'the body is larger than 16 KiB',
  414: 'the URL is too long',
  415: 'send Content-Type: application/json',
};

export function statusOf(error: unknown): number {
  if (error instanceof HttpException) return error.getStatus();
  const { statusCode } = (error ?? {}) as { statusCode?: unknown };
  return typeof statusCode === 'number' && statusCode >= 400 ? statusCode : 500;
}

function problemFromOAuth(error: OAuthError): Problem {
  const { description, retryAfter } = error;
  const problem = standardProblem(error.getStatus(), description);
  if (problem.getStatus() === 401) problem.with({ 'WWW-Authenticate': BASIC_CHALLENGE });
  return retryAfter === undefined ? problem : problem.with({ 'Retry-After': String(retryAfter) });
}

/** The RFC 6749 code of an error. Another error gets the code that fits its status. */
export function oauthCodeOf(error: unknown, problem: Problem): OAuthErrorCode {
  if (error instanceof OAuthError) return error.code;
  const status = problem.getStatus();
  if (status === 429) return 'slow_down';
  return status >= 500 ? 'temporarily_unavailable' : 'invalid_request';
}

/** Injects the address of the guides, or null where none are served. */
export const GUIDES_URL = Symbol('GuidesUrl');

/** RFC 6749 §5.2. */
export const oauthBody = (error: string, description: string, guides: string | null): object => ({
  error,
  error_description: description,
  ...(guides !== null && { error_uri: `${guides}/errors#${error}` }),
});

export function sendOAuthError(response: HttpResponse, code: string, problem: Problem, guides: string | null): void {
  const status = problem.getStatus();
  setHeaders(response, { ...problem.headers, ...NO_STORE });
  response.status(status);
  response.send(oauthBody(code, problem.detail, guides));
}

/** RFC 9457. */
export function sendProblem(response: HttpResponse, problem: Problem, guides: string | null): void {
  setHeaders(response, { ...problem.headers, 'Content-Type': 'application/problem+json' });
  response.status(problem.getStatus());
  response.send(JSON.stringify(problemBody(problem, guides)));
}

/** RFC 9457 §3. */
export function problemBody(problem: Problem, guides: string | null): object {
  const { title, detail, errors, members } = problem;
  const status = problem.getStatus();
  const heading = PROBLEM_TITLES[status];
  const type = guides === null || heading === undefined ? 'about:blank' : `${guides}/errors#${anchorOf(heading)}`;
  return { type, title, status, detail, ...(errors && { errors }), ...members };
}

const DOWN_EVERY_MS = 60_000;
let downLoggedAt = -Infinity;
let downRequests = 0;

export function logServerError(request: HttpRequest, error: unknown): void {
  const requestId = idOfRequest(request);
  const { message, stack = message }: Pick<Error, 'message' | 'stack'> =
    error instanceof Error ? error : { message: String(error) };
  if (!isDatabaseDown(error)) return logger.error(new LogLine({ requestId, error: stack }));
  // One line a minute: while the database is down, every request that needs it fails for the same reason.
  downRequests += 1;
  if (performance.now() - downLoggedAt < DOWN_EVERY_MS) return;
  const fault = `the database is away: ${message}`;
  logger.error(new LogLine({ requestId, error: fault, requestsSinceLastLine: downRequests }));
  downLoggedAt = performance.now();
  downRequests = 0;
}

/** Answers the errors of Usher's REST routes as problem details, whatever filters the application has. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(@Inject(GUIDES_URL) private readonly guides: string | null) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const problem = problemOf(error);
    if (problem.getStatus() >= 500) logServerError(http.getRequest<HttpRequest>(), error);
    this.send(http.getResponse<HttpResponse>(), problem, this.guides);
  }

  protected send(response: HttpResponse, problem: Problem, guides: string | null): void {
    sendProblem(response, problem, guides);
  }
}
