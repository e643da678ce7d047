import type { RowDataPacket } from 'mysql2';
import type { Connection } from 'mysql2/promise';
import { onMysql, openRedis } from './backend.js';

/** Statements and commands that processes sent, as their servers counted them. */
export interface Commands {
  sql: number;
  /** Of the bench's own database of Redis. Commands within a script are part of the script. */
  redis: number;
}

/** Counts while `work` runs. MariaDB counts the statements of all its clients, so it must serve nobody else meanwhile. */
export async function commandsDuring(work: () => Promise<unknown>): Promise<Commands> {
  const redis = openRedis();
  const { db } = redis.options;
  const monitor = await redis.monitor();
  let commands = 0;
  monitor.on('monitor', (_time, _command, source: string, database: string) => {
    if (Number(database) === db && source !== 'lua') commands += 1;
  });
  const sql = await onMysql(async (connection) => {
    const before = await questions(connection);
    await work();
    // The statement that reads the counter is one itself.
    return (await questions(connection)) - before - 1;
  });
  monitor.disconnect();
  return { sql, redis: commands };
}

async function questions(connection: Connection): Promise<number> {
  const [rows] = await connection.query<RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Questions'");
  return Number(rows[0]?.Value);
}
