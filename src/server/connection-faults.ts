import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isBelowAuth, NO_STORE, pathOf } from '../http/oauth-route.js';
import { Problem } from '../http/problem.js';
import { newRequestId, REQUEST_ID_HEADER, requestIdOf } from '../http/request-id.js';
import { logUnreadableRequest } from './request-log.js';

const TOO_MUCH_HEADER = { status: 431, why: 'the headers have more than 16 KiB' };
const TOO_SLOW = { status: 408, why: 'the request did not arrive in time' };
const MALFORMED = { status: 400, why: 'this is not a well-formed HTTP/1.1 request' };

const FAULTS: Record<string, typeof MALFORMED> = {
  HPE_HEADER_OVERFLOW: TOO_MUCH_HEADER,
  ERR_HTTP_REQUEST_TIMEOUT: TOO_SLOW,
};

/** Answers what Node could not read as a request: no route is known then, so that it speaks OAuth to everyone. */
export function answerConnectionFault(error: Error & { code?: string }, socket: Socket): void {
  const { status, why } = FAULTS[error.code ?? ''] ?? MALFORMED;
  if (error.code !== 'ECONNRESET' && socket.writable && !hasBegunToAnswer(socket)) socket.write(rawAnswer(status, why));
  socket.destroy();
}

/** As Node's own handler asks: a response that is under way must not be followed by another. */
const hasBegunToAnswer = (socket: Socket): boolean =>
  (socket as { _httpMessage?: { headersSent: boolean } | null })._httpMessage?.headersSent === true;

function rawAnswer(status: number, why: string): string {
  const body = oauthBody(why);
  const headers = { ...headersOf(body, told(status, newRequestId())), Connection: 'close' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n');
}

/** RFC 9110 §10.1.1: an expectation other than 100-continue. */
export function answerExpectations(server: Server): void {
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const body = oauthBody('only Expect: 100-continue is understood');
    response.writeHead(417, { ...headersOf(body, told(417, requestIdOf(request))), Connection: 'close' }).end(body);
  });
}

const oauthBody = (why: string): string => JSON.stringify({ error: 'invalid_request', error_description: why });

const headersOf = (body: string, requestId: string) => ({
  ...NO_STORE,
  [REQUEST_ID_HEADER]: requestId,
  'Content-Type': 'application/json; charset=utf-8',
  'Content-Length': body.length,
});

/** No hook sees these requests. Answers with their id. */
function told(status: number, requestId: string): string {
  logUnreadableRequest(status, requestId);
  return requestId;
}

/** Answers an address that the router cannot read. */
export function answerBadAddress(_: Error, request: FastifyRequest, reply: FastifyReply): void {
  const why = 'the address is malformed or too long';
  reply.header(REQUEST_ID_HEADER, told(400, request.id));
  if (isBelowAuth(pathOf(request.raw.url ?? ''))) {
    reply.status(400).headers(NO_STORE).send({ error: 'invalid_request', error_description: why });
    return;
  }
  reply
    .status(400)
    .type('application/problem+json')
    .send(JSON.stringify({ type: 'about:blank', title: 'Bad Request', status: 400, detail: why }));
}

/** RFC 9112 §3.2; Node's own refusal of none has no body, and of two it reads the first. */
export function checkHost({ raw }: FastifyRequest): void {
  const hosts = raw.headersDistinct.host ?? [];
  if (hosts.length > 1) throw new Problem(400, 'Bad Request', 'send one Host header');
  if (raw.httpVersion === '1.1' && hosts.length === 0)
    throw new Problem(400, 'Bad Request', 'the Host header is missing');
}
