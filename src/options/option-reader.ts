import { Fault, type Option, type Options, type OptionValues } from './option-kinds.js';

/** Where values come from: the environment of the server, or the options of an application. */
export interface OptionSource {
  /** Whether the values are texts of the environment. */
  isText: boolean;
  /** Undefined: it is not given. */
  valueOf(option: Option, report: (fault: string) => void): unknown;
}

/** Reads and checks all of `options`. It collects the faults, each with what to do, instead of stopping at the first. */
export class OptionReader<T extends Options> {
  readonly faults: string[] = [];
  /** The names of the options in messages. */
  readonly names: Record<keyof T, string>;
  /** Null where a value is invalid: the faults then end the start. */
  readonly values: OptionValues<T>;
  private readonly given = new Set<unknown>();

  constructor(
    private readonly options: T,
    source: OptionSource,
  ) {
    const each = (make: (key: string, option: Option) => unknown): never =>
      Object.fromEntries(Object.entries(options).map(([key, option]) => [key, make(key, option)])) as never;
    this.names = each((_, { variable, option }) => String(source.isText ? variable : option));
    this.values = each((key, option) => this.read(key, option, source));
  }

  private read(key: string, option: Option, source: OptionSource): unknown {
    const { kind, isSecret } = option;
    const { isText } = source;
    const given = source.valueOf(option, (fault) => this.faults.push(fault));
    if (given === undefined) return fromText(option, option.default);
    this.given.add(key);
    try {
      const value = isText ? fromText(option, String(given)) : kind.check(given);
      if (value !== undefined) return value;
      const wanted = kind.wanted + (kind.written?.[isText ? 'asText' : 'asValue'] ?? '');
      this.fault(key, `${isSecret || kind.isHidden ? '' : `=${shown(given, isText)}`} is invalid; use ${wanted}`);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      this.fault(key, error.text);
      return error.standIn;
    }
    return null;
  }

  isGiven(...keys: (keyof T)[]): boolean {
    return keys.some((key) => this.given.has(key));
  }

  /** `text` follows the name of the option. */
  fault(key: keyof T, text: string): void {
    this.faults.push(this.names[key] + text);
  }

  missing(key: keyof T, reason = '', needs = this.options[key]?.kind.wanted): void {
    this.fault(key, ` must be set${reason}: ${needs}`);
  }

  /** Uses the defaults of a local sandbox, and says which of them are in use. */
  useLocalDefaults(): string[] {
    return Object.entries(this.options).flatMap(([key, option]) => {
      if (!option.local || this.isGiven(key)) return [];
      Object.assign(this.values, { [key]: fromText(option, option.local.default) });
      return option.local.name ?? [];
    });
  }

  /** All faults, with those of several options and of production. */
  finish(): string[] {
    const isProduction = this.values.environment === 'production';
    for (const [key, { neededBy = '', production }] of Object.entries(this.options)) {
      if (this.isGiven(neededBy) && !this.isGiven(key)) this.missing(key, '', `${this.names[neededBy]} needs it`);
      const value: unknown = this.values[key];
      const fault = isProduction && value !== null && production?.(value);
      if (fault) this.fault(key, fault);
    }
    return this.faults;
  }
}

const fromText = ({ kind }: Option, text: string | null): unknown =>
  text === null ? null : kind.check(kind.parse ? kind.parse(text) : text);

/** A text of an application is in quotes, so that "true" differs from true. The content of objects is not shown. */
export function shown(value: unknown, isText = false): string {
  if (typeof value === 'string') return (isText ? value.replace(/\s+/g, ' ') : JSON.stringify(value)).slice(0, 100);
  return Object(value) === value ? Object.prototype.toString.call(value) : String(value);
}
