import { type Job, Queue } from 'bullmq';
import { newId } from '../../src/values/identifier.js';
import { openRedis } from '../harness/backend.js';
import { type Booth, ORDER } from './booth.js';
import { BulkRows } from './bulk-rows.js';
import { waitUntil } from '../harness/wait.js';

const JOBS_AT_ONCE = 1_000;

/** A notification that is recorded and not yet delivered. */
interface Pending {
  id: string;
  reference: string;
}

/**
 * Notifications of completed orders, recorded and not yet delivered: copies of a row and a job that Usher made. The
 * queue is paused, so that the caller decides when they begin.
 */
export class PendingNotifications {
  private constructor(
    readonly rows: BulkRows,
    readonly queue: Queue,
    private readonly template: Pending & { job: Job },
  ) {}

  /** Completes one order over REST as the template. */
  static async prepare(booth: Booth): Promise<PendingNotifications> {
    const { DATABASE_URL = '', QUEUE_PREFIX } = booth.usher.settings;
    const queue = new Queue('usher-webhook', { connection: openRedis(), prefix: `{${QUEUE_PREFIX}}` });
    await queue.pause();
    const { key = '' } = await booth.send({ path: '/movie-orders', headers: await booth.bearer(), body: ORDER });
    await booth.send(booth.completion(key));
    const job = await waitUntil('the job is in the queue', async () => (await queue.getJobs(['wait']))[0]);
    await job.remove();
    const rows = new BulkRows(DATABASE_URL);
    const [row] = await rows.query('SELECT id FROM usher_webhook WHERE reference_id = ?', [key]);
    // A status that no query of Usher looks for.
    await rows.query(`UPDATE usher_webhook SET status = 'TEMPLATE', live_key = NULL WHERE reference_id = ?`, [key]);
    return new PendingNotifications(rows, queue, { id: String(row?.id), reference: key, job });
  }

  /** Adds `count` of them with their jobs, due now. */
  async add(count: number): Promise<void> {
    const pending = await this.addRows(count, Date.now());
    for (let from = 0; from < count; from += JOBS_AT_ONCE)
      await this.queue.addBulk(pending.slice(from, from + JOBS_AT_ONCE).map((one) => this.jobOf(one)));
  }

  /** Adds the rows alone. */
  async addRows(count: number, dueAt: number): Promise<Pending[]> {
    const pending = Array.from({ length: count }, (_, n) => newPending(n, dueAt));
    const changes = pending.map(({ id, reference }) => ({
      id,
      reference_id: reference,
      live_key: `bench:${reference}`,
      status: 'PENDING',
      next_attempt_at: dueAt,
    }));
    await this.copy(changes);
    return pending;
  }

  /** Adds rows that differ from the template in this. */
  copy(changes: Iterable<Record<string, string | number | null>>): Promise<void> {
    return this.rows.copy('usher_webhook', 'id', this.template.id, changes);
  }

  private jobOf({ id, reference }: Pending) {
    const { template } = this;
    const { name, data, opts } = template.job;
    const own = JSON.stringify(data).replaceAll(template.id, id).replaceAll(template.reference, reference);
    return { name, data: JSON.parse(own) as unknown, opts: { ...opts, jobId: id } };
  }
}

/** Waits until every job of a queue has ended. */
export async function drained(queue: Queue): Promise<void> {
  await waitUntil('the queue is empty', async () => {
    const counts = await queue.getJobCounts('wait', 'active', 'prioritized', 'delayed');
    return Object.values(counts).every((count) => count === 0);
  });
}

function newPending(n: number, now: number): Pending {
  const id = newId('sandbox', now);
  return { id, reference: `${id}-${n}` };
}
