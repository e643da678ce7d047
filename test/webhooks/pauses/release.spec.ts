import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Between } from 'typeorm';
import { databaseNow } from '../../../src/database/sql.js';
import { isPostgres } from '../../../src/database/data-source.js';
import { insertRows } from '../../../src/database/statements/statement.js';
import { newId } from '../../../src/values/identifier.js';
import { Sweep } from '../../../src/webhooks/queue/sweep.js';
import { DeliveryPauses } from '../../../src/webhooks/delivery-pauses.js';
import { DeliveryPause, heldAt, type PauseSubject, Webhook } from '../../../src/webhooks/webhook.entity.js';
import { statementsOf } from '../../support/statements.js';
import { TestUsher } from '../../support/usher.js';

const HELD = 2_500;
/** What a run of every second releases, at a distance of 10 ms. */
const A_RUN = 100;

let usher: TestUsher;
let sweep: Sweep;
let subject: PauseSubject;
let pause: DeliveryPause;

beforeAll(async () => {
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
  sweep = usher.running.app.get(Sweep, { strict: false });
  const client = await usher.client('http://127.0.0.1:4000/notify');
  subject = `client:${client.id}`;
  await pauses().pause(subject, 'Maintenance');
  pause = await usher.dataSource.manager.findOneByOrFail(DeliveryPause, { subject });
  for (let made = 0; made < HELD; made += 500)
    await insertRows(
      usher.dataSource,
      Webhook,
      Array.from({ length: 500 }, (_, n) => heldWebhook(client.id, made + n)),
    );
});
afterAll(() => usher.stop());

const pauses = (): DeliveryPauses => usher.running.app.get(DeliveryPauses, { strict: false });
const now = (): Promise<number> => databaseNow(usher.dataSource.manager);

const heldWebhook = (clientId: string, number: number): Webhook => ({
  id: newId('sandbox', pause.since),
  referenceId: `held-${number}`,
  eventType: 'NOTIFY_ORDER_COMPLETION',
  liveKey: `held-${number}`,
  clientId,
  ownerId: null,
  notifyUrl: 'http://127.0.0.1:4000/notify',
  usesClientUrl: true,
  body: '{}',
  status: 'PENDING',
  attempts: 0,
  nextAttemptAt: heldAt(pause),
  createdAt: pause.since,
  finishedAt: null,
  resendOf: null,
  requestId: null,
  purgedAt: null,
});

test.each(['overdue', 'all'] as const)(
  'a run for %s rows reads none that a pause holds, by the index of due ones',
  async (extent) => {
    const statements = await statementsOf(usher.dataSource, async () => sweep.run(extent, await now()));
    const reads = statements.filter(({ sql }) => /FROM .usher_webhook. /.test(sql));
    expect(reads).toHaveLength(1);
    const [{ sql, parameters }] = reads as [(typeof statements)[number]];
    expect(await usher.dataSource.query(sql, parameters)).toEqual([]);
    await usher.dataSource.query(`ANALYZE ${isPostgres(usher.dataSource) ? '' : 'TABLE'} usher_webhook`);
    expect(JSON.stringify(await usher.dataSource.query(`EXPLAIN ${sql}`, parameters))).toContain('usher_webhook_due');
  },
);

test('the webhooks of a resumed pause become due one after another, a part in each run, and have jobs', async () => {
  await pauses().resume(subject);
  const { manager } = usher.dataSource;
  const started = await now();
  await sweep.run('overdue', started);
  const released = await manager.find(Webhook, {
    where: { nextAttemptAt: Between(0, pause.since * 2) },
    order: { nextAttemptAt: 'ASC' },
  });
  expect(new Set(released.map(({ nextAttemptAt }) => nextAttemptAt))).toEqual(new Set([started]));
  const jobs = await Promise.all(released.map(({ id }) => usher.queue.getJob(id)));
  const delays = jobs.map((job) => job?.delay ?? 0).sort((left, right) => left - right);
  expect(delays).toEqual(Array.from({ length: A_RUN }, (_, n) => (n + 1) * 10));
  await sweep.run('overdue', started + 1_000);
  expect(await manager.countBy(Webhook, { nextAttemptAt: heldAt(pause) })).toBe(HELD - 2 * A_RUN);
});

test('further runs continue until nothing is held, and a run without a resumed pause changes nothing', async () => {
  for (let run = 0; run < HELD / A_RUN; run += 1) await sweep.run('overdue', 0);
  expect(await usher.dataSource.manager.countBy(Webhook, { nextAttemptAt: heldAt(pause) })).toBe(0);
  const reads = await statementsOf(usher.dataSource, () => sweep.run('overdue', 0));
  expect(reads.length).toBeLessThanOrEqual(3);
});
