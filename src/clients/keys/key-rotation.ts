import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, MoreThan, Not } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { inTransaction } from '../../database/sql.js';
import { ClientSecret } from '../client.entity.js';
import { Vault } from '../secrets/vault.js';
import { keyUsage } from './key-check.js';
import type { KeyFile } from './key-file.js';
import { KeyRing } from './key-ring.js';

/** Injects the {@link KeyFile}, or null where USHER_MASTER_KEYS has the keys. */
export const KEY_FILE = Symbol('KeyFile');

export interface KeysRotated {
  /** Secrets that were sealed anew. */
  rotated: number;
  /** Secrets there are. */
  total: number;
  /** The key that seals. */
  keyId: string;
  /** Secrets that another key seals all the same: a process without the new key in front made them meanwhile. */
  remaining: number;
  /** Where the keys are. */
  place: 'file' | 'setting';
}

interface Page {
  rotated: number;
  /** The last row's id; null where there was none. */
  last: string | null;
}

const PAGE = 100;

/** Seals every client secret anew with the first master key, beside a running service; can be interrupted and repeated. */
@Injectable()
export class KeyRotation {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(KEY_FILE) private readonly keyFile: KeyFile | null,
    private readonly keys: KeyRing,
    private readonly vault: Vault,
    private readonly audit: AuditLog,
  ) {}

  async run(onProgress: (done: number, total: number) => void): Promise<KeysRotated> {
    if (this.keyFile) await this.addKey(this.keyFile);
    const keyId = this.keys.sealing().id;
    const rotated = await this.sealAll(keyId, onProgress);
    if (this.keyFile) await this.removeUnused(this.keyFile);
    const usage = await keyUsage(this.dataSource.manager);
    const total = sum(usage);
    this.audit.record('keys.rotated', { client: null, key: keyId, rotated, total });
    const remaining = total - (usage.get(keyId) ?? 0);
    return { rotated, total, keyId, remaining, place: this.keyFile ? 'file' : 'setting' };
  }

  private async sealAll(keyId: string, onProgress: (done: number, total: number) => void): Promise<number> {
    const outdated = await this.dataSource.manager.countBy(ClientSecret, { keyId: Not(keyId) });
    let rotated = 0;
    for (let after: string | null = ''; after !== null;) {
      const page = await this.sealPage(keyId, after);
      rotated += page.rotated;
      onProgress(rotated, Math.max(rotated, outdated));
      after = page.last;
    }
    return rotated;
  }

  /** A new key, unless an earlier rotation was interrupted and left two: then that one is brought to its end. */
  private async addKey(keyFile: KeyFile): Promise<void> {
    await inTransaction(this.dataSource, async () => {
      if (keyFile.read().length === 1) keyFile.addKey();
    });
  }

  private async removeUnused(keyFile: KeyFile): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => keyFile.keepOnly([...(await keyUsage(manager)).keys()]));
  }

  private sealPage(keyId: string, after: string): Promise<Page> {
    return inTransaction(this.dataSource, async (manager) => {
      const page = await manager.find(ClientSecret, {
        where: { id: MoreThan(after), keyId: Not(keyId) },
        order: { id: 'ASC' },
        take: PAGE,
      });
      let rotated = 0;
      for (const secret of page) rotated += await this.sealAnew(manager, secret);
      return { rotated, last: page.at(-1)?.id ?? null };
    });
  }

  /** Only while the row is as it was read: what ended or was sealed anew meanwhile stays so. */
  private async sealAnew(manager: EntityManager, secret: ClientSecret): Promise<number> {
    const { id, clientId, keyId, digest } = secret;
    const sealed = this.vault.seal(this.vault.open(secret, clientId), clientId);
    const { affected } = await manager.update(ClientSecret, { id, keyId, digest }, sealed);
    return affected ?? 0;
  }
}

const sum = (usage: Map<string, number>): number => [...usage.values()].reduce((total, count) => total + count, 0);
