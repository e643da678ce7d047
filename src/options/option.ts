import type { Kind } from './option-kinds.js';

/** Everything about one option. The readers, docs/configuration.md and the console's table are made from it. */
export interface Option<T = unknown> extends Rules<T> {
  /** Its path in `UsherOptions`; null: only the server has it. */
  option: string | null;
  /** Its variable in the environment of the server; null: only an application has it. */
  variable: string | null;
  kind: Kind<T>;
  /** As the environment writes it; null: none. */
  default: string | null;
  /** What it is, in Markdown. */
  text: string;
}

interface Rules<T> {
  /** The server also reads it from the file that `<variable>_FILE` names. */
  isSecret?: boolean;
  /** The default in words, where it is not one value. */
  defaultText?: string;
  /** The default of a local sandbox, which is unsafe elsewhere, and what the startup banner calls it. */
  local?: { default: string | null; name?: string };
  /** The key of the option that is useless without this one. */
  neededBy?: string;
  /** Why production refuses a value: what follows the name in the message. Null: it is accepted. */
  production?(value: T): string | null;
}

/** An option without a default has the value null where it is not given. */
export const option = <T, D extends string | null>(
  path: string | null,
  variable: string | null,
  kind: Kind<T>,
  fallback: D,
  text: string,
  rules?: Rules<T>,
): Option<D extends null ? T | null : T> => ({ option: path, variable, kind, default: fallback, text, ...rules });

export type Options = Record<string, Option>;

/** The checked values, by the keys of the table. */
export type OptionValues<T extends Options> = { [K in keyof T]: T[K] extends Option<infer V> ? V : never };
