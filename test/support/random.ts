/** A pseudo-random generator: the same seed gives the same numbers (mulberry32). */
export class Random {
  constructor(private state: number) {}

  /** A separate generator for each purpose. */
  static of(...seed: (number | string)[]): Random {
    return new Random(hash(seed.join('/')));
  }

  /** From 0 up to, not including, 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number, both ends included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  pick<T>(from: readonly T[]): T {
    return from[this.between(0, from.length - 1)] as T;
  }

  shuffled<T>(list: readonly T[]): T[] {
    const keyed = list.map((item) => ({ item, at: this.next() }));
    return keyed.sort((left, right) => left.at - right.at).map(({ item }) => item);
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value;
}
