import { type ChildProcess } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OwnRedis, type OwnRedisOptions } from '../support/own-redis.js';
import type { Random } from '../support/random.js';
import { RedisPair, Sentinels } from '../support/redis-pair.js';
import { freePort } from '../support/ports.js';
import { findBinary, killOnExit } from './processes.js';

/** How a run reaches the primary of its Redis: by an address that leads to it, or by asking Sentinels. */
export type RedisAccess = 'address' | 'sentinel';

/** A Redis of this run that keeps its data in an append-only file. */
export async function prepareRedis(folder: string): Promise<OwnRedis> {
  return OwnRedis.prepare(await optionsIn(folder));
}

async function optionsIn(folder: string): Promise<OwnRedisOptions> {
  findBinary('redis-server');
  mkdirSync(folder, { recursive: true });
  const onSpawn = (child: ChildProcess): void => {
    killOnExit(child).stdout?.pipe(createWriteStream(join(folder, 'redis.log'), { flags: 'a' }));
  };
  const args = ['--appendonly', 'yes', '--appendfsync', 'everysec'];
  return { folder, port: await freePort(), args, onSpawn };
}

/** A primary and a replica of this run, whose primary changes. */
export class ChaosRedis {
  private constructor(
    private readonly pair: RedisPair,
    private readonly sentinels: Sentinels | null,
  ) {}

  static async start(access: RedisAccess, folder: string): Promise<ChaosRedis> {
    const pair = await RedisPair.start((node) => optionsIn(join(folder, `redis-${node}`)));
    if (access === 'address') return new ChaosRedis(pair, null);
    const sentinelIn = async (member: number): Promise<OwnRedisOptions> => ({
      ...(await optionsIn(join(folder, `sentinel-${member}`))),
      args: [],
    });
    return new ChaosRedis(pair, await Sentinels.watch(pair, sentinelIn));
  }

  get url(): string {
    return this.sentinels?.url ?? this.pair.url;
  }

  /** The faults, by name. They must run one after the other. */
  faults(random: Random): Record<string, () => Promise<unknown>> {
    const onPrimary = (work: (primary: OwnRedis) => Promise<unknown>) => async () =>
      work((await this.pair.roles()).primary);
    const restart = (forget: boolean) =>
      onPrimary(async (primary) => {
        await primary.stop('SIGKILL');
        await sleep(random.between(1_000, 5_000));
        if (forget) primary.forget();
        await primary.start();
      });
    const both = {
      'Redis: FLUSHALL': onPrimary((primary) => primary.command('FLUSHALL')),
      'Redis: connections cut': onPrimary((primary) => primary.command('CLIENT', 'KILL', 'TYPE', 'normal')),
    };
    const { sentinels } = this;
    if (!sentinels)
      return {
        ...both,
        'Redis: kill -9, memory kept': restart(false),
        'Redis: kill -9, memory lost': restart(true),
        'Redis: failover by address, the old primary stays reachable': () => this.pair.failOver(),
      };
    return {
      ...both,
      'Redis: failover by the Sentinels': async () => {
        await sentinels.failOver();
        await this.pair.settled();
      },
      'Redis: the primary is killed and replaced': onPrimary(async (primary) => {
        await primary.stop('SIGKILL');
        await sentinels.switchedFrom(primary.port);
        await primary.start();
        await this.pair.settled();
      }),
    };
  }

  async stop(): Promise<void> {
    await this.sentinels?.stop();
    await this.pair.stop();
  }
}
