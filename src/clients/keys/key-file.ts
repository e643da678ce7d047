import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomAlphanumeric } from '../../values/identifier.js';
import { MASTER_KEY_BYTES, type MasterKey, parseMasterKeys } from '../../values/master-key.js';
import { StartUpError } from '../../values/start-up-error.js';

/**
 * The master keys of an embedded database: a file in its folder (mode 0600), in the format of the setting for master keys. Change
 * it, and encrypt with its keys, only inside a transaction. The embedded database runs one transaction at a time, so no
 * secret is encrypted with a key that is being removed.
 */
export class KeyFile {
  readonly path: string;

  constructor(folder: string) {
    this.path = join(folder, 'master-key');
    if (!existsSync(this.path)) this.createIfMissing(`${newEntry()}\n`);
  }

  read(): MasterKey[] {
    const keys = parseMasterKeys(this.text());
    if (!keys)
      throw new StartUpError(`${this.path} is damaged; restore it from a backup, or set its keys as master keys`);
    return keys;
  }

  /** Adds a key that encrypts from now on. Earlier keys still decrypt. */
  addKey(): void {
    this.replace([newEntry(), ...this.entries()]);
  }

  /** Removes every key except the first key and the given ids. */
  keepOnly(ids: string[]): void {
    this.replace(this.entries().filter((entry, index) => index === 0 || ids.includes(idOf(entry))));
  }

  private entries(): string[] {
    return this.text()
      .split(',')
      .map((entry) => entry.trim());
  }

  private text(): string {
    try {
      return readFileSync(this.path, 'utf8');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new StartUpError(`${this.path} cannot be read (${code}); give this user read permission`);
    }
  }

  private replace(entries: string[]): void {
    renameSync(this.writeTemporaryFile(`${entries.join(',')}\n`), this.path);
  }

  /** Creates the complete file atomically and never overwrites the file of another process: link() fails then. */
  private createIfMissing(text: string): void {
    const temporaryPath = this.writeTemporaryFile(text);
    try {
      linkSync(temporaryPath, this.path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      rmSync(temporaryPath);
    }
  }

  private writeTemporaryFile(text: string): string {
    const temporaryPath = `${this.path}.${randomAlphanumeric(12)}`;
    writeFileSync(temporaryPath, text, { mode: 0o600, flush: true });
    return temporaryPath;
  }
}

const ID_LENGTH = 8;

/** Ids are random, so the keys of a new file are never mistaken for the keys of a lost file. */
const newEntry = (): string => `k${randomAlphanumeric(ID_LENGTH)}:${randomBytes(MASTER_KEY_BYTES).toString('base64')}`;

const idOf = (entry: string): string => entry.slice(0, entry.indexOf(':'));
