import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { oauthBody, problemBody, sendOAuthError, sendProblem } from '../http/error-response.js';
import { newRequestId, REQUEST_ID_HEADER, requestIdOf } from '../http/exchange.js';
import { isAuthPath, NO_STORE, pathOf } from '../http/oauth-route.js';
import { badRequest, standardProblem } from '../http/problem.js';
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
  const { headers, body } = lastResponse(status, oauthForm(description, guides), newRequestId());
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n');
}

/** Refuses an Expect header other than 100-continue (RFC 9110 §10.1.1). */
export function answerExpectations(server: Server, guides: string | null): void {
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const problem = standardProblem(417, 'this Expect header is not supported; use Expect: 100-continue');
    const form = isAuthPath(pathOf(request.url ?? ''))
      ? oauthForm(problem.detail, guides)
      : { type: 'application/problem+json', content: problemBody(problem, guides) };
    const { headers, body } = lastResponse(417, form, requestIdOf(request));
    dropFurtherRequests(request.socket);
    response.writeHead(417, headers).end(body);
  });
}

const oauthForm = (description: string, guides: string | null) => ({
  type: 'application/json; charset=utf-8',
  content: oauthBody('invalid_request', description, guides),
});

/** Logs a request that no Fastify hook sees, and makes its response, after which the connection ends. */
function lastResponse(status: number, { type, content }: ReturnType<typeof oauthForm>, requestId: string) {
  logUnreadableRequest(status, requestId);
  const body = JSON.stringify(content);
  const headers = {
    ...NO_STORE,
    [REQUEST_ID_HEADER]: requestId,
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  return { headers, body };
}

/** Node parses all that it has read, and keeps each request until the socket is closed. So its parser drops what follows. */
export function dropFurtherRequests(socket: Socket & { parser?: { onIncoming: () => number } | null }): void {
  if (socket.parser) socket.parser.onIncoming = () => 0;
}

export const urlTooLong = () => standardProblem(414, 'the URL is too long');
export const urlMalformed = () => badRequest('the URL is malformed');

/** Answers a URL that Fastify refuses before it has a route. No limit counts it, so it ends the connection. */
export function answerBadUrl(
  { code }: Error & { code?: string },
  request: FastifyRequest,
  reply: FastifyReply,
  guides: string | null,
): void {
  const problem = code === 'FST_ERR_MAX_PARAM_LENGTH' ? urlTooLong() : urlMalformed();
  logUnreadableRequest(problem.getStatus(), request.id);
  reply.header(REQUEST_ID_HEADER, request.id);
  reply.header('Connection', 'close');
  dropFurtherRequests(request.raw.socket);
  if (isAuthPath(pathOf(request.raw.url ?? ''))) sendOAuthError(reply, 'invalid_request', problem, guides);
  else sendProblem(reply, problem, guides);
}
