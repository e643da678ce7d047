import { expect, test } from '@jest/globals';
import { DeliveryQueue } from '../../../src/webhooks/queue/delivery.queue.js';
import { eventually } from '../../support/eventually.js';
import { TestUsher } from '../../support/usher.js';

test.each(['one', 'another'])(
  'a job of another database is reported, with what to do (%s application)',
  async (name) => {
    const log: Record<string, unknown>[] = [];
    const output = { write: (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>) };
    const usher = await TestUsher.start({ LOG_LEVEL: 'warn' }, output);
    const of = { referenceId: 'one', clientId: 'other', notifyUrl: 'https://partner.example/' };
    usher.running.app.get(DeliveryQueue, { strict: false }).enqueue({ id: `s0${name}`, ...of }, 0);
    const line = await eventually('it is reported', () => log.find(({ msg }) => String(msg).includes(`s0${name}`)));
    expect(line.msg).toMatch(/is not in this database: .+ uses the queue prefix \S+ too; give each database a prefix/);
    await usher.stop();
  },
);
