import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ClientsService } from '../../../src/clients/clients.service.js';
import { MAX_WAITING_REQUESTS } from '../../../src/server/connections.js';
import { type Running, serve } from '../../../src/server/serve.js';
import { loadConfig } from '../../../src/server/settings/settings.js';
import { BACKEND, type Backend, createBackend } from '../../support/backend.js';
import { Pipeline, type PipelinedRequest } from '../../support/pipeline.js';
import { basic, TestUsher } from '../../support/usher.js';

/** The default of AUTH_FAILURE_LIMIT. A longer window than a minute, so that a slow machine cannot reach the next one. */
const LIMIT = 20;
const SETTINGS = { AUTH_FAILURE_LIMIT: `${LIMIT}/h`, TOKEN_RATE_LIMIT: 'off', TRUST_PROXY: '1' };

const from = (address: string) => ({ 'X-Forwarded-For': address });

const tokenRequest = (authorization: string, headers: Record<string, string> = {}): PipelinedRequest => ({
  path: '/auth/token',
  headers: { Authorization: authorization, 'Content-Type': 'application/json', ...headers },
  body: '{"grant_type":"client_credentials"}',
});

const guesses = (id: string, count: number): PipelinedRequest[] =>
  Array.from({ length: count }, (_, n) => tokenRequest(basic(id, `wrong-${n}`)));

/** On one connection, as many at once as it may send. */
async function pipelined(url: string, requests: PipelinedRequest[]): Promise<number[]> {
  const pipeline = await Pipeline.open(url);
  for (let at = 0; at < requests.length; at += MAX_WAITING_REQUESTS) {
    const sent = requests.slice(at, at + MAX_WAITING_REQUESTS);
    pipeline.send(sent);
    await pipeline.responses(at + sent.length);
  }
  pipeline.close();
  return [...pipeline.statuses];
}

const countOf = (statuses: number[], status: number): number => statuses.filter((one) => one === status).length;

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start(SETTINGS);
});
afterAll(() => usher.stop());

describe('pipelined guesses of a client secret', () => {
  test('are refused after the limit, and so is the right secret that comes last', async () => {
    const client = await usher.client();
    const requests = [...guesses(client.id, 1_500), tokenRequest(client.basic)];
    const statuses = await pipelined(usher.running.url, requests);
    expect([countOf(statuses, 401), countOf(statuses, 429)]).toEqual([LIMIT, 1_501 - LIMIT]);
    expect(statuses.at(-1)).toBe(429);
  });

  test('on many connections are refused together', async () => {
    const client = await usher.client();
    const connections = await Promise.all(
      Array.from({ length: 30 }, () => pipelined(usher.running.url, guesses(client.id, 20))),
    );
    expect(countOf(connections.flat(), 401)).toBe(LIMIT);
    expect(await pipelined(usher.running.url, [tokenRequest(client.basic)])).toEqual([429]);
  });

  test('do not lock the client out at another address', async () => {
    const client = await usher.client();
    await pipelined(usher.running.url, guesses(client.id, 100));
    const elsewhere = tokenRequest(client.basic, from('192.0.2.1'));
    expect(await pipelined(usher.running.url, [elsewhere])).toEqual([200]);
  });
});

describe('500 requests at nearly the same moment with the right secret are all answered 200', () => {
  test('on one connection', async () => {
    const client = await usher.client();
    const statuses = await pipelined(
      usher.running.url,
      Array.from({ length: 500 }, () => tokenRequest(client.basic)),
    );
    expect(countOf(statuses, 200)).toBe(500);
  });

  test('on many connections, even if only one failure is left', async () => {
    const client = await usher.client();
    await pipelined(usher.running.url, guesses(client.id, LIMIT - 1));
    const connections = Array.from({ length: 100 }, () =>
      pipelined(
        usher.running.url,
        Array.from({ length: 5 }, () => tokenRequest(client.basic)),
      ),
    );
    expect(countOf((await Promise.all(connections)).flat(), 200)).toBe(500);
  });
});

/** An embedded database has only one process. */
if (BACKEND !== 'embedded')
  describe('two processes', () => {
    let backend: Backend;
    const running: Running[] = [];
    beforeAll(async () => {
      backend = await createBackend();
      const settings = { PORT: '0', LOG_LEVEL: 'silent', ...backend.settings, ...SETTINGS };
      for (let n = 0; n < 2; n += 1) running.push(await serve(loadConfig(settings)));
    });
    afterAll(async () => {
      for (const { app } of running) await app.close();
      await backend.drop();
    });

    test('check at most twice as many guesses, and both refuse the right secret that comes last', async () => {
      const clients = running[0]!.app.get(ClientsService, { strict: false });
      const { client, secret } = await clients.create('A client', null);
      const requests = [...guesses(client.id, 750), tokenRequest(basic(client.id, secret))];
      const both = await Promise.all(running.map(({ url }) => pipelined(url, requests)));
      expect(countOf(both.flat(), 401)).toBeLessThanOrEqual(2 * LIMIT);
      expect(both.map((statuses) => statuses.at(-1))).toEqual([429, 429]);
    });
  });
