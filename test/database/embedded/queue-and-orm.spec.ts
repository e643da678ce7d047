import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { createPostgresBackend, type Job, Queue, runMigrations, Worker } from 'bullmq';
import pg from 'pg';
import { DataSource, EntitySchema } from 'typeorm';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../../src/database/embedded/index.js';
import { migrateOrRefuse, pendingMigrations, usherMigrations } from '../../../src/database/migrator.js';
import { Folders } from './support.js';

interface Item {
  id: string;
  note: string;
}

const ItemEntity = new EntitySchema<Item>({
  name: 'item',
  columns: { id: { type: 'varchar', primary: true }, note: { type: 'text' } },
});

const folders = new Folders();
let owner: EmbeddedPostgres;
let guest: EmbeddedPostgres;

beforeAll(async () => {
  const folder = await folders.initialised();
  owner = await openEmbeddedPostgres(folder, 'own');
  guest = await openEmbeddedPostgres(folder, 'join');
});

afterAll(async () => {
  await guest.close();
  await owner.close();
  await folders.clean();
});

const databases = [
  ['owner', () => owner],
  ['guest', () => guest],
] as const;

test('two processes that migrate at the same time make each table once', async () => {
  const folder = await folders.empty();
  const first = await openEmbeddedPostgres(folder, 'own');
  const second = await openEmbeddedPostgres(folder, 'join');
  const both = await Promise.all(
    [first, second].map(({ connection }) =>
      new DataSource({
        type: 'postgres',
        extra: connection,
        migrations: usherMigrations,
        migrationsTransactionMode: 'each',
      }).initialize(),
    ),
  );
  const location = { kind: 'embedded', folder, join: true } as const;
  await Promise.all(both.map((dataSource) => migrateOrRefuse(dataSource, location)));
  for (const dataSource of both) expect(await pendingMigrations(dataSource)).toEqual([]);
  expect(await both[0]?.query('SELECT name FROM migrations')).toHaveLength(usherMigrations.length);
  for (const dataSource of both) await dataSource.destroy();
  await second.close();
  await first.close();
});

describe.each(databases)('for the %s', (role, database) => {
  describe('BullMQ', () => {
    let pool: pg.Pool;
    let queue: ReturnType<typeof newQueue>;
    let worker: ReturnType<typeof newWorker>;
    const work = jest.fn<(job: Job) => Promise<unknown>>();
    const name = `queue-${role}`;
    const newQueue = () => new Queue(name, { connection: pool }, createPostgresBackend);
    const newWorker = () =>
      new Worker(
        name,
        work,
        { connection: pool, concurrency: 4, settings: { backoffStrategy: () => 1 } },
        createPostgresBackend,
      );

    beforeAll(async () => {
      pool = new pg.Pool({ ...database().connection, max: 20, options: '-c search_path=bullmq' });
      pool.on('error', () => undefined);
      const client = await pool.connect();
      await runMigrations(client);
      client.release();
      queue = newQueue();
      worker = newWorker();
      await worker.waitUntilReady();
    });

    afterAll(async () => {
      await worker.close();
      await queue.close();
      await pool.end();
    });

    const completedJobs = (count: number): Promise<Job[]> =>
      new Promise((resolve) => {
        const jobs: Job[] = [];
        const collect = (job: Job): void => {
          if (jobs.push(job) === count) resolve(jobs);
        };
        worker.removeAllListeners('completed').on('completed', collect);
      });

    test('runs every job once', async () => {
      work.mockReset().mockResolvedValue('done');
      const all = completedJobs(100);
      await Promise.all(Array.from({ length: 100 }, (_, i) => queue.add('plain', { i })));
      const numbers = (await all).map((job) => job.data.i).sort((a, b) => a - b);
      expect(numbers).toEqual(Array.from({ length: 100 }, (_, i) => i));
      expect(work).toHaveBeenCalledTimes(100);
    });

    test('wakes an idle worker for a delayed job when it is due, not earlier', async () => {
      work.mockReset().mockResolvedValue('done');
      const one = completedJobs(1);
      const added = await queue.add('delayed', {}, { delay: 300 });
      const [job] = await one;
      expect(job?.id).toBe(added.id);
      expect((job?.processedOn ?? 0) - added.timestamp).toBeGreaterThanOrEqual(300);
    });

    test('retries a job that failed', async () => {
      work.mockReset().mockRejectedValueOnce(new Error('first')).mockRejectedValueOnce(new Error('second'));
      const one = completedJobs(1);
      await queue.add('retried', {}, { attempts: 5, backoff: { type: 'custom' } });
      const [job] = await one;
      expect(job?.attemptsMade).toBe(3);
      expect(work).toHaveBeenCalledTimes(3);
    });
  });

  describe('TypeORM', () => {
    let orm: DataSource;

    beforeAll(async () => {
      orm = new DataSource({
        type: 'postgres',
        entities: [ItemEntity],
        synchronize: true,
        extra: database().connection,
      });
      await orm.initialize();
      await orm.getRepository(ItemEntity).clear();
    });

    afterAll(() => orm.destroy());

    test('keeps committed rows and none of a transaction that fails', async () => {
      const items = orm.getRepository(ItemEntity);
      await orm.transaction((manager) => manager.getRepository(ItemEntity).insert({ id: 'a', note: 'kept' }));
      const failing = orm.transaction(async (manager) => {
        await manager.getRepository(ItemEntity).insert({ id: 'b', note: 'lost' });
        await manager.getRepository(ItemEntity).insert({ id: 'a', note: 'twice' });
      });
      await expect(failing).rejects.toThrow('duplicate key');
      expect(await items.find()).toEqual([{ id: 'a', note: 'kept' }]);
    });

    test('locks rows with SKIP LOCKED in concurrent transactions', async () => {
      const take = () =>
        orm.transaction((manager) =>
          manager
            .getRepository(ItemEntity)
            .createQueryBuilder('i')
            .setLock('pessimistic_write')
            .setOnLocked('skip_locked')
            .getMany(),
        );
      const taken = await Promise.all(Array.from({ length: 10 }, take));
      expect(taken.every((items) => items.length === 1)).toBe(true);
    });
  });
});
