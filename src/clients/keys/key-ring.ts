import type { MasterKey } from '../../values/master-key.js';

/** The master keys of this process. A key file is read again whenever it may have changed, see key-file.ts. */
export class KeyRing {
  private readonly byId = new Map<string, MasterKey>();
  private firstKey: MasterKey;

  /** `place` tells the operator where the keys are. `read` returns the keys; the first key encrypts. */
  constructor(
    readonly place: string,
    private readonly read: () => MasterKey[],
  ) {
    this.firstKey = this.refresh();
  }

  /** Returns the key that encrypts. Reads the keys again, because another process may have added a key to the file. */
  encryptionKey(): MasterKey {
    return this.refresh();
  }

  /** Any key, for a dummy computation whose result is discarded. */
  anyKey(): MasterKey {
    return this.firstKey;
  }

  /** Reads the keys again if the id is unknown: a stored secret may use a key that was added later. */
  find(id: string): MasterKey | undefined {
    if (!this.byId.has(id)) this.refresh();
    return this.byId.get(id);
  }

  /** Keeps removed keys in memory, because rows that were read earlier may still use them. */
  private refresh(): MasterKey {
    const keys = this.read();
    for (const key of keys) this.byId.set(key.id, key);
    const [first] = keys;
    if (!first) throw new Error(`${this.place} contains no master key`);
    return (this.firstKey = first);
  }
}
