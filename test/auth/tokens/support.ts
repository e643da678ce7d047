import { connect } from 'node:net';
import { expect } from '@jest/globals';
import type { LoggerService } from '@nestjs/common';
import { getDataSourceToken } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import type { Answer, TestClient, TestUsher } from '../../support/usher.js';

export const ROUTES = ['/auth/token', '/auth/refresh', '/auth/revoke', '/auth/introspect'];
export const JSON_TYPE = 'application/json';
export const FORM_TYPE = 'application/x-www-form-urlencoded';

export type Encoding = 'json' | 'form';
export const ENCODINGS: Encoding[] = ['json', 'form'];

/** Encodes parameters and returns them with the matching Content-Type. */
export function encoded(encoding: Encoding, parameters: Record<string, string>): { type: string; body: string } {
  return encoding === 'json'
    ? { type: JSON_TYPE, body: JSON.stringify(parameters) }
    : { type: FORM_TYPE, body: new URLSearchParams(parameters).toString() };
}

export function post(
  client: TestClient,
  path: string,
  { type, body }: { type: string; body: string },
  authorization = client.basic,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return client.usher.request('POST', path, { authorization, 'content-type': type, ...headers }, body);
}

/** Checks what every error response of an OAuth route has in common. */
export function expectOAuthError(answer: Answer, status: number, error: string): void {
  expect({ status: answer.status, error: answer.body.error }).toEqual({ status, error });
  const { error_uri: uri = `#${error}`, ...body } = answer.body;
  expect(Object.keys(body)).toEqual(['error', 'error_description']);
  // A request that cannot be read gets none.
  expect(uri).toMatch(new RegExp(`#${error}$`));
  expect(answer.body.error_description).toMatch(/^[\x20-\x21\x23-\x5B\x5D-\x7E]+$/);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.headers.get('pragma')).toBe('no-cache');
  const challenge = status === 401 ? 'Basic realm="usher", charset="UTF-8"' : null;
  expect(answer.headers.get('www-authenticate')).toBe(challenge);
}

/** Sends raw bytes and reads until the server closes, because of `Connection: close` or an error. */
export function exchange(url: string, request: string | Buffer, endAfterRequest = false): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host: hostname, port: Number(port) }, () =>
      endAfterRequest ? socket.end(request) : socket.write(request),
    );
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
    socket.on('error', (error: NodeJS.ErrnoException) => error.code !== 'ECONNRESET' && reject(error));
  });
}

/** Parses the first response that {@link exchange} read, without 100 Continue. */
export function firstAnswer(text: string): Answer {
  const final = text.replace(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/, '');
  const end = final.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = final.slice(0, end).split('\r\n');
  const pairs = lines.map((line): [string, string] => [
    line.slice(0, line.indexOf(':')),
    line.slice(line.indexOf(':') + 1).trim(),
  ]);
  const headers = new Headers(pairs);
  const body = final.slice(end + 4, end + 4 + Number(headers.get('content-length') ?? 0));
  return {
    status: Number(statusLine.split(' ')[1]),
    headers,
    body: body.startsWith('{') ? (JSON.parse(body) as Answer['body']) : { text: body },
  };
}

/** Captures all log lines from now on, before secrets are redacted. */
export function captureLog(usher: TestUsher): unknown[][] {
  const lines: unknown[][] = [];
  const keep = (...line: unknown[]): void => void lines.push(line);
  const logger: LoggerService = { log: keep, error: keep, warn: keep, debug: keep, verbose: keep, fatal: keep };
  usher.running.app.useLogger(logger);
  return lines;
}

export const auditLines = (log: unknown[][]): Record<string, unknown>[] =>
  log.filter((line) => line.at(-1) === 'Usher audit').map(([fields]) => fields as Record<string, unknown>);

export const dataSource = (usher: TestUsher): DataSource =>
  usher.running.app.get<DataSource>(getDataSourceToken('usher'), { strict: false });

/** The parameters of a valid request to each route. */
export const validParameters = (path: string, refreshToken: string): Record<string, string> =>
  ({
    '/auth/token': { grant_type: 'client_credentials' },
    '/auth/refresh': { grant_type: 'refresh_token', refresh_token: refreshToken },
  })[path] ?? { token: 'garbage' };
