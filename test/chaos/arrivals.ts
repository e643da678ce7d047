import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { killOnExit } from './processes.js';
import type { Assignment } from './receivers.js';

/** One notification as a receiver saw it. Times are in milliseconds since 1970, by this machine's clock. */
export interface Arrival {
  order: number;
  at: number;
  answer: string;
  webhook: string;
  attempt: number;
  key: string;
  isSigned: boolean;
  /** The status it was answered with while the connection was open; null if it was not answered. */
  status: number | null;
  answeredAt: number | null;
}

/** The process of the receivers, and its log. */
export class ReceiverProcess {
  private constructor(
    private readonly child: ChildProcess,
    private readonly logFile: string,
    /** One port for each host. */
    readonly ports: number[],
  ) {}

  static async start(assignment: Assignment): Promise<ReceiverProcess> {
    const child = killOnExit(fork(new URL('receivers.ts', import.meta.url)));
    child.send(assignment);
    const [ports] = (await once(child, 'message')) as [number[]];
    return new ReceiverProcess(child, assignment.logFile, ports);
  }

  /** Stops the receivers and reads their log, in order of arrival. */
  async finish(): Promise<Arrival[]> {
    const ended = once(this.child, 'exit');
    this.child.disconnect();
    await ended;
    return readArrivals(this.logFile);
  }
}

type Line = ({ arrival: number } & Arrival) | { answer: number; status: number; at: number };

function readArrivals(file: string): Arrival[] {
  const arrivals = new Map<number, Arrival>();
  for (const text of readFileSync(file, 'utf8').split('\n').filter(Boolean)) {
    const line = JSON.parse(text) as Line;
    if ('arrival' in line) arrivals.set(line.arrival, { ...line, status: null, answeredAt: null });
    else Object.assign(arrivals.get(line.answer) ?? {}, { status: line.status, answeredAt: line.at });
  }
  return [...arrivals.values()].sort((left, right) => left.at - right.at);
}
