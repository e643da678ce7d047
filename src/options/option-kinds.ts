import { isIP } from 'node:net';
import { parseDuration, parseRate } from '../values/duration.js';
import { emailFault } from '../values/email-address.js';
import { parseMasterKeys } from '../values/master-key.js';

export interface Kind<T> {
  /** What a valid value is: a message says "use …". */
  wanted: string;
  /** What {@link wanted} leaves out: how the environment and how an application write the value. */
  written?: { asText: string; asValue: string };
  /** The value may contain a password by mistake, so no message shows it. */
  isHidden?: boolean;
  /**
   * Checks what an application gives. Undefined: it is invalid.
   * @throws Fault if more can be said
   */
  check(value: unknown): T | undefined;
  /** What an application would give in place of this text of the environment; default: the text. */
  parse?(text: string): unknown;
}

/** What is wrong with a value. The text follows the name of the option; `standIn` replaces the value until the start ends. */
export class Fault {
  constructor(
    readonly text: string,
    readonly standIn: unknown = null,
  ) {}
}

export const integer = (least: number, most: number): Kind<number> => ({
  wanted: `a whole number from ${least} to ${most}`,
  check: (value) =>
    typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most ? value : undefined,
  parse: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
});

/** Milliseconds; the environment takes `30s`. What reaches a timer is at most 24d, because Node's timers end at 2^31 ms. */
export const duration = (least: string, most: string): Kind<number> => ({
  ...integer(Number(parseDuration(least)), Number(parseDuration(most))),
  wanted: `a duration from ${least} to ${most}`,
  written: { asText: ', like 500ms, 30s, 2m, 24h or 60d', asValue: ', in whole milliseconds' },
  parse: (text) => parseDuration(text) ?? text,
});

export const flag: Kind<boolean> = {
  wanted: 'true or false',
  check: (value) => (typeof value === 'boolean' ? value : undefined),
  parse: (text) => /^(true|1|yes|on)$/i.test(text) || (!/^(false|0|no|off)$/i.test(text) && text),
};

export const oneOf = <const T extends string>(...choices: T[]): Kind<T> => ({
  wanted: `one of ${choices.join(', ')}`,
  check: (value) => choices.find((choice) => choice === value),
});

/** A text that `parse` turns into the value; null: it is invalid. */
export const text = <T>(wanted: string, parse: (text: string) => T | null): Kind<T> => ({
  wanted,
  check: (value) => (typeof value === 'string' ? (parse(value) ?? undefined) : undefined),
});

/** A text that matches the pattern, without a change. */
export const matching = (pattern: RegExp, wanted: string): Kind<string> =>
  text(wanted, (value) => (pattern.test(value) ? value : null));

export const rate = text('a rate like 20/s, 600/m or 5/h', parseRate);

/** Also accepts `off`. The value is then null: unlimited. */
export const orOff = <T>(kind: Kind<T>): Kind<T | null> => ({
  ...kind,
  wanted: `${kind.wanted}, or off`,
  check: (value) => (value === 'off' ? null : kind.check(value)),
});

export const identifier = matching(
  /^[A-Za-z][A-Za-z0-9_-]{0,39}$/,
  'up to 40 letters, digits, - or _, starting with a letter',
);

export const address = matching(/./, 'an address of this machine, like 127.0.0.1');

/** The user of HTTP Basic. It may be `user:password` by mistake. */
export const userName = {
  ...matching(/^[^:]+$/, 'a user name without a colon; the password is a setting of its own'),
  isHidden: true,
};

export const password = matching(/./s, 'a password that is not empty');

const MIN_PASSWORD_LENGTH = 12;

/** Why production refuses a password; null: it does not. */
export const shortPassword = (password: string): string | null =>
  [...password].length >= MIN_PASSWORD_LENGTH
    ? null
    : ` is too short; production needs at least ${MIN_PASSWORD_LENGTH} characters, e.g. $(openssl rand -hex 16)`;

export const masterKeys = text(
  'id:base64[,id:base64…] with 32 bytes per key, e.g. k1:$(openssl rand -base64 32)',
  (value) => parseMasterKeys(value) && value,
);

/** An e-mail address, or a name in printable ASCII before it: `Cinema <usher@cinema.example>`. */
export const sender = text('an e-mail address like usher@cinema.example, or Name <usher@cinema.example>', (value) =>
  emailFault(/^[A-Za-z0-9 .'-]{1,100} <([^<>]*)>$/.exec(value)?.[1] ?? value) === null ? value : null,
);

export const objectLike = <T>(wanted: string, isRight: (value: Partial<T>) => boolean): Kind<T> => ({
  wanted,
  check: (value) => (typeof value === 'object' && value && isRight(value) ? (value as T) : undefined),
});

/** Whose X-Forwarded-For is trusted: a number of proxies, or proxies with these addresses. Null: nobody's. */
export type TrustedProxies = { hops: number } | { addresses: string[] } | null;

/** Parses `2`, or `10.0.0.1, 192.168.0.0/16, ::1`; `0` means nobody. Undefined if the text is neither. */
export function parseTrustedProxies(text: string): TrustedProxies | undefined {
  if (/^\d{1,2}$/.test(text)) return Number(text) === 0 ? null : { hops: Number(text) };
  const addresses = text.split(',').map((address) => address.trim());
  return addresses.every(isAddressOrRange) ? { addresses } : undefined;
}

export const trustedProxies: Kind<TrustedProxies> = {
  wanted: 'the number of trusted proxies, or their addresses like 10.0.0.1,192.168.0.0/16, or 0 if there are none',
  check: (value) => parseTrustedProxies(String(value)),
};

function isAddressOrRange(text: string): boolean {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128);
}

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
