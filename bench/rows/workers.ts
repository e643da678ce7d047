import type { RowDataPacket } from 'mysql2';
import { onMysql } from '../harness/backend.js';
import { commandsDuring } from '../harness/commands.js';
import { CPU, CPU_OF_ALL, inTurn } from '../harness/measure.js';
import { progress } from '../harness/progress.js';
import { Receiver } from '../harness/receiver.js';
import { type Line, ratio, relativeTo, type Row } from '../harness/row.js';
import { Booth } from '../usher/booth.js';
import { PendingNotifications } from '../usher/pending-notifications.js';
import { BenchUsher } from '../usher/usher.js';
import { queueSubject } from './deliver.js';

const COUNTS = [1, 2, 4, 8];
const SQL = 'SQL statements each';
const LOCKS = 'lock waits each';
const MOST = 1.15;
/** A worker of 256 slots then delivers about 160 a second, so that eight of them do not use up two cores. */
const ANSWERS_AFTER_MS = 800;

const nameOf = (workers: number): string => `${workers} worker${workers === 1 ? '' : 's'}`;
const [FIRST, LAST] = [COUNTS[0]!, COUNTS.at(-1)!].map(nameOf) as [string, string];

export const workers: Row = {
  name: 'workers',
  title:
    'recorded completions to receipts, MariaDB + Redis, with one worker process, and with more that have as much work each',
  plotted: CPU,
  async run(effort) {
    const each = effort.isQuick ? 500 : 2_000;
    const receiver = await Receiver.start(ANSWERS_AFTER_MS);
    const usher = await BenchUsher.prepare('MariaDB + Redis', receiver.url());
    const booth = await Booth.of(usher, effort);
    const pending = await PendingNotifications.prepare(booth);
    await booth.server.stop();
    const lines: Line[] = [];
    for (const number of COUNTS) {
      const count = each * number;
      // Workers of another number would wait beside them, and ask the servers meanwhile.
      const started = await Promise.all(Array.from({ length: number }, () => usher.start('worker')));
      const subject = queueSubject(nameOf(number), pending.queue, started, receiver, count, () => pending.add(count));
      const [line] = await inTurn([subject], effort.rounds, effort.warmUps);
      progress(`${subject.name}: counting statements and lock waits`);
      const waitsBefore = await lockWaits();
      const { sql } = await commandsDuring(subject.sample);
      Object.assign(line!.figures, { [SQL]: sql / count, [LOCKS]: ((await lockWaits()) - waitsBefore) / count });
      lines.push(line!);
      await Promise.all(started.map((worker) => worker.stop()));
    }
    return {
      lines: relativeTo(lines, CPU, FIRST, `CPU, ${FIRST} = 1`),
      checks: [CPU, CPU_OF_ALL, SQL].map((column) => ({
        what: `${column}: ${LAST} against ${FIRST}`,
        value: ratio(lines, column, LAST, FIRST),
        target: { most: MOST },
      })),
    };
  },
};

async function lockWaits(): Promise<number> {
  return onMysql(async (connection) => {
    const [rows] = await connection.query<RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'");
    return Number(rows[0]?.Value);
  });
}
