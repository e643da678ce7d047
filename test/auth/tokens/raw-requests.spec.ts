import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Answer, type TestClient, TestUsher } from '../../support/usher.js';
import { exchange, expectOAuthError, firstAnswer } from './support.js';

let usher: TestUsher;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.start({ AUTH_FAILURE_LIMIT: '100000/m' });
  client = await usher.client();
});
afterAll(() => usher.stop());

const BODY = '{"grant_type":"client_credentials"}';
const LINE = 'POST /auth/token HTTP/1.1';
const HOST = 'Host: localhost';
const TYPE = 'Content-Type: application/json';
const CLOSE = 'Connection: close';
const lengthOf = (body: string): string => `Content-Length: ${Buffer.byteLength(body, 'latin1')}`;

/** Builds a request from raw lines, sent as latin1. `AUTH` is replaced by a valid Authorization header. */
const raw = (lines: string[], body = ''): string => [...lines, '', body].join('\r\n');
const validLines = (...more: string[]): string[] => [LINE, HOST, 'AUTH', TYPE, CLOSE, ...more];
const sized = (body: string, ...more: string[]): string => raw(validLines(lengthOf(body), ...more), body);
const chunked = (text: string, ...more: string[]): string =>
  raw(validLines('Transfer-Encoding: chunked', ...more), text);
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

const INPUTS: [name: string, status: number, request: string][] = [
  ['a valid request', 200, sized(BODY)],
  ['a valid request in chunks', 200, chunked(`${chunk(BODY.slice(0, 9))}${chunk(BODY.slice(9))}0\r\n\r\n`)],
  ['a chunk extension', 200, chunked(`${BODY.length.toString(16)};a=b\r\n${BODY}\r\n0\r\n\r\n`)],
  ['a trailer', 200, chunked(`${chunk(BODY)}0\r\nX-Trailer: 1\r\n\r\n`)],
  ['Expect: 100-continue', 200, sized(BODY, 'Expect: 100-continue')],
  ['a byte order mark before JSON', 200, sized(`\xef\xbb\xbf${BODY}`)],
  ['white space around JSON', 200, sized(` \r\n\t${BODY}\n`)],
  ['HTTP/1.0 without Host', 200, raw(['POST /auth/token HTTP/1.0', 'AUTH', TYPE, lengthOf(BODY)], BODY)],
  [
    'an absolute-form target with an unknown path',
    404,
    raw(['POST http://x/other HTTP/1.1', HOST, CLOSE, lengthOf('')]),
  ],
  [
    'an absolute-form target with a method that is not allowed',
    405,
    raw(['GET http://x/auth/token HTTP/1.1', HOST, CLOSE]),
  ],
  ['an unknown expectation', 417, sized(BODY, 'Expect: bananas')],
  ['two Host headers', 400, sized(BODY, 'host: elsewhere')],
  ['no Host header', 400, raw([LINE, 'AUTH', TYPE, CLOSE, lengthOf(BODY)], BODY)],
  ['Transfer-Encoding and Content-Length', 400, chunked(`${chunk(BODY)}0\r\n\r\n`, lengthOf(BODY))],
  ['Content-Length and Transfer-Encoding', 400, sized(BODY, 'Transfer-Encoding: chunked')],
  ['two different Content-Length headers', 400, sized(BODY, 'Content-Length: 3')],
  ['two equal Content-Length headers', 400, sized(BODY, lengthOf(BODY))],
  ['a list in Content-Length', 400, raw(validLines('Content-Length: 5, 5'), 'aaaaa')],
  ['a negative Content-Length', 400, raw(validLines('Content-Length: -1'), BODY)],
  ['a Content-Length with a plus sign', 400, raw(validLines('Content-Length: +35'), BODY)],
  ['a hexadecimal Content-Length', 400, raw(validLines('Content-Length: 0x23'), BODY)],
  ['a Content-Length of 2^64', 400, raw(validLines('Content-Length: 18446744073709551616'), BODY)],
  ['an empty Content-Length', 400, raw(validLines('Content-Length:'), BODY)],
  ['Transfer-Encoding: xchunked', 400, raw(validLines('Transfer-Encoding: xchunked'), BODY)],
  ['Transfer-Encoding: chunked, identity', 400, raw(validLines('Transfer-Encoding: chunked, identity'), BODY)],
  ['Transfer-Encoding: chunked twice', 400, chunked('0\r\n\r\n', 'Transfer-Encoding: chunked')],
  ['a space before the colon of Transfer-Encoding', 400, raw(validLines('Transfer-Encoding : chunked'), '0\r\n\r\n')],
  ['a chunk size that is not a number', 400, chunked('zz\r\nabc\r\n0\r\n\r\n')],
  ['a negative chunk size', 400, chunked('-1\r\nabc\r\n0\r\n\r\n')],
  ['a chunk longer than its size', 400, chunked(`3\r\n${BODY}\r\n0\r\n\r\n`)],
  ['a chunk size of 2^68', 400, chunked('100000000000000000\r\nabc')],
  ['a space in a header name', 400, sized(BODY, 'Bad Header: x')],
  ['a header without a colon', 400, sized(BODY, 'nonsense')],
  ['a folded header', 400, sized(BODY, 'X-Folded: a\r\n b')],
  ['a NUL in a header', 400, sized(BODY, 'X-Nul: a\0b')],
  ['a bare line feed in a header', 400, sized(BODY, 'X-Feed: a\nEvil')],
  ['a bare carriage return in a header', 400, sized(BODY, 'X-Return: a\rb')],
  ['an empty header name', 400, sized(BODY, ': x')],
  ['garbage', 400, '\0\x01\x02\r\n\r\n'],
  ['a TLS handshake', 400, '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n'],
  ['no version, as in HTTP/0.9', 401, raw(['POST /auth/token', HOST])],
  ['HTTP/9.9', 400, raw(['POST /auth/token HTTP/9.9', HOST])],
  ['HTTP/2 without TLS', 400, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a method that does not exist', 400, raw(['FETCH /auth/token HTTP/1.1', HOST])],
  ['a method in lower case', 400, raw(['post /auth/token HTTP/1.1', HOST])],
  ['a method of WebDAV', 405, raw(['PROPFIND /auth/token HTTP/1.1', HOST, CLOSE])],
  ['TRACE', 405, raw(['TRACE /auth/token HTTP/1.1', HOST, CLOSE])],
  ['a space in the target', 400, raw(['POST /auth/to ken HTTP/1.1', HOST])],
  ['a target without a slash', 400, raw(['POST auth/token HTTP/1.1', HOST])],
  ['an invalid percent encoding in the target', 400, raw(['POST /auth/%z HTTP/1.1', HOST, CLOSE])],
  ['an encoded slash', 404, raw(['POST /auth%2ftoken HTTP/1.1', HOST, CLOSE, lengthOf('')])],
  ['a path with ..', 404, raw(['POST /auth/x/../token HTTP/1.1', HOST, CLOSE, lengthOf('')])],
  ['an encoded NUL in the path', 404, raw(['POST /auth/token%00 HTTP/1.1', HOST, CLOSE, lengthOf('')])],
  ['a header of 17 KiB', 431, sized(BODY, `X-Long: ${'x'.repeat(17_000)}`)],
  ['a URL of 17 KiB', 431, raw([`POST /auth/token?${'x'.repeat(17_000)} HTTP/1.1`, HOST])],
  [
    'headers of 17 KiB together',
    431,
    sized(BODY, ...Array.from({ length: 170 }, (_, n) => `X-${n}: ${'x'.repeat(95)}`)),
  ],
  ['two Authorization headers', 400, sized(BODY, 'AUTH')],
  ['two Authorization headers, one of them invalid', 400, sized(BODY, 'authorization: Basic eDp5')],
  ['no Authorization header', 401, raw([LINE, HOST, TYPE, CLOSE, lengthOf(BODY)], BODY)],
  [
    'an Authorization header of bytes above 127',
    401,
    raw([LINE, HOST, 'Authorization: Basic \xff\xfe', TYPE, CLOSE, lengthOf('')]),
  ],
  [
    'a tab between scheme and credentials',
    401,
    raw([LINE, HOST, 'Authorization: Basic\teDp5', TYPE, CLOSE, lengthOf('')]),
  ],
  ['a body longer than 16 KiB', 413, sized('x'.repeat(16_385))],
  ['chunks longer than 16 KiB', 413, chunked(`${chunk('x'.repeat(9_000))}${chunk('x'.repeat(9_000))}0\r\n\r\n`)],
  ['a Content-Length of a terabyte', 413, raw(validLines('Content-Length: 1099511627776'), 'x')],
  ['no body', 400, raw(validLines())],
  ['an empty body', 400, raw(validLines(lengthOf('')))],
  ['an empty body in chunks', 400, chunked('0\r\n\r\n')],
  ['a body that ends early', 400, raw(validLines('Content-Length: 100'), BODY)],
  ['chunks that end early', 400, chunked(`${BODY.length.toString(16)}\r\n${BODY.slice(0, 9)}`)],
  ['JSON with a NUL', 400, sized('{"grant_type":"client_credentials\0"}')],
  ['JSON in UTF-16', 400, sized(Buffer.from(BODY, 'utf16le').toString('latin1'))],
  ['JSON that is not UTF-8', 400, sized('{"grant_type":"\xff"}')],
  ['JSON with a comment', 400, sized(`/**/${BODY}`)],
  ['JSON with a trailing comma', 400, sized('{"grant_type":"client_credentials",}')],
  ['two JSON texts', 400, sized(`${BODY}${BODY}`)],
  ['a lone surrogate', 400, sized('{"grant_type":"\\ud800"}')],
  ['a gzip body', 415, sized(BODY, 'Content-Encoding: gzip')],
  ['no Content-Type', 415, raw([LINE, HOST, 'AUTH', CLOSE, lengthOf(BODY)], BODY)],
  ['neither Content-Type nor body', 415, raw([LINE, HOST, 'AUTH', CLOSE, lengthOf('')])],
  [
    'an Upgrade header',
    200,
    raw([LINE, HOST, 'AUTH', TYPE, 'Connection: close, Upgrade', 'Upgrade: h2c', lengthOf(BODY)], BODY),
  ],
  ['an invalid X-Forwarded-For', 200, sized(BODY, 'X-Forwarded-For: unknown, \'"<>, 999.1.1.1')],
];

const CODES: Record<number, string> = { 401: 'invalid_client' };

test.each(INPUTS)('%s is answered %i', async (name, status, request) => {
  const bytes = Buffer.from(request.replaceAll('AUTH\r\n', `Authorization: ${client.basic}\r\n`), 'latin1');
  const text = await exchange(usher.running.url, bytes, / ends? early$/.test(name));
  const answer = firstAnswer(text);
  expect(answer.status).toBe(status);
  expect(text.match(/^HTTP\/1\.1 (?!100)/gm)).toHaveLength(1);
  if (status >= 400 && !/^POST (http:|\/auth%2f)/.test(request)) expectBody(answer);
});

function expectBody(answer: Answer): void {
  if (answer.body.error === 'unsupported_grant_type') expectOAuthError(answer, 400, 'unsupported_grant_type');
  else expectOAuthError(answer, answer.status, CODES[answer.status] ?? 'invalid_request');
}

test('a smuggled second request is not executed', async () => {
  const smuggled = raw(['GET /health/live HTTP/1.1', HOST, '']);
  const request = raw([LINE, HOST, lengthOf(smuggled), 'Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`);
  const text = await exchange(usher.running.url, request);
  expect(firstAnswer(text).status).toBe(400);
  expect(text).not.toContain('"ok"');
});

test('the server still works after all malformed requests', async () => {
  expect((await client.token()).status).toBe(200);
});
