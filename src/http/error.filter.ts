import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isDatabaseDown } from '../database/sql.js';
import { OAuthError } from './oauth-error.js';
import { NO_STORE, pathOf, isOAuthRequest } from './oauth-route.js';
import { notFound, Problem, unavailable } from './problem.js';

export const BASIC_CHALLENGE = 'Basic realm="usher", charset="UTF-8"';

/** Turns every thrown error into a response. The cause of a 5xx goes only to the log, never to the client. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('http');

  /**
   * `allowedMethods` returns the methods of a path, because Fastify itself answers 404 instead of 405. `onRefused` is
   * called for each OAuth request that is rejected with a 4xx.
   */
  constructor(
    private readonly allowedMethods: (path: string) => string[],
    private readonly onRefused: (request: FastifyRequest, error: string) => void,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const reply = http.getResponse<FastifyReply>();
    const problem = this.problemOf(error, request);
    if (problem.getStatus() >= 500)
      this.logger.error({
        requestId: request.id,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
    if (isOAuthRequest(request)) this.respondOAuth(request, reply, error, problem);
    else sendProblem(reply, problem);
  }

  private respondOAuth(request: FastifyRequest, reply: FastifyReply, error: unknown, problem: Problem): void {
    const code = oauthCode(error, problem);
    if (problem.getStatus() < 500) this.onRefused(request, code);
    sendOAuth(reply, code, problem);
  }

  private problemOf(error: unknown, { url, method }: FastifyRequest): Problem {
    if (error instanceof Problem) return error;
    if (error instanceof OAuthError) return problemFromOAuth(error);
    if (isDatabaseDown(error)) return unavailable();
    const status = statusOf(error);
    if (status === 404) return this.unknownRoute(method, pathOf(url));
    return MESSAGES[status]
      ? new Problem(status, ...MESSAGES[status])
      : new Problem(500, 'Internal Server Error', 'an internal error occurred; try again later');
  }

  private unknownRoute(method: string, path: string): Problem {
    const allowed = this.allowedMethods(path);
    if (allowed.length === 0 || allowed.includes(method)) return notFound('this path does not exist');
    const detail = `${method} is not allowed here; use ${allowed.join(' or ')}`;
    return new Problem(405, 'Method Not Allowed', detail).with({ Allow: allowed.join(', ') });
  }
}

const MESSAGES: Record<number, [title: string, detail: string]> = {
  400: ['Bad Request', 'the body is not valid JSON in UTF-8, or the request is malformed'],
  413: ['Content Too Large', 'the body is larger than 16 KiB'],
  414: ['URI Too Long', 'the URL is too long'],
  415: ['Unsupported Media Type', 'send Content-Type: application/json'],
};

function statusOf(error: unknown): number {
  if (error instanceof HttpException) return error.getStatus();
  const { statusCode } = (error ?? {}) as { statusCode?: unknown };
  return typeof statusCode === 'number' ? statusCode : 500;
}

function problemFromOAuth({ status, code, description, retryAfter }: OAuthError): Problem {
  const problem = new Problem(status, code, description);
  return retryAfter === undefined ? problem : problem.with({ 'Retry-After': String(retryAfter) });
}

function oauthCode(error: unknown, problem: Problem): string {
  if (error instanceof OAuthError) return error.code;
  return problem.getStatus() >= 500 ? 'temporarily_unavailable' : 'invalid_request';
}

/** RFC 6749 §5.2. */
function sendOAuth(reply: FastifyReply, code: string, problem: Problem): void {
  const status = problem.getStatus();
  if (status === 401) reply.header('WWW-Authenticate', BASIC_CHALLENGE);
  reply
    .headers({ ...problem.headers, ...NO_STORE })
    .status(status)
    .send({ error: code, error_description: problem.detail });
}

/** RFC 9457. */
export function sendProblem(reply: FastifyReply, problem: Problem): void {
  const status = problem.getStatus();
  const { title, detail, errors, headers } = problem;
  reply
    .headers(headers)
    .status(status)
    .type('application/problem+json')
    .send(JSON.stringify({ type: 'about:blank', title, status, detail, ...(errors && { errors }) }));
}
