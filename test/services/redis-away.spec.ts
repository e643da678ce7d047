import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Backend, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { OwnRedis } from '../support/own-redis.js';
import { startServer, usherJson } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER } from '../support/usher.js';

let backend: Backend;
let redis: OwnRedis;
let receiver: TestReceiver;
beforeAll(async () => {
  [backend, redis, receiver] = await Promise.all([createBackend(), OwnRedis.start(), TestReceiver.start()]);
});
afterAll(async () => {
  receiver.close();
  await redis.stop();
  await backend.drop();
});

test('a worker whose Redis is gone exits after SIGTERM once its running delivery is recorded', async () => {
  const settings = { ...backend.settings, QUEUE_URL: redis.url };
  const server = await startServer(settings);
  const options = ['--name', 'A client', '--notify-url', receiver.url];
  const client = await usherJson<Record<string, string>>(settings, ['client', 'create', ...options]);
  const post = async (path: string, authorization: string, body: object): Promise<Record<string, string>> => {
    const headers = { authorization, 'content-type': 'application/json' };
    const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await response.json()) as Record<string, string>;
  };
  const credentials = basic(client.client_id!, client.client_secret!);
  const { access_token } = await post('/auth/token', credentials, { grant_type: 'client_credentials' });
  const { key = '' } = await post('/movie-orders', `Bearer ${access_token}`, NEW_ORDER);
  let release = (): void => undefined;
  receiver.behaviour = (response, arrival, nth) => {
    release = () => answer(200)(response, arrival, nth);
  };
  await post(`/sandbox/movie-orders/${key}/complete`, `Bearer ${access_token}`, COMPLETION);
  await receiver.waitFor(key);

  await redis.stop();
  const operator = { headers: { authorization: basic('ops', 'ops') } };
  await eventually('the server knows that its queue is down', async () => {
    const metrics = await fetch(`${server.url}/ops/metrics`, operator);
    return (await metrics.text()).includes('\nusher_queue_up 0\n');
  });
  server.child.kill('SIGTERM');
  await server.printed(/finishing running deliveries/);
  release();
  expect((await server.ended).code).toBe(0);
  await redis.start();
  const [webhook] = await usherJson<{ status: string }[]>(settings, ['webhook', 'list', '--reference', key]);
  expect(webhook?.status).toBe('SUCCESS');
});
