import { inspect } from 'node:util';

/** Fields of a log line. A log for machines gets the fields; one for people, such as Nest's own, shows them in one line. */
export class LogLine {
  constructor(fields: object) {
    Object.assign(this, fields);
  }

  /** For a logger that makes a text of its messages. */
  toString(): string {
    const known = Object.entries(this).filter(([, value]) => (value ?? null) !== null);
    return known.map(([name, value]) => `${name} ${String(value)}`).join(', ');
  }

  [inspect.custom](): string {
    return this.toString();
  }
}
