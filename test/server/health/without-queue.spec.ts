import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createBackend } from '../../support/backend.js';
import { freePort } from '../../support/ports.js';
import { failedProcess } from '../../support/process.js';
import { TestUsher } from '../../support/usher.js';
import { ConsolePages } from '../console/console-pages.js';

let url: string;
let api: TestUsher;
beforeAll(async () => {
  url = `redis://127.0.0.1:${await freePort()}`;
  api = await TestUsher.start({ USHER_ROLE: 'api', QUEUE_URL: url });
});
afterAll(() => api.stop());

test('an api that starts while Redis is down is ready, issues tokens and completes orders', async () => {
  expect((await api.request('GET', '/health/ready', {})).status).toBe(200);
  const client = await api.client('https://client.example/notify');
  expect((await client.token()).status).toBe(200);
  const key = await client.completedOrder();
  expect(await api.webhook(key, 'PENDING')).toMatchObject({ attemptCount: 0 });
});

test('while Redis is down, the pages say so, and a queue is not resumed', async () => {
  const pages = new ConsolePages(() => api);
  for (const path of ['/ops', '/ops/health']) expect(await pages.get(path)).toContain('so its jobs are not known.');
  const { status, text } = await pages.post('/ops/resume-queue', { queue: 'usher-webhook' });
  expect(status).toBe(503);
  expect(text).toContain('The queue does not answer');
});

test('a worker does not start while Redis is down', async () => {
  const { settings, drop } = await createBackend();
  const { code, stderr } = await failedProcess({ ...settings, USHER_ROLE: 'worker', QUEUE_URL: url });
  const wanted = `usher: cannot open ${url}: connection refused; start it or correct QUEUE_URL\n`;
  expect({ code, stderr }).toEqual({ code: 1, stderr: wanted });
  await drop();
});
