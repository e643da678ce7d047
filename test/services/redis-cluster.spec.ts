import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../src/queue/queue-connections.js';
import { eventually } from '../support/eventually.js';
import type { OwnRedis } from '../support/own-redis.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { basic, type TestClient, TestUsher } from '../support/usher.js';
import { startCluster } from './redis-cluster.js';

let nodes: OwnRedis[];
let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;

beforeAll(async () => {
  nodes = await startCluster(3);
  usher = await TestUsher.start({ QUEUE_URL: nodes[0]!.url, AUTH_FAILURE_LIMIT: '3/m' });
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
  await Promise.all(nodes.map((node) => node.stop()));
});

const operator = { authorization: basic('ops', 'ops') };

test('notifications are delivered and retried with a Redis Cluster', async () => {
  const first = await client.completedOrder();
  expect((await usher.webhook(first, 'SUCCESS')).attemptCount).toBe(1);
  receiver.behaviour = (response, _, nth) => void response.writeHead(nth === 1 ? 500 : 200).end();
  const second = await client.completedOrder();
  expect((await usher.webhook(second, 'SUCCESS')).attemptCount).toBe(2);
});

test('jobs that the cluster lost are restored by the retry run', async () => {
  receiver.behaviour = answer(200);
  await usher.queue.pause();
  const key = await client.completedOrder();
  const { id } = await usher.webhook(key, 'PENDING');
  await eventually('its job exists', () => usher.queue.getJob(id));
  await Promise.all(nodes.map((node) => node.command('FLUSHALL')));
  expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
});

test('the rate limit counts in the cluster, and the operator’s pages read from it', async () => {
  const wrong = { authorization: basic(client.id, 'wrong') };
  const guess = async () => (await usher.request('POST', '/auth/token', wrong, {})).status;
  expect([await guess(), await guess(), await guess(), await guess()]).toEqual([401, 401, 401, 429]);
  const { body } = await usher.request('GET', '/ops/metrics', operator);
  expect(body.text).toContain('usher_queue_up 1');
  const page = await usher.request('GET', '/ops/queues/api/queues', operator);
  expect(page.status).toBe(200);
});

test('all keys of the prefix are on one master, also those of the rate limits and of the probe', async () => {
  await usher.request('POST', '/auth/token', { authorization: basic(client.id, 'wrong') }, {});
  await usher.running.app.get<QueueConnections>(QUEUE_CONNECTIONS, { strict: false }).probe();
  const keys = (await Promise.all(nodes.map((node) => node.command('KEYS', '*')))) as string[][];
  expect(keys.flat().join(' ')).toMatch(/:limit:.*:probe|:probe.*:limit:/);
  expect(keys.filter((ofNode) => ofNode.length > 0)).toHaveLength(1);
});

test('a restart of all nodes loses no notification', async () => {
  await Promise.all(nodes.map((node) => node.stop()));
  const key = await client.completedOrder();
  expect(await usher.webhook(key, 'PENDING')).toMatchObject({ attemptCount: 0 });
  await Promise.all(nodes.map((node) => node.start()));
  expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
});
