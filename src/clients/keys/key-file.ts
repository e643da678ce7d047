import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomAlphanumeric } from '../../values/identifier.js';
import { StartUpError } from '../../values/start-up-error.js';
import { MASTER_KEY_BYTES, type MasterKey, parseMasterKeys } from '../../values/master-key.js';

/**
 * The master keys of an embedded database: a file in its folder (mode 0600), in the form of USHER_MASTER_KEYS.
 * Whoever changes it, or seals with what it says, does so inside a transaction: an embedded database runs one at a time,
 * so a secret is never sealed with a key that is just being removed.
 */
export class KeyFile {
  readonly path: string;

  /** Makes the file where there is none. */
  constructor(folder: string) {
    this.path = join(folder, 'master-key');
    if (!existsSync(this.path)) this.createOnce(`${newEntry()}\n`);
  }

  read(): MasterKey[] {
    const keys = parseMasterKeys(this.entries().join(','));
    if (!keys) throw new StartUpError(`${this.path} is damaged; put its backup back, or set USHER_MASTER_KEYS`);
    return keys;
  }

  /** From now on a new key seals; the earlier ones still open what they sealed. */
  addKey(): void {
    this.replace([newEntry(), ...this.entries()]);
  }

  /** Leaves out every key but the first and those named. */
  keepOnly(ids: string[]): void {
    this.replace(this.entries().filter((entry, index) => index === 0 || ids.includes(idOf(entry))));
  }

  private entries(): string[] {
    return this.text()
      .trim()
      .split(',')
      .map((entry) => entry.trim());
  }

  private text(): string {
    try {
      return readFileSync(this.path, 'utf8');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new StartUpError(`${this.path} cannot be read (${code}); let this user read it`);
    }
  }

  private replace(entries: string[]): void {
    renameSync(this.draft(`${entries.join(',')}\n`), this.path);
  }

  /** Whole or not at all, and never over another's: the text is linked to its name when it is complete. */
  private createOnce(text: string): void {
    const draft = this.draft(text);
    try {
      linkSync(draft, this.path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      rmSync(draft);
    }
  }

  private draft(text: string): string {
    const draft = `${this.path}.${randomAlphanumeric(12)}`;
    writeFileSync(draft, text, { mode: 0o600, flush: true });
    return draft;
  }
}

const ID_LENGTH = 8;

/** Ids are random, so that a new file in place of a lost one is never taken for it. */
const newEntry = (): string => `k${randomAlphanumeric(ID_LENGTH)}:${randomBytes(MASTER_KEY_BYTES).toString('base64')}`;

const idOf = (entry: string): string => entry.slice(0, entry.indexOf(':'));
