import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, MoreThan, Not } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { inTransaction } from '../../database/sql.js';
import { conflict, nullForProblem, type Problem } from '../../http/problem.js';
import { ClientSecret, LEAKED } from '../client.entity.js';
import { Vault } from '../secrets/vault.js';
import { couldNotOpen, KEY_FILE, keyUsage, KILLED_STAYS_LISTED } from './key-check.js';
import type { KeyFile } from './key-file.js';
import { type NotEncrypting, ProcessList } from './processes.js';

/** With the running processes that do not encrypt with the key now, or may not. Those without it cannot open these secrets. */
export interface KeyRotationResult extends NotEncrypting {
  rotated: number;
  total: number;
  /** The key that encrypts now. */
  keyId: string;
  /** Number of secrets still encrypted with another key: a process without the new key created them meanwhile. */
  remaining: number;
  /** Ids of the clients with a secret that cannot be opened. It stays as it is. */
  unreadable: string[];
  place: 'file' | 'setting';
  /** Whether this process has other keys. */
  hasOtherKeys: boolean;
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
    const { lacking, unknown } = await this.notEncryptingWith(keyId);
    const forced = [...lacking, ...unknown];
    if (forced.length > 0 && !force) throw processesLack(keyId, this.vault.keys.place, { lacking, unknown });
    const { rotated, unreadable } = await this.encryptAll(keyId, onProgress);
    if (this.keyFile) await this.removeUnused(this.keyFile);
    const usage = await keyUsage(this.dataSource.manager);
    const total = sum(usage);
    const detail = {
      rotated,
      total,
      unreadable: unreadable.length,
      ...(forced.length > 0 && { forced: forced.join('; ') }),
    };
    await this.audit.record({ action: 'keys.rotated', subject: `key:${keyId}`, detail });
    const remaining = Math.max(total - (usage.get(keyId) ?? 0) - unreadable.length, 0);
    return {
      rotated,
      total,
      keyId,
      remaining,
      unreadable: [...new Set(unreadable)],
      // Asked again, because a process may have started meanwhile.
      ...(await this.notEncryptingWith(keyId)),
      place: this.keyFile ? 'file' : 'setting',
      hasOtherKeys: this.vault.keys.ids.length > 1,
    };
  }

  /** A process that has a key file reads it again when it meets a new key. */
  private async notEncryptingWith(keyId: string): Promise<NotEncrypting> {
    return this.keyFile ? { lacking: [], unknown: [], notFirst: [] } : this.processes.notEncryptingWith(keyId);
  }

  /** `unreadable` are the client ids of the secrets that cannot be opened. */
  private async encryptAll(keyId: string, onProgress: (done: number, total: number) => void) {
    const outdated = await this.dataSource.manager.countBy(ClientSecret, { keyId: Not(keyId) });
    let rotated = 0;
    const unreadable: string[] = [];
    for (let after: string | undefined = ''; after !== undefined;) {
      const page = await this.encryptPage(keyId, after);
      rotated += page.rotated;
      unreadable.push(...page.unreadable);
      onProgress(rotated, Math.max(rotated, outdated));
      after = page.lastId;
    }
    return { rotated, unreadable };
  }

  /** Adds a key. If an interrupted rotation left secrets to encrypt or a key to remove, completes that rotation instead. */
  private async addKey(keyFile: KeyFile): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      const [, ...others] = keyFile.read();
      for (const { id: keyId } of others) {
        const secrets = await manager.findBy(ClientSecret, { keyId });
        // Secrets that cannot be opened keep their key in the file.
        if (secrets.length === 0 || secrets.some((secret) => this.vault.canOpen(secret))) return;
      }
      keyFile.addKey();
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
      const unreadable: string[] = [];
      for (const secret of page) {
        const encrypted = await this.encryptAgain(manager, secret).catch(nullForProblem);
        if (encrypted === null) unreadable.push(secret.clientId);
        else rotated += encrypted;
      }
      return { rotated, unreadable, lastId: page.at(-1)?.id };
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

function processesLack(keyId: string, place: string, { lacking, unknown }: Omit<NotEncrypting, 'notFirst'>): Problem {
  const faults = [
    lacking.length > 0 && `${couldNotOpen(keyId, lacking)}; add "${keyId}" to ${place} of each and restart it`,
    unknown.length > 0 &&
      `whether these processes have master key "${keyId}" is not known: ${unknown.join(', ')}; upgrade each, or see that ` +
        `${place} of each has it`,
  ].filter(Boolean);
  return conflict(`${faults.join('. ')}. ${KILLED_STAYS_LISTED}. --force rotates all the same`);
}

const sum = (usage: Map<string, number>): number => [...usage.values()].reduce((total, count) => total + count, 0);
