// Loaded into each measured process with --import. It answers every message with what the process has used so far, and
// writes it to the file descriptor 3 at the end where the bench has opened one.
import { writeSync } from 'node:fs';

const used = () => {
  const { user, system } = process.cpuUsage();
  return { cpu: user + system, memory: process.memoryUsage.rss() };
};
process.on('message', () => process.send?.(used()));
process.channel?.unref();
// The bench has ended without stopping this process.
process.once('disconnect', () => process.exit());
if (process.env.BENCH_REPORTS_AT_EXIT) process.on('exit', () => writeSync(3, JSON.stringify(used())));
