import { message, stringAt, strings, typeOf } from './messages.js';

/** Renames a connection's named statements, because all connections share the names of one session. */
export class PreparedStatements {
  readonly #names = new Map<string, string>();
  #count = 0;

  constructor(private readonly prefix: string) {}

  /** The message with its statement name replaced; the original if it names no statement. */
  rename(original: Buffer): Buffer {
    switch (typeOf(original)) {
      case 'P':
        return this.#replace(original, 5, true);
      case 'B':
        return this.#replace(original, stringAt(original, 5).next, false);
      case 'D':
      case 'C':
        return original[5] === 0x53 ? this.#replace(original, 6, false) : original;
      default:
        return original;
    }
  }

  /** Returns the SQL that deallocates all of them. */
  clear(): string[] {
    const names = [...this.#names.values()];
    this.#names.clear();
    return names.map((name) => `DEALLOCATE "${name}"`);
  }

  #replace(original: Buffer, start: number, isNew: boolean): Buffer {
    const { text, next } = stringAt(original, start);
    if (text === '') return original;
    const name = this.#names.get(text) ?? `${this.prefix}_${++this.#count}`;
    if (isNew) this.#names.set(text, name);
    return message(
      typeOf(original),
      Buffer.concat([original.subarray(5, start), strings(name), original.subarray(next)]),
    );
  }
}
