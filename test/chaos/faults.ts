import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/random.js';
import type { Fleet, Role } from './fleet.js';
import { LONGEST_LEASE_MS } from './limits.js';
import type { OwnMariadb, OwnRedis } from './services.js';

/** What a fault takes away: a process, the database or the queue. */
export type Loss = 'process' | 'database' | 'queue';

export interface Fault {
  name: string;
  loss: Loss;
  from: number;
  until: number;
}

interface Kind {
  name: string;
  loss: Loss;
  /** Ends when what it took is there again, or false if there was nothing to take just now. */
  befall: (fault: Fault) => Promise<boolean>;
}

/** The faults of a run: which there are, in what order they come, and when each was. */
export class Faults {
  readonly past: Fault[] = [];
  private readonly kinds: Kind[];
  private readonly underWay: Promise<void>[] = [];
  private deck: Kind[] = [];

  constructor(
    private readonly fleet: Fleet,
    private readonly random: Random,
    services: { redis: OwnRedis; mariadb: OwnMariadb } | null,
  ) {
    this.kinds = services
      ? [...this.processKinds('worker'), this.killOf('api'), ...this.serviceKinds(services.redis, services.mariadb)]
      : this.oneProcessKinds();
  }

  /** Lets `count` faults befall the run, one every `everyMs`, and waits until all of them are over. */
  async run(count: number, everyMs: number): Promise<void> {
    const startedAt = Date.now();
    for (let n = 0; n < count; n += 1) {
      const at = startedAt + (n + this.random.next()) * everyMs;
      await sleep(Math.max(0, at - Date.now()));
      this.underWay.push(this.oneFault());
    }
    await Promise.all(this.underWay);
  }

  /** Every kind once before any comes again. */
  private async oneFault(): Promise<void> {
    for (;;) {
      if (this.deck.length === 0) this.deck = this.random.shuffled(this.kinds);
      const { name, loss, befall } = this.deck.pop() as Kind;
      const fault = { name, loss, from: Date.now(), until: Infinity };
      this.past.push(fault);
      if (await befall(fault)) {
        fault.until = Date.now();
        return;
      }
      this.past.splice(this.past.indexOf(fault), 1);
      await sleep(500);
    }
  }

  private processKinds(role: Role): Kind[] {
    const pauseMs = (): number => LONGEST_LEASE_MS + this.random.between(1_000, 4_000);
    return [
      this.killOf(role),
      this.processKind(`SIGTERM of a process (${role})`, role, (victim) => victim.drain()),
      this.processKind(`SIGSTOP of a process (${role})`, role, (victim) => victim.pause(pauseMs())),
    ];
  }

  /** Where there is but one process it comes up, and works for a while, before the next fault. */
  private oneProcessKinds(): Kind[] {
    const turn = oneAtATime();
    return this.processKinds('all').map(({ befall, ...kind }) => ({
      ...kind,
      befall: (fault) =>
        turn(fault, async () => {
          await befall(fault);
          await this.fleet.waitUntilUp();
          await sleep(this.random.between(2_000, 6_000));
        }),
    }));
  }

  private killOf(role: Role): Kind {
    return this.processKind(`kill -9 of a process (${role})`, role, (victim) => victim.kill());
  }

  private processKind(name: string, role: Role, strike: (victim: Victim) => Promise<void>): Kind {
    const befall = async (): Promise<boolean> => {
      const victim = this.fleet.victim(role);
      if (victim) await strike(victim);
      return victim !== undefined;
    };
    return { name, loss: 'process', befall };
  }

  private serviceKinds(redis: OwnRedis, mariadb: OwnMariadb): Kind[] {
    const redisTurn = oneAtATime();
    const mariadbTurn = oneAtATime();
    const queue = (name: string, work: () => Promise<void>): Kind => ({
      ...{ name, loss: 'queue', befall: (fault) => redisTurn(fault, work) },
    });
    const database = (name: string, work: () => Promise<void>): Kind => ({
      ...{ name, loss: 'database', befall: (fault) => mariadbTurn(fault, work) },
    });
    const again = async (server: OwnRedis | OwnMariadb, signal: NodeJS.Signals, forget?: () => void): Promise<void> => {
      await server.end(signal);
      await sleep(this.random.between(1_000, 5_000));
      forget?.();
      await server.start();
    };
    return [
      queue('Redis: FLUSHALL', () => redis.command('FLUSHALL')),
      queue('Redis: connections cut', () => redis.command('CLIENT', 'KILL', 'TYPE', 'normal')),
      queue('Redis: kill -9, memory kept', () => again(redis, 'SIGKILL')),
      queue('Redis: kill -9, memory lost', () => again(redis, 'SIGKILL', () => redis.forget())),
      database('MariaDB: kill -9', () => again(mariadb, 'SIGKILL')),
      database('MariaDB: restart', () => again(mariadb, 'SIGTERM')),
      database('MariaDB: connections cut', () => mariadb.cutConnections()),
    ];
  }
}

type Victim = NonNullable<ReturnType<Fleet['victim']>>;

/** What befalls one server waits for each other, and begins when its turn comes. */
function oneAtATime(): (fault: Fault, work: () => Promise<void>) => Promise<boolean> {
  let last: Promise<void> = Promise.resolve();
  return async (fault, work) => {
    last = last.then(() => {
      fault.from = Date.now();
      return work();
    });
    await last;
    return true;
  };
}
