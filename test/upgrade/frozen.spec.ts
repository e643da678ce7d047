import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import type { Queue } from 'bullmq';
import { SANDBOX_QUEUE } from '../../src/orders/sandbox/sandbox.module.js';
import { RunQueue } from '../../src/queue/run-queue.js';
import { PURGE_QUEUE } from '../../src/retention/purge.js';
import { WEBHOOK_QUEUE } from '../../src/webhooks/queue/delivery.queue.js';
import { RETRY_RUN_QUEUE } from '../../src/webhooks/queue/retry-run.js';
import { WebhookResends } from '../../src/webhooks/undelivered/webhook-resends.js';
import { eventually } from '../support/eventually.js';
import { releasedJobs } from '../support/released-database.js';
import { COMPLETION, type TestClient, TestUsher } from '../support/usher.js';

/** SHA-256 of each file of src/database/migrations at its release. A release adds its own. */
const RELEASED_FILES = {
  '1767225600000-initial.ts': '4f761f7913bcfe5cedf92bfc044932da28d99f55389a49892b428a9158af2c75',
  'authorization-tables.ts': 'e4d2e46221f5cba12414f285042a889d7f6264ba09c42a9e40c18337c0e21c47',
  'column-types.ts': 'b88edc123b9340d5c3cadb58c188065c914f04d2a075b2cf9c2308f1cbddbcf1',
  'contact-tables.ts': 'a911a6e8c2b234c543a2d4dbecdedee130b2e7028f7878674bc796a121f1edb2',
  'figure-tables.ts': '3009fd07c7f0032fec802f73c88ce64c3b07eb66dce907a793f105812d5118ed',
  'operator-tables.ts': '252649941626387acb023f5c90d5fa8d44ec0bde645b91a6abb2351abcf4a136',
  'order-tables.ts': 'df145e8441f9ab67c150638be4e73f6b18589e5183d32cb147ed6c3e66415d18',
};

describe('a migration that was released', () => {
  test.each(Object.entries(RELEASED_FILES))('%s is not edited', (name, released) => {
    const digest = createHash('sha256')
      .update(readFileSync(`src/database/migrations/${name}`))
      .digest('hex');
    const advice = `src/database/migrations/${name} was released: add a new migration instead (CONTRIBUTING.md, "Add a migration")`;
    expect(digest === released ? 'unchanged' : advice).toBe('unchanged');
  });
});

/** The jobs of a worker of 0.2.0 must be understood, and such a worker must understand these. */
describe('the jobs of 0.2.0 and of now have the same form:', () => {
  let usher: TestUsher;
  let client: TestClient;

  beforeAll(async () => {
    usher = await TestUsher.start({ USHER_ROLE: 'api' });
    client = await usher.client('http://127.0.0.1:4000/notify');
  });
  afterAll(() => usher.stop());

  const queue = (name: string): Queue => usher.running.app.get<Queue>(getQueueToken(name), { strict: false });

  /** A value with types in place of everything that is no structure. */
  const form = (value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, form(inner)]))
      : typeof value;

  /** Every job of 0.2.0 with this name in this queue has the form of today's; today's may have more fields. */
  async function expectSameForm(inQueue: string, name: string, id: RegExp, jobId: string): Promise<void> {
    const released = releasedJobs().filter(({ queue, fields }) => queue === inQueue && fields.name === name);
    expect(released.length).toBeGreaterThan(0);
    const job = await eventually(`there is a job ${jobId}`, () => queue(inQueue).getJob(jobId));
    expect([job.name, job.id]).toEqual([name, expect.stringMatching(id)]);
    for (const { id: releasedId, fields } of released) {
      expect(releasedId).toMatch(id);
      expect(form(job.data)).toMatchObject(form(JSON.parse(fields.data!)) as object);
      const { attempts, backoff } = JSON.parse(fields.opts!) as Record<string, unknown>;
      expect({ attempts: job.opts.attempts, backoff: job.opts.backoff }).toEqual({ attempts, backoff });
    }
  }

  test('the names of the queues', () => {
    expect([WEBHOOK_QUEUE, RETRY_RUN_QUEUE, PURGE_QUEUE, SANDBOX_QUEUE]).toEqual([
      'usher-webhook',
      'usher-retry-run',
      'usher-purge',
      'usher-sandbox-operator',
    ]);
  });

  test('a delivery', async () => {
    const { id } = await usher.webhook(await client.completedOrder(), 'PENDING');
    await expectSameForm(WEBHOOK_QUEUE, 'deliver', /^s[0-9a-z]{9}[A-Za-z0-9]{12}$/, id);
  });

  test('a retry run, and a purge', async () => {
    const everyMs = 100;
    const runs = new RunQueue(queue(RETRY_RUN_QUEUE), everyMs, 'retry run');
    runs.start();
    try {
      const job = await eventually('a run was added', () => runs.job(Math.floor(Date.now() / everyMs)));
      await expectSameForm(RETRY_RUN_QUEUE, 'run', /^run-\d+$/, job.id!);
    } finally {
      runs.stop();
    }
  });

  test('a resend of many', async () => {
    const resends = usher.running.app.get(WebhookResends, { strict: false });
    const holder = { clientId: client.id, ownerId: null };
    const { id } = await resends.start(holder, { status: 'FAILED' }, { isLimited: true });
    await expectSameForm(RETRY_RUN_QUEUE, 'resend', /^resend-s[A-Za-z0-9]{21}$/, `resend-${id}`);
  });

  test('a completion in the sandbox', async () => {
    const key = await client.order();
    expect((await client.complete(key, { ...COMPLETION, delay: '1m' })).status).toBe(202);
    const orderId = Buffer.from(key, 'base64').toString().slice('MovieOrder:'.length);
    await expectSameForm(SANDBOX_QUEUE, 'complete', /^s[A-Za-z0-9]{21}$/, orderId);
  });
});
