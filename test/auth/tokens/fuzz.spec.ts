import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { basic, type TestClient, TestUsher } from '../../support/usher.js';
import { captureLog, FORM_TYPE, JSON_TYPE, ROUTES } from './support.js';

const SEED = Number(process.env.TEST_SEED ?? Date.now() % 1_000_000);
const REQUESTS = process.env.TEST_FULL === '1' ? 10_000 : 2_000;
/** On a slow machine the test stops after this time, with fewer requests. */
const MAX_DURATION_MS = 90_000;
const CONCURRENCY = 20;

let usher: TestUsher;
let client: TestClient;
let tokens: { access: string; refresh: string };
let log: unknown[][];
const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });

beforeAll(async () => {
  usher = await TestUsher.start({ AUTH_FAILURE_LIMIT: '100000000/m', TOKEN_RATE_LIMIT: 'off' });
  client = await usher.client();
  const { body } = await client.token();
  tokens = { access: String(body.access_token), refresh: String(body.refresh_token) };
  log = captureLog(usher);
});
afterAll(async () => {
  agent.destroy();
  await usher.stop();
});

interface Mutant {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer;
}

const pick = <T>(...values: T[]): fc.Arbitrary<T> => fc.constantFrom(...values);
const headerText = fc.stringMatching(/^[\x21-\x7e\x80-\xff]([\x20-\x7e\x80-\xff]{0,60}[\x21-\x7e])?$/);

const jsonValue = fc.oneof(
  pick<unknown>('client_credentials', 'refresh_token', 'authorization_code', '', null, 0, [], {}, '\0', 'TOKEN'),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.jsonValue({ maxDepth: 3 }),
);
const name = fc.oneof(
  { weight: 9, arbitrary: pick('grant_type', 'refresh_token', 'token', 'scope', 'client_id', 'token_type_hint') },
  { weight: 1, arbitrary: fc.oneof(pick('__proto__', 'constructor', 'client_secret', ''), fc.string()) },
);
const parameters = fc.array(fc.tuple(name, jsonValue), { maxLength: 6 });

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
/** Percent-encodes text. Lone surrogates cannot be encoded, so they are replaced first. */
const percentEncode = (text: string): string => encodeURIComponent(Buffer.from(text).toString());
const jsonBody = parameters.map((pairs) => JSON.stringify(Object.fromEntries(pairs)));
const formBody = parameters.map((pairs) =>
  pairs.map(([key, value]) => `${percentEncode(key)}=${percentEncode(textOf(value))}`).join('&'),
);
const damagedJsonBody = fc
  .tuple(jsonBody, fc.nat({ max: 80 }))
  .map(([body, at]) => body.slice(0, at) + body.slice(at + 1));
const body = fc.oneof(
  jsonBody.map((text) => Buffer.from(text)),
  formBody.map((text) => Buffer.from(text)),
  damagedJsonBody.map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.nat({ max: 20_000 }).map((length) => Buffer.alloc(length, '[')),
);

const authorization = fc.oneof(
  { weight: 6, arbitrary: pick('VALID') },
  { weight: 1, arbitrary: pick('WRONG', 'SWAPPED', 'BEARER', '', 'Basic', 'basic Og==') },
  { weight: 1, arbitrary: headerText },
  {
    weight: 1,
    arbitrary: fc.string({ unit: 'binary' }).map((text) => `Basic ${Buffer.from(text).toString('base64')}`),
  },
);
const contentType = fc.oneof(
  { weight: 5, arbitrary: pick(JSON_TYPE, FORM_TYPE) },
  { weight: 1, arbitrary: pick('text/plain', `${JSON_TYPE}; charset=utf-8`, `${FORM_TYPE};charset=x`, ';', '') },
  { weight: 1, arbitrary: headerText },
);

const mutant: fc.Arbitrary<Mutant> = fc.record({
  method: fc.oneof({ weight: 9, arbitrary: pick('POST') }, { weight: 1, arbitrary: pick('GET', 'PUT', 'DELETE') }),
  path: fc.oneof(
    { weight: 9, arbitrary: pick(...ROUTES) },
    { weight: 1, arbitrary: fc.webPath().map((path) => `/auth${path.startsWith('/') ? '' : '/'}${path}`) },
  ),
  headers: fc.record(
    { authorization, 'content-type': contentType, 'x-forwarded-for': headerText, accept: headerText },
    { requiredKeys: ['authorization'] },
  ),
  body,
});

function replacePlaceholder(text: string): string {
  const known: Record<string, string> = {
    VALID: client.basic,
    WRONG: basic(client.id, 'wrong'),
    SWAPPED: basic(client.secret, client.id),
    BEARER: `Bearer ${tokens.access}`,
  };
  return known[text] ?? text;
}

function send({ method, path, headers, body }: Mutant): Promise<{ status: number; text: string }> {
  const content = Buffer.from(body.toString('latin1').replaceAll('TOKEN', tokens.refresh), 'latin1');
  const all = {
    ...headers,
    authorization: replacePlaceholder(headers.authorization ?? ''),
    'content-length': content.length,
  };
  return new Promise((resolve, reject) => {
    const sent = request(usher.running.url, { method, path, headers: all, agent }, (response) => {
      response.toArray().then(
        (chunks: Buffer[]) =>
          resolve({
            status: response.statusCode ?? 0,
            text: JSON.stringify(response.rawHeaders) + Buffer.concat(chunks).toString(),
          }),
        reject,
      );
    });
    // The server may reject the request and close the connection while a long body is still being sent.
    sent.on('error', (error: NodeJS.ErrnoException) =>
      /EPIPE|ECONNRESET/.test(error.code ?? '') ? resolve({ status: 0, text: '' }) : reject(error),
    );
    sent.end(content);
  });
}

const STACK = /\bat [^ ]+ \(|node_modules|QueryFailed|SELECT /;

async function check(one: Mutant): Promise<void> {
  const { status, text } = await send(one);
  const isSafe = status < 500 && !text.includes(client.secret) && !STACK.test(text);
  const hidesTokens = status === 200 || (!text.includes(tokens.access) && !text.includes(tokens.refresh));
  if (isSafe && hidesTokens) return;
  throw new Error(`seed ${SEED}: ${status} ${text}\n${JSON.stringify({ ...one, body: one.body.toString('latin1') })}`);
}

/** The error filter's log line for a 5xx. A request line with a status below 500 is expected. */
const isServerError = ([line, context]: unknown[]): boolean =>
  context === 'Usher http' && !((line as { status?: number }).status! < 500);

test(`up to ${REQUESTS} mutated requests cause no 5xx and reveal no secret in response or log (TEST_SEED=${SEED})`, async () => {
  const mutants = fc.sample(mutant, { seed: SEED, numRuns: REQUESTS });
  const until = Date.now() + MAX_DURATION_MS;
  const worker = async (): Promise<void> => {
    for (let next = mutants.pop(); next && Date.now() < until; next = mutants.pop()) await check(next);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  const logText = JSON.stringify(log);
  for (const secret of [client.secret, client.basic, tokens.access, tokens.refresh])
    expect(logText).not.toContain(secret);
  expect(log.filter(isServerError)).toEqual([]);
  expect((await client.token()).status).toBe(200);
});
