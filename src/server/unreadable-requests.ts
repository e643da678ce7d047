import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { oauthBody, sendOAuthError, sendProblem } from '../http/error-response.js';
import { newRequestId, REQUEST_ID_HEADER, requestIdOf } from '../http/exchange.js';
import type { OAuthErrorCode } from '../http/oauth-error.js';
import { isAuthPath, NO_STORE, pathOf } from '../http/oauth-route.js';
import { badRequest, type Problem } from '../http/problem.js';
import { logUnreadableRequest } from './request-log.js';

const MALFORMED = { status: 400, description: 'this is not a valid HTTP/1.1 request' };

const FAULTS: Record<string, typeof MALFORMED> = {
  HPE_HEADER_OVERFLOW: { status: 431, description: 'the headers are larger than 16 KiB' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, description: 'the request did not arrive in time' },
};

/** Answers bytes that Node could not parse as a request. The route is unknown, so every client gets an OAuth error. */
export const answerConnectionFault =
  (guides: string | null) =>
  (error: Error & { code?: string }, socket: Socket): void => {
    // Like Node's own handler: a response that has started must not be followed by a second one.
    const { _httpMessage: response } = socket as { _httpMessage?: { headersSent: boolean } | null };
    if (error.code !== 'ECONNRESET' && socket.writable && !response?.headersSent)
      socket.write(rawResponse(FAULTS[error.code ?? ''] ?? MALFORMED, guides));
    socket.destroy();
  };

function rawResponse({ status, description }: typeof MALFORMED, guides: string | null): string {
  const { headers, body } = lastResponse(status, description, newRequestId(), guides);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n');
}

/** Refuses an Expect header other than 100-continue (RFC 9110 §10.1.1). */
export function answerExpectations(server: Server, guides: string | null): void {
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const description = 'this Expect header is not supported; use Expect: 100-continue';
    const { headers, body } = lastResponse(417, description, requestIdOf(request), guides);
    response.writeHead(417, headers).end(body);
  });
}

/** Logs a request that no Fastify hook sees, and makes its response, after which the connection ends. */
function lastResponse(status: number, description: string, requestId: string, guides: string | null) {
  logUnreadableRequest(status, requestId);
  const body = JSON.stringify(oauthBody('invalid_request', description, guides));
  const headers = {
    ...NO_STORE,
    [REQUEST_ID_HEADER]: requestId,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': body.length,
    Connection: 'close',
  };
  return { headers, body };
}

export function answerBadUrl(request: FastifyRequest, reply: FastifyReply, guides: string | null): void {
  const problem = badRequest('the URL is malformed or too long');
  logUnreadableRequest(400, request.id);
  reply.header(REQUEST_ID_HEADER, request.id);
  answerAtOnce(request, reply, 'invalid_request', problem, guides);
}

/** Answers a request before its route's own filters, in the form that clients of its path expect. */
export function answerAtOnce(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  code: OAuthErrorCode,
  problem: Problem,
  guides: string | null,
): void {
  if (isAuthPath(pathOf(raw.url ?? ''))) sendOAuthError(reply, code, problem, guides);
  else sendProblem(reply, problem, guides);
}
