import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/random.js';
import type { Fleet, Role } from './fleet.js';
import type { Guessing } from './guessing.js';
import type { KeyRotation } from './keys.js';
import { LONGEST_LEASE_MS } from './limits.js';
import type { ChaosRedis } from './redis.js';
import type { OwnMariadb } from './services.js';

/** What a fault makes unavailable: a process, the database, the queue or nothing. */
export type Loss = 'process' | 'database' | 'queue' | 'nothing';

export interface Fault {
  name: string;
  loss: Loss;
  from: number;
  until: number;
}

interface Kind {
  name: string;
  loss: Loss;
  /** Resolves when the fault is over. False if there is nothing to stop at the moment. */
  inject: (fault: Fault) => Promise<boolean>;
}

/** The faults of a run: their kinds, their order, and when each one happened. */
export class Faults {
  readonly past: Fault[] = [];
  private readonly kinds: Kind[];
  private readonly running: Promise<void>[] = [];
  private remaining: Kind[] = [];

  constructor(
    private readonly fleet: Fleet,
    private readonly random: Random,
    services: { redis: ChaosRedis; mariadb: OwnMariadb } | null,
    private readonly guessing: Guessing,
    keys: KeyRotation,
  ) {
    this.kinds = services
      ? [
          ...this.processKinds('worker'),
          this.killOf('api'),
          this.guessingAt('api'),
          ...(['api', 'worker'] as const).map((role) => this.withoutKeyAt(role, keys)),
          ...this.serviceKinds(services.redis, services.mariadb),
        ]
      : this.oneProcessKinds();
  }

  /** Injects `count` faults, one every `everyMs`, and waits until all are over. */
  async run(count: number, everyMs: number): Promise<void> {
    const startedAt = Date.now();
    for (let n = 0; n < count; n += 1) {
      const at = startedAt + (n + this.random.next()) * everyMs;
      await sleep(Math.max(0, at - Date.now()));
      this.running.push(this.oneFault());
    }
    await Promise.all(this.running);
  }

  /** Injects the next fault. Every kind is used once before any is repeated. */
  private async oneFault(): Promise<void> {
    for (;;) {
      if (this.remaining.length === 0) this.remaining = this.random.shuffled(this.kinds);
      const { name, loss, inject } = this.remaining.pop() as Kind;
      const fault = { name, loss, from: Date.now(), until: Infinity };
      this.past.push(fault);
      if (await inject(fault)) {
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

  /** With only one process: it must be up and work for a while before the next fault. */
  private oneProcessKinds(): Kind[] {
    const turn = oneAtATime();
    return [...this.processKinds('all'), this.guessingAt('all')].map(({ inject, ...kind }) => ({
      ...kind,
      inject: (fault) =>
        turn(fault, async () => {
          await inject(fault);
          await this.fleet.waitUntilUp();
          await sleep(this.random.between(2_000, 6_000));
        }),
    }));
  }

  private guessingAt(role: Role): Kind {
    const inject = async (): Promise<boolean> => {
      const victim = this.fleet.victim(role);
      if (victim) await this.guessing.attack(victim.name, victim.url);
      return victim !== undefined;
    };
    return { name: 'pipelined guesses of a client secret', loss: 'nothing', inject };
  }

  /** It answers 503 and delivers nothing, and the keys cannot be rotated meanwhile. */
  private withoutKeyAt(role: Role, keys: KeyRotation): Kind {
    return this.processKind(`without the master key (${role})`, role, (victim) =>
      victim.misconfigure(keys.otherKey(), this.random.between(4_000, 8_000), () => keys.tryToRotate(victim.name)),
    );
  }

  private killOf(role: Role): Kind {
    return this.processKind(`kill -9 of a process (${role})`, role, (victim) => victim.kill());
  }

  private processKind(name: string, role: Role, injectInto: (victim: Victim) => Promise<void>): Kind {
    const inject = async (): Promise<boolean> => {
      const victim = this.fleet.victim(role);
      if (victim) await injectInto(victim);
      return victim !== undefined;
    };
    return { name, loss: 'process', inject };
  }

  private serviceKinds(redis: ChaosRedis, mariadb: OwnMariadb): Kind[] {
    const redisTurn = oneAtATime();
    const mariadbTurn = oneAtATime();
    const queue = ([name, work]: [string, () => Promise<unknown>]): Kind => ({
      name,
      loss: 'queue',
      inject: (fault) => redisTurn(fault, work),
    });
    const database = (name: string, work: () => Promise<void>): Kind => ({
      name,
      loss: 'database',
      inject: (fault) => mariadbTurn(fault, work),
    });
    const restart = async (signal: NodeJS.Signals): Promise<void> => {
      await mariadb.stop(signal);
      await sleep(this.random.between(1_000, 5_000));
      await mariadb.start();
    };
    return [
      ...Object.entries(redis.faults(this.random)).map(queue),
      database('MariaDB: kill -9', () => restart('SIGKILL')),
      database('MariaDB: restart', () => restart('SIGTERM')),
      database('MariaDB: connections cut', () => mariadb.cutConnections()),
      database('MariaDB: its disk is full', async () => {
        await mariadb.fillDisk();
        await sleep(this.random.between(1_000, 8_000));
        await mariadb.freeDisk();
      }),
      database('MariaDB: a table is locked for longer than requests wait', () =>
        mariadb.lockTable(this.random.pick(HELD_TABLES), this.random.between(11_000, 15_000)),
      ),
      database('MariaDB: demoted, read-only', async () => {
        await mariadb.setReadOnly(true);
        await sleep(this.random.between(1_000, 8_000));
        await mariadb.setReadOnly(false);
      }),
    ];
  }
}

const HELD_TABLES = ['usher_grant', 'usher_movie_order', 'usher_webhook', 'usher_webhook_attempt'];

type Victim = NonNullable<ReturnType<Fleet['victim']>>;

/** Faults of the same server run one after the other; each starts when the previous one is over. */
function oneAtATime(): (fault: Fault, work: () => Promise<unknown>) => Promise<boolean> {
  let last: Promise<unknown> = Promise.resolve();
  return async (fault, work) => {
    last = last.then(() => {
      fault.from = Date.now();
      return work();
    });
    await last;
    return true;
  };
}
