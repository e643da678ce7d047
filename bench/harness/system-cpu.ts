import { readdirSync, readFileSync } from 'node:fs';

/** The processes of the databases and of Redis, by their names. */
const SERVICES = ['mariadbd', 'mysqld', 'postgres', 'redis-server'];
const TICKS_A_SECOND = 100;

/** The processor time in microseconds of a process, and of those of its children that have ended. */
export function cpuOfProcess(pid: number | string): number {
  // Behind the name, which may contain spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return (ticks * 1e6) / TICKS_A_SECOND;
}

/** That of the databases and of Redis on this machine, whoever uses them. Only on Linux. */
export function cpuOfServices(): number {
  let sum = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      if (SERVICES.includes(readFileSync(`/proc/${pid}/comm`, 'utf8').trim())) sum += cpuOfProcess(pid);
    } catch {
      // It has ended meanwhile.
    }
  return sum;
}

/** How often a process was woken so far. */
export function wakeUpsOf(pid: number): number {
  let sum = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`))
    sum += Number(
      /^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8'))?.[1],
    );
  return sum;
}
