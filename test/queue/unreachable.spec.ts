import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BACKEND, POSTGRES_URL, REDIS_URL } from '../support/backend.js';
import { TestReceiver } from '../support/receiver.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { COMPLETION, type TestClient, TestUsher } from '../support/usher.js';

const SERVER = BACKEND === 'postgres' ? POSTGRES_URL : REDIS_URL;

let proxy: TcpProxy;
let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;

/** Connects the queue through the proxy, and the database directly. */
function queueByProxy(settings: Record<string, string>): Record<string, string> {
  if (BACKEND === 'embedded') return {};
  const path = BACKEND === 'postgres' ? new URL(settings.DATABASE_URL!).pathname : '';
  return { QUEUE_URL: new URL(path || '/', proxy.through(SERVER)).href.replace(/\/$/, '') };
}

beforeAll(async () => {
  proxy = await TcpProxy.to(SERVER);
  usher = await TestUsher.start(queueByProxy);
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
});
afterAll(async () => {
  proxy.restore();
  await usher.stop();
  proxy.close();
  receiver.close();
});

/** The embedded queue cannot be away without the database, so there the job is removed instead. */
async function completeWhileQueueIsAway(): Promise<string> {
  if (BACKEND !== 'embedded') {
    proxy.cut();
    return client.completedOrder();
  }
  await usher.queue.pause();
  const key = await client.completedOrder();
  const { id } = await usher.webhook(key, 'PENDING');
  await usher.removeJob(id);
  return key;
}

async function bringQueueBack(): Promise<void> {
  if (BACKEND === 'embedded') await usher.queue.resume();
  else proxy.restore();
}

test('an order completed while the queue is away is delivered by a retry run once the queue is back', async () => {
  const key = await completeWhileQueueIsAway();
  expect(await usher.webhook(key, 'PENDING')).toMatchObject({ attemptCount: 0 });
  expect(receiver.of(key)).toHaveLength(0);
  await bringQueueBack();
  expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
  const next = await client.completedOrder();
  expect((await usher.webhook(next, 'SUCCESS')).attemptCount).toBe(1);
});

if (BACKEND !== 'embedded') {
  test('a delayed completion, which is stored only in the queue, is 503 while the queue is away', async () => {
    const key = await client.order();
    proxy.cut();
    const { status, headers } = await client.complete(key, { ...COMPLETION, delay: '1s' });
    expect({ status, retryAfter: headers.get('retry-after') }).toEqual({ status: 503, retryAfter: '5' });
    await bringQueueBack();
  });
}

test('an attempt that ends while the queue is away is recorded, and retried once the queue is back', async () => {
  let answerFirst = (): void => undefined;
  receiver.behaviour = (response, _arrival, nth) => {
    if (nth > 1) response.writeHead(200).end();
    else answerFirst = () => void response.writeHead(500).end();
  };
  const key = await client.completedOrder();
  await receiver.waitFor(key);
  if (BACKEND !== 'embedded') proxy.cut();
  answerFirst();
  await usher.attemptEnded(key, 1);
  await bringQueueBack();
  expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(2);
});
