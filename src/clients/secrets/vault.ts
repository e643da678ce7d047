import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Problem, unavailable } from '../../http/problem.js';
import { MASTER_KEY_BYTES, type MasterKey } from '../../values/master-key.js';

/** The master keys of this process. A key file is read again whenever it may have changed, see key-file.ts. */
export class KeyRing {
  private readonly byId = new Map<string, MasterKey>();

  /** `place` tells the operator where the keys are. `read` returns the keys; the first key encrypts. */
  constructor(
    readonly place: string,
    private readonly read: () => MasterKey[],
  ) {
    this.encryptionKey();
  }

  /**
   * Returns the key that encrypts. Reads the keys again, because another process may have added a key to the file. Keeps
   * removed keys in memory, because rows that were read earlier may still use them.
   */
  encryptionKey(): MasterKey {
    const keys = this.read();
    for (const key of keys) this.byId.set(key.id, key);
    const [first] = keys;
    if (!first) throw new Error(`${this.place} contains no master key`);
    return first;
  }

  get ids(): string[] {
    this.encryptionKey();
    return [...this.byId.keys()];
  }

  /** Reads the keys again if the id is unknown: a stored secret may use a key that was added later. */
  find(id: string): MasterKey | undefined {
    if (!this.byId.has(id)) this.encryptionKey();
    return this.byId.get(id);
  }
}

/** A stored client secret: a digest for authentication, and the encrypted secret for signing. */
interface SealedSecret {
  keyId: string;
  /** HMAC-SHA-256 in base64url. */
  digest: string;
  /** Base64 of nonce, AES-256-GCM ciphertext and tag. */
  sealed: string;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Hashes and encrypts client secrets with the master keys. Does not access the database. */
export class Vault {
  /** A random secret, which is compared for an unknown client. */
  private readonly dummy: SealedSecret & { clientId: string };

  constructor(readonly keys: KeyRing) {
    this.dummy = { clientId: '', ...this.seal(randomBytes(MASTER_KEY_BYTES).toString('base64'), '') };
  }

  seal(secret: string, clientId: string): SealedSecret {
    const { id, digestKey, sealingKey } = this.keys.encryptionKey();
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', sealingKey, nonce).setAAD(associatedData(clientId, id));
    const sealed = Buffer.concat([nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return { keyId: id, digest: digestOf(secret, digestKey).toString('base64url'), sealed: sealed.toString('base64') };
  }

  /** Decrypts the secret. Throws 503 if its master key is missing or another one, or if the row was modified. */
  open({ keyId, sealed }: SealedSecret, clientId: string): string {
    const key = this.keys.find(keyId);
    if (!key) throw this.cannotOpen(clientId, `master key "${keyId}" is missing from ${this.keys.place}`);
    const bytes = Buffer.from(sealed, 'base64');
    try {
      const decipher = createDecipheriv('aes-256-gcm', key.sealingKey, bytes.subarray(0, NONCE_BYTES))
        .setAAD(associatedData(clientId, keyId))
        .setAuthTag(bytes.subarray(-TAG_BYTES));
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString(
        'utf8',
      );
    } catch {
      throw this.cannotOpen(clientId, `master key "${keyId}" differs in ${this.keys.place}, or the row was changed`);
    }
  }

  /** Whether {@link open} gets the secret. */
  canOpen(secret: SealedSecret & { clientId: string }): boolean {
    try {
      return this.open(secret, secret.clientId).length > 0;
    } catch {
      return false;
    }
  }

  /** The reason appears only in the log. */
  private cannotOpen(clientId: string, reason: string): Problem {
    const problem = unavailable();
    problem.message = `the secret of client ${clientId} cannot be opened: ${reason}`;
    Error.captureStackTrace(problem);
    return problem;
  }

  /**
   * The stored secret that fits. Compares all in constant time. For an unknown client it compares a dummy secret, so the
   * timing is the same. If none fits, it opens them: throws 503 if this process cannot tell whether the secret is right.
   */
  match<T extends SealedSecret & { clientId: string }>(secret: string, stored: T[]): T | undefined {
    const [found] = stored.filter((candidate) => this.matchesOne(secret, candidate));
    if (found) return found;
    if (stored.length === 0) this.matchesOne(secret, this.dummy);
    for (const candidate of stored.length > 0 ? stored : [this.dummy]) this.open(candidate, candidate.clientId);
    return undefined;
  }

  private matchesOne(secret: string, { keyId, digest }: SealedSecret): boolean {
    const key = this.keys.find(keyId);
    if (!key) return false;
    const actual = digestOf(secret, key.digestKey);
    const expected = Buffer.from(digest, 'base64url');
    return timingSafeEqual(actual, expected.length === actual.length ? expected : Buffer.alloc(actual.length));
  }
}

const digestOf = (secret: string, key: Buffer): Buffer => createHmac('sha256', key).update(secret).digest();

const associatedData = (clientId: string, keyId: string): Buffer => Buffer.from(JSON.stringify([clientId, keyId]));
