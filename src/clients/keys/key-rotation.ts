import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { type DataSource, type EntityManager, MoreThan, Not } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { inTransaction } from '../../database/sql.js';
import { conflict, type Problem } from '../../http/problem.js';
import { ClientSecret, LEAKED } from '../client.entity.js';
import { KeyRing, Vault } from '../secrets/vault.js';
import type { KeyFile } from './key-file.js';
import { ProcessList } from './processes.js';
import { StartUpError } from '../../values/start-up-error.js';

/** Counts the client secrets that each master key encrypts, by key id. */
async function keyUsage(manager: EntityManager): Promise<Map<string, number>> {
  const rows = await manager
    .createQueryBuilder(ClientSecret, 'secret')
    .select('secret.keyId', 'id')
    .addSelect('COUNT(*)', 'count')
    .groupBy('secret.keyId')
    .getRawMany<{ id: string; count: string | number }>();
  return new Map(rows.map(({ id, count }) => [id, Number(count)]));
}

const MAX_SAMPLES = 10;

/** Stops the start-up if a master key is missing or changed: clients could neither authenticate nor be notified. */
@Injectable()
export class KeyCheck implements OnModuleInit {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly keys: KeyRing,
    private readonly vault: Vault,
  ) {}

  async onModuleInit(): Promise<void> {
    const fault = await this.fault();
    if (fault !== null) throw new StartUpError(fault);
  }

  /** Why no secret of a master key can be opened. Null if at least one can: a damaged row concerns only its client. */
  async fault(): Promise<string | null> {
    const { manager } = this.dataSource;
    for (const [keyId, count] of await keyUsage(manager)) {
      const samples = await manager.find(ClientSecret, { where: { keyId }, take: MAX_SAMPLES });
      if (samples.length > 0 && !samples.some((one) => this.canOpen(one))) return this.described(keyId, count);
    }
    return null;
  }

  private canOpen(secret: ClientSecret): boolean {
    try {
      return this.vault.open(secret, secret.clientId).length > 0;
    } catch {
      return false;
    }
  }

  private described(keyId: string, count: number): string {
    const { place } = this.keys;
    const why = this.keys.find(keyId) ? `which differs in ${place}` : `which is missing from ${place}`;
    return `${count} client secret(s) are encrypted with master key "${keyId}", ${why}; put that key back after the first key`;
  }
}

/** Injects the {@link KeyFile}, or null if the keys are in the settings. */
export const KEY_FILE = Symbol('KeyFile');

export interface KeyRotationResult {
  rotated: number;
  total: number;
  /** The key that encrypts now. */
  keyId: string;
  /** Number of secrets still encrypted with another key: a process without the new key created them meanwhile. */
  remaining: number;
  /** The running processes that cannot open these secrets: they lack the key, or do not report their keys. */
  lacking: string[];
  place: 'file' | 'setting';
}

const PAGE_SIZE = 100;

/** Encrypts every client secret with the first master key. The service can run meanwhile. Safe to repeat. */
@Injectable()
export class KeyRotation {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(KEY_FILE) private readonly keyFile: KeyFile | null,
    private readonly vault: Vault,
    private readonly audit: AuditLog,
    private readonly processes: ProcessList,
  ) {}

  /** 409 if a running process lacks the key, unless `force` is set. Without the key such a process answers clients 503. */
  async run(
    onProgress: (done: number, total: number) => void,
    { force = false }: { force?: boolean } = {},
  ): Promise<KeyRotationResult> {
    if (this.keyFile) await this.addKey(this.keyFile);
    const keyId = this.vault.keys.encryptionKey().id;
    const forced = await this.lacking(keyId);
    if (forced.length > 0 && !force) throw processesLack(keyId, this.vault.keys.place, forced);
    const rotated = await this.encryptAll(keyId, onProgress);
    if (this.keyFile) await this.removeUnused(this.keyFile);
    const usage = await keyUsage(this.dataSource.manager);
    const total = sum(usage);
    const detail = { rotated, total, ...(forced.length > 0 && { forced: forced.join('; ') }) };
    await this.audit.record({ action: 'keys.rotated', subject: `key:${keyId}`, detail });
    const remaining = total - (usage.get(keyId) ?? 0);
    // Asked again, because a process may have started meanwhile.
    const lacking = await this.lacking(keyId);
    return { rotated, total, keyId, remaining, lacking, place: this.keyFile ? 'file' : 'setting' };
  }

  /** A process that has a key file reads it again when it meets a new key. */
  private async lacking(keyId: string): Promise<string[]> {
    return this.keyFile ? [] : this.processes.without(keyId);
  }

  private async encryptAll(keyId: string, onProgress: (done: number, total: number) => void): Promise<number> {
    const outdated = await this.dataSource.manager.countBy(ClientSecret, { keyId: Not(keyId) });
    let rotated = 0;
    for (let after: string | undefined = ''; after !== undefined;) {
      const page = await this.encryptPage(keyId, after);
      rotated += page.rotated;
      onProgress(rotated, Math.max(rotated, outdated));
      after = page.lastId;
    }
    return rotated;
  }

  /** Adds a key. If an interrupted rotation left two keys, completes that rotation instead. */
  private async addKey(keyFile: KeyFile): Promise<void> {
    await inTransaction(this.dataSource, async () => {
      if (keyFile.read().length === 1) keyFile.addKey();
    });
  }

  private async removeUnused(keyFile: KeyFile): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => keyFile.keepOnly([...(await keyUsage(manager)).keys()]));
  }

  /** `lastId` is that of the last row; undefined if there are no more rows. */
  private encryptPage(keyId: string, after: string) {
    return inTransaction(this.dataSource, async (manager) => {
      const page = await manager.find(ClientSecret, {
        where: { id: MoreThan(after), keyId: Not(keyId) },
        order: { id: 'ASC' },
        take: PAGE_SIZE,
      });
      let rotated = 0;
      for (const secret of page) rotated += await this.encryptAgain(manager, secret);
      return { rotated, lastId: page.at(-1)?.id };
    });
  }

  /** Updates the row only if it has not changed since it was read: it may be deleted or encrypted again meanwhile. */
  private async encryptAgain(manager: EntityManager, secret: ClientSecret): Promise<number> {
    const { id, clientId, keyId, digest } = secret;
    const sealed = this.vault.seal(this.vault.open(secret, clientId), clientId);
    if (digest === LEAKED) sealed.digest = LEAKED;
    const { affected } = await manager.update(ClientSecret, { id, keyId, digest }, sealed);
    return affected ?? 0;
  }
}

const processesLack = (keyId: string, place: string, lacking: string[]): Problem =>
  conflict(
    `these processes run and could not open secrets of master key "${keyId}": ${lacking.join(', ')}; add "${keyId}" to ` +
      `${place} of each and restart it. One that was killed is listed for 150 s. --force rotates all the same`,
  );

const sum = (usage: Map<string, number>): number => [...usage.values()].reduce((total, count) => total + count, 0);
