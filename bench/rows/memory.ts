import { setTimeout as sleep } from 'node:timers/promises';
import { Booth } from '../usher/booth.js';
import { PendingNotifications } from '../usher/pending-notifications.js';
import { progress } from '../harness/progress.js';
import { Receiver } from '../harness/receiver.js';
import { type Line, relativeTo, type Row } from '../harness/row.js';
import { BenchUsher } from '../usher/usher.js';

const WATCHED_MS = 30_000;
const POLL_MS = 250;
const MB = 'most MB';
const EMPTY = 'nothing pending';

export const memory: Row = {
  name: 'memory',
  title: 'resident memory of a worker, MariaDB + Redis, while its receiver never answers, beside a worker without work',
  plotted: MB,
  async run(effort) {
    const pendingCount = effort.isQuick ? 5_000 : 100_000;
    const usher = await BenchUsher.prepare('MariaDB + Redis', (await Receiver.start('never')).url());
    const booth = await Booth.of(usher, effort);
    const pending = await PendingNotifications.prepare(booth);
    await booth.server.stop();
    const lines: Line[] = [
      { subject: EMPTY, isReference: true, figures: { [MB]: await mostMemory(usher, effort.isQuick) } },
    ];
    progress(`adding ${pendingCount} pending notifications`);
    await pending.add(pendingCount);
    await pending.queue.resume();
    const subject = `${pendingCount.toLocaleString('en')} pending`;
    lines.push({ subject, isReference: false, figures: { [MB]: await mostMemory(usher, effort.isQuick) } });
    return { lines: relativeTo(lines, MB, EMPTY, `${MB}, ${EMPTY} = 1`), checks: [] };
  },
};

/** The most that a new worker uses in its first half minute. */
async function mostMemory(usher: BenchUsher, isQuick: boolean): Promise<number> {
  progress('watching a worker');
  const worker = await usher.start('worker');
  let most = 0;
  for (
    const until = performance.now() + (isQuick ? 0.2 : 1) * WATCHED_MS;
    performance.now() < until;
    await sleep(POLL_MS)
  )
    most = Math.max(most, (await worker.used()).memory);
  await worker.stop();
  return most / 2 ** 20;
}
