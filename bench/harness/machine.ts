import { cpus } from 'node:os';
import type { RowDataPacket } from 'mysql2';
import { onMysql, openRedis } from './backend.js';
import { cleanUp } from './cleanup.js';

/** What the figures depend on. */
export async function machine(): Promise<Record<string, string>> {
  const cores = cpus();
  const [[row]] = await onMysql((connection) => connection.query<RowDataPacket[]>('SELECT VERSION() AS version'));
  const redis = /redis_version:(\S+)/.exec(await openRedis().info('server'))?.[1];
  await cleanUp();
  return {
    Processor: `${cores.length} × ${cores[0]?.model.trim() ?? 'unknown'}`,
    'Node.js': process.version,
    MariaDB: String(row?.version),
    Redis: redis ?? 'unknown',
  };
}
