import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Backend, createBackend, type Settings } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { startServer, type ServerProcess, usherJson } from '../support/process.js';
import { answer, hang, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, SHORT_TIMEOUT, SHORT_TIMES } from '../support/usher.js';

const ORDERS = 40;
const MIN_INTERVAL_MS = 500;

let backend: Backend;
let receiver: TestReceiver;
let settings: Settings;
let server: ServerProcess;

interface Credentials {
  client_id: string;
  client_secret: string;
}

interface Listed {
  id: string;
  referenceId: string;
  status: string;
  attemptCount: number;
}

async function post<T>(path: string, authorization: string, body: object): Promise<T> {
  const headers = { authorization, 'content-type': 'application/json' };
  const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}`);
  return (await response.json()) as T;
}

async function bearer(): Promise<string> {
  const args = ['client', 'create', '--name', 'Crash', '--notify-url', receiver.url];
  const { client_id: id, client_secret: secret } = await usherJson<Credentials>(settings, args);
  const { access_token: token } = await post<{ access_token: string }>('/auth/token', basic(id, secret), {
    grant_type: 'client_credentials',
  });
  return `Bearer ${token}`;
}

beforeAll(async () => {
  backend = await createBackend();
  settings = { LOG_LEVEL: process.env.TEST_LOG ?? 'warn', ...SHORT_TIMES, ...SHORT_TIMEOUT, ...backend.settings };
  receiver = await TestReceiver.start();
  server = await startServer(settings);
});
afterAll(async () => {
  await server.end('SIGKILL');
  await backend.drop();
  receiver.close();
});

describe('a server killed in the middle of its deliveries and started again', () => {
  let keys: string[];
  let webhooks: Listed[];

  beforeAll(async () => {
    const authorization = await bearer();
    const create = () => post<{ key: string }>('/movie-orders', authorization, NEW_ORDER);
    keys = (await Promise.all(Array.from({ length: ORDERS }, create))).map(({ key }) => key);
    const held = new Set(keys.filter((_, index) => index % 3 === 0));
    const failing = new Set(keys.filter((_, index) => index % 3 === 1));
    receiver.behaviour = (response, arrival, nth) => {
      if (nth === 1 && held.has(arrival.key)) hang(response, arrival, nth);
      else answer(nth === 1 && failing.has(arrival.key) ? 503 : 200)(response, arrival, nth);
    };
    const complete = (key: string) => post(`/sandbox/movie-orders/${key}/complete`, authorization, COMPLETION);
    const completions = Promise.allSettled(keys.map(complete));
    await eventually('deliveries are under way', () => receiver.arrivals.length >= ORDERS / 4);
    await server.end('SIGKILL');
    await completions;
    server = await startServer(settings);
    // A caller whose response was lost repeats the request.
    for (const key of keys) await complete(key);
    webhooks = await eventually('no webhook is pending', async () => {
      const listed = await usherJson<Listed[]>(settings, ['webhook', 'list', '--limit', '1000']);
      return listed.every(({ status }) => status !== 'PENDING') ? listed : null;
    });
  });

  test('has notified every completed order with one webhook', () => {
    expect(webhooks.map(({ referenceId }) => referenceId).sort()).toEqual([...keys].sort());
    expect(new Set(webhooks.map(({ status }) => status))).toEqual(new Set(['SUCCESS']));
    for (const key of keys) expect(receiver.of(key).length).toBeGreaterThanOrEqual(1);
  });

  test('has made at most five attempts of each webhook, and has counted every attempt', () => {
    for (const { referenceId, attemptCount } of webhooks) {
      expect(attemptCount).toBeLessThanOrEqual(5);
      const numbers = receiver.of(referenceId).map(({ headers }) => Number(headers['x-webhook-attempt']));
      expect(new Set(numbers).size).toBe(numbers.length);
      expect(Math.max(...numbers)).toBeLessThanOrEqual(attemptCount);
    }
  });

  test('has never made two attempts of a webhook within the minimum interval', () => {
    for (const key of keys) {
      const moments = receiver.of(key).map(({ at }) => at);
      for (const [index, at] of moments.slice(1).entries()) {
        expect(at - moments[index]!).toBeGreaterThanOrEqual(MIN_INTERVAL_MS);
      }
    }
  });
});
