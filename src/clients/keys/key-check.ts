import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { StartUpError } from '../../values/start-up-error.js';
import { ClientSecret } from '../client.entity.js';
import { KeyRing, Vault } from '../secrets/vault.js';
import type { KeyFile } from './key-file.js';
import { ProcessList } from './processes.js';

/** Counts the client secrets that each master key encrypts, by key id. */
export async function keyUsage(manager: EntityManager): Promise<Map<string, number>> {
  const rows = await manager
    .createQueryBuilder(ClientSecret, 'secret')
    .select('secret.keyId', 'id')
    .addSelect('COUNT(*)', 'count')
    .groupBy('secret.keyId')
    .getRawMany<{ id: string; count: string | number }>();
  return new Map(rows.map(({ id, count }) => [id, Number(count)]));
}

/** Of each key; and so many unreadable secrets of an earlier key count as damaged. */
const MAX_SAMPLES = 10;

/** Injects the {@link KeyFile}, or null if the keys are in the settings. */
export const KEY_FILE = Symbol('KeyFile');

/**
 * Stops the start-up if a master key is missing or changed: clients could neither authenticate nor be notified. Commands start,
 * because they give clients new secrets if the key is lost.
 */
@Injectable()
export class KeyCheck implements OnModuleInit {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly keys: KeyRing,
    private readonly vault: Vault,
    private readonly processes: ProcessList,
    @Inject(KEY_FILE) private readonly keyFile: KeyFile | null,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  async onModuleInit(): Promise<void> {
    if (this.options.role !== null) await this.check();
  }

  /** @throws StartUpError if a master key is missing or changed */
  async check(): Promise<void> {
    const [fault] = await this.faults(this.keys.encryptionKey().id);
    if (fault) throw new StartUpError(fault.reason);
  }

  /**
   * Before a command encrypts a secret. While no process runs, it may do so although another key is lost.
   * @throws StartUpError if a running process could not open the secret, and would answer 503 to the client
   */
  async checkForProcesses(): Promise<void> {
    if (!(await this.processes.read()).some(({ isAlive }) => isAlive)) return;
    const { id } = this.keys.encryptionKey();
    const { lacking } = await this.processes.notEncryptingWith(id);
    // A process reads its key file again when it meets a new key.
    if (lacking.length > 0 && (!this.keyFile || (await this.faults(id)).length > 0))
      throw new StartUpError(
        `${couldNotOpen(id, lacking)}; run the command with the master keys of these processes, or add "${id}" to them. ${KILLED_STAYS_LISTED}`,
      );
    await this.checkEncryptionKey();
  }

  /** @throws StartUpError if the key that encrypts has other bytes than in the processes that have encrypted with it */
  async checkEncryptionKey(): Promise<void> {
    const { id } = this.keys.encryptionKey();
    const own = (await this.faults(id)).find(({ keyId }) => keyId === id);
    if (own) throw new StartUpError(own.reason);
  }

  /** Why no secret of a master key can be opened. Null if that concerns no key, or only clients with damaged secrets. */
  async fault(): Promise<string | null> {
    return (await this.faults())[0]?.reason ?? null;
  }

  /**
   * The keys of which no secret can be opened. A rotation leaves damaged secrets to the earlier key, maybe as its only ones; they
   * concern only their clients. So if another key is right, a few secrets of a key that this process has are no fault. They
   * are one for `encryptionKey`: its bytes may differ from those in other processes.
   */
  private async faults(encryptionKey?: string): Promise<{ keyId: string; reason: string }[]> {
    const { manager } = this.dataSource;
    const usage = await keyUsage(manager);
    const unreadable: [keyId: string, count: number][] = [];
    for (const [keyId, count] of usage) {
      const samples = await manager.find(ClientSecret, { where: { keyId }, take: MAX_SAMPLES });
      if (samples.length > 0 && !samples.some((one) => this.vault.canOpen(one))) unreadable.push([keyId, count]);
    }
    const areDamaged = (keyId: string, count: number): boolean =>
      count <= MAX_SAMPLES && unreadable.length < usage.size && keyId !== encryptionKey && !!this.keys.find(keyId);
    return unreadable
      .filter(([keyId, count]) => !areDamaged(keyId, count))
      .map(([keyId, count]) => ({ keyId, reason: this.described(keyId, count) }));
  }

  private described(keyId: string, count: number): string {
    const { place } = this.keys;
    const why = this.keys.find(keyId) ? `which differs in ${place}` : `which is missing from ${place}`;
    return `${count} client secret(s) are encrypted with master key "${keyId}", ${why}; put that key back after the first key`;
  }
}

export const KILLED_STAYS_LISTED = 'One that was killed is listed for 150 s';

export const couldNotOpen = (keyId: string, lacking: string[]): string =>
  `these processes run and could not open secrets of master key "${keyId}": ${lacking.join(', ')}`;
