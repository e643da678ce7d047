import type { MasterKey } from '../../values/master-key.js';

/** The master keys of this process. Those of a key file are read again when it may have changed, see key-file.ts. */
export class KeyRing {
  private readonly byId = new Map<string, MasterKey>();
  private newest: MasterKey;

  /** `place` is where an operator finds the keys; `read` answers with them, the sealing one first. */
  constructor(
    readonly place: string,
    private readonly read: () => MasterKey[],
  ) {
    this.newest = this.refresh();
  }

  /** The key that seals, as of this moment: a key file may have been given another by another process. */
  sealing(): MasterKey {
    return this.refresh();
  }

  /** Any key at all: what is done with it is thrown away. */
  any(): MasterKey {
    return this.newest;
  }

  /** A stored secret can name a key that was added since: then the keys are read again. */
  find(id: string): MasterKey | undefined {
    if (!this.byId.has(id)) this.refresh();
    return this.byId.get(id);
  }

  /** A key once known stays known: rows that were read a moment ago may still name it. */
  private refresh(): MasterKey {
    const keys = this.read();
    for (const key of keys) this.byId.set(key.id, key);
    const [first] = keys;
    if (!first) throw new Error(`${this.place} holds no master key`);
    return (this.newest = first);
  }
}
