import { createHmac } from 'node:crypto';
import { createWriteStream, type WriteStream } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { addressOf, type Answer, answerTo, askedMs, HANGING_RECEIVER, HOST_COUNT, lateByMs } from './behaviour.js';

/** Settings of the receivers. They run in a separate process, so that their timestamps are not late. */
export interface Assignment {
  seed: number;
  secret: string;
  /** The secret of the client whose receiver never answers. */
  hangingSecret: string;
  logFile: string;
}

let assignment: Assignment;
let log: WriteStream;
let count = 0;
const timesSeen = new Map<number, number>();
const noncesSeen = new Set<string>();

process.on('message', (message: Assignment) => {
  assignment = message;
  log = createWriteStream(assignment.logFile);
  const hosts = Array.from({ length: HOST_COUNT + 1 }, (_, host) => host);
  void Promise.all(hosts.map(open)).then((ports) => process.send?.(ports));
});
process.on('disconnect', () => log.end(() => process.exit(0)));

function open(host: number): Promise<number> {
  const server = createServer((request, response) => {
    response.on('error', () => undefined);
    receive(host, request, response).catch(() => response.destroy());
  });
  return new Promise((resolve) => {
    const address = host === HANGING_RECEIVER ? '0.0.0.0' : addressOf(host);
    server.listen(0, address, () => resolve((server.address() as AddressInfo).port));
  });
}

/** The path is /orders/<number>. */
async function receive(host: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const at = Date.now();
  const order = Number(request.url?.split('/')[2]);
  const nth = (timesSeen.get(order) ?? 0) + 1;
  timesSeen.set(order, nth);
  const id = (count += 1);
  const body = Buffer.concat(await request.toArray());
  const answer = answerTo(assignment.seed, host, order, nth);
  write({ arrival: id, order, at, answer, ...identityOf(host, request, body) });
  respond(answer, id, order, response);
}

function identityOf(host: number, { headers }: IncomingMessage, body: Buffer) {
  const secret = host === HANGING_RECEIVER ? assignment.hangingSecret : assignment.secret;
  const { eventType, data } = JSON.parse(body.toString()) as { eventType: string; data: { key: string } };
  const isRight = eventType === 'NOTIFY_ORDER_COMPLETION' && headers['content-type'] === 'application/json';
  return {
    webhook: String(headers['x-webhook-id']),
    attempt: Number(headers['x-webhook-attempt']),
    key: data.key,
    isSigned: isRight && isSigned(secret, headers, body),
  };
}

/** Verifies a signature by specification 6.2, without Usher's code. A repeated nonce is a replay. */
function isSigned(secret: string, headers: IncomingMessage['headers'], body: Buffer): boolean {
  const [timestamp = '', nonce = ''] = [headers['x-timestamp'], headers['x-nonce-str']].map(String);
  const message = timestamp + nonce + body.toString('base64');
  const expected = createHmac('sha256', secret).update(message).digest('hex');
  const isFresh = /^\d{10}$/.test(timestamp) && Math.abs(Date.now() / 1_000 - Number(timestamp)) < 60;
  const isNew = /^[A-Za-z0-9]{32}$/.test(nonce) && !noncesSeen.has(nonce);
  noncesSeen.add(nonce);
  return isFresh && isNew && headers['x-signature'] === expected;
}

function respond(answer: Answer, id: number, order: number, response: ServerResponse): void {
  const send = (status: number): void => sendStatus(id, status, response);
  const responses: Record<Answer, () => void> = {
    ok: () => send(200),
    error: () => send(500),
    redirect: () => send(302),
    hang: () => undefined,
    reset: () => void response.socket?.resetAndDestroy(),
    late: () => void setTimeout(() => send(200), lateByMs(assignment.seed, order)),
    endless: () => sendEndless(id, response),
    busy: () => {
      response.setHeader('Retry-After', askedMs(assignment.seed, order) / 1_000);
      send(503);
    },
  };
  responses[answer]();
}

/** Sends and logs a response, unless the sender has already closed the connection. */
function sendStatus(id: number, status: number, response: ServerResponse): void {
  if (response.destroyed || response.socket?.destroyed) return;
  response.writeHead(status, status === 302 ? { Location: '/elsewhere' } : {}).end();
  write({ answer: id, status, at: Date.now() });
}

function sendEndless(id: number, response: ServerResponse): void {
  if (response.destroyed) return;
  response.writeHead(200).write('and so on');
  write({ answer: id, status: 200, at: Date.now() });
  const timer = setInterval(() => response.write(' and on'), 100);
  response.once('close', () => clearInterval(timer));
}

const write = (line: object): void => void log.write(`${JSON.stringify(line)}\n`);
