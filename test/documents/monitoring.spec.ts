import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TestReceiver } from '../support/receiver.js';
import { basic, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

/** Runs the tool of Prometheus; returns what it found. */
function promtool(args: string[], input = ''): string {
  const { error, status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  if (error) throw new Error('promtool is not here; install the package "prometheus" of Debian', { cause: error });
  return status === 0 ? '' : stdout + stderr;
}

test('promtool check metrics has nothing to say about a scrape', async () => {
  await usher.webhook(await (await usher.client(receiver.url)).completedOrder(), 'SUCCESS');
  const { body } = await usher.request('GET', '/ops/metrics', { authorization: basic('ops', 'ops') });
  expect(promtool(['check', 'metrics'], String(body.text))).toBe('');
});

test.each([
  ['check', 'docs/operations/alerts.yml'],
  ['test', 'test/documents/alerts.promtool.yml'],
])('promtool %s rules accepts %s', (command, file) => {
  expect(promtool([command, 'rules', file])).toBe('');
});
