import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { parseConnectionUrl } from '../../values/urls/connection-url.js';
import { durationText, parseDuration, parseRate, type Rate } from '../../values/duration.js';
import { parseUrl } from '../../values/urls/parse-url.js';

/** Node's timers take at most 2^31 - 1 ms (24.8 days). */
const MAX_TIMER_MS = 24 * 86_400_000;

const TRUSTED_PROXIES = 'the number of trusted proxies, or their addresses like 10.0.0.1,192.168.0.0/16';

/** Reads settings from environment variables. It collects all errors instead of stopping at the first. */
export class SettingReader {
  readonly faults: string[] = [];

  private readonly read = new Set<string>();

  constructor(private readonly settings: Record<string, string | undefined>) {}

  /** The settings that have been read so far. Once all are read, these are all that exist. */
  get names(): string[] {
    return [...this.read];
  }

  /** An empty value counts as absent, because compose files pass unset variables as empty strings. */
  optional(name: string): string | null {
    this.read.add(name);
    return this.settings[name] || null;
  }

  /**
   * A setting that contains a secret: its value, or the content of the file that NAME_FILE names. Messages show neither, because
   * a secret may have been set as the name of the file by mistake.
   */
  secret(name: string): string | null {
    const [value, path] = [this.optional(name), this.optional(`${name}_FILE`)];
    if (path === null) return value;
    if (value !== null) this.fault(`${name} and ${name}_FILE are both set; remove one of them`);
    return this.contentOf(path, `${name}_FILE`);
  }

  private contentOf(path: string, name: string): string | null {
    try {
      const content = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)).replace(/\r?\n$/, '');
      if (content !== '') return content;
      this.fault(`${name}: the file is empty; write the value into it`);
    } catch (error) {
      const reason = FILE_ERRORS[(error as NodeJS.ErrnoException).code ?? ''] ?? 'cannot be read';
      this.fault(`${name}: the file ${reason}; use the path of a text file that this user may read`);
    }
    return null;
  }

  text(name: string, fallback: string): string {
    return this.optional(name) ?? fallback;
  }

  /** Records that a setting is missing and returns `standIn`, so that reading can go on. */
  missing<T>(name: string, format: string, standIn: T, reason?: string): T {
    this.fault(`${name} must be set${reason === undefined ? '' : ` ${reason}`}: ${format}`);
    return standIn;
  }

  fault(text: string): void {
    if (!this.faults.includes(text)) this.faults.push(text);
  }

  choice<const T extends string>(name: string, choices: readonly T[], fallback: T): T {
    const value = this.text(name, fallback);
    const chosen = choices.find((choice) => choice === value);
    return chosen ?? this.invalid(name, value, `one of ${choices.join(', ')}`, fallback);
  }

  integer(name: string, fallback: number, least: number, most: number): number {
    const value = this.text(name, String(fallback));
    const number = /^\d{1,15}$/.test(value) ? Number(value) : NaN;
    return number >= least && number <= most
      ? number
      : this.invalid(name, value, `a whole number from ${least} to ${most}`, fallback);
  }

  flag(name: string): boolean | null {
    const value = this.optional(name);
    if (value === null) return null;
    if (/^(true|1|yes|on)$/i.test(value)) return true;
    return /^(false|0|no|off)$/i.test(value) ? false : this.invalid(name, value, 'true or false', false);
  }

  duration(name: string, fallback: string, leastMs: number, mostMs = MAX_TIMER_MS): number {
    const value = this.text(name, fallback);
    const ms = parseDuration(value);
    if (ms === null) return this.invalid(name, value, 'a duration like 500ms, 30s, 2m, 24h or 60d', 0);
    const wanted = `a duration from ${durationText(leastMs)} to ${durationText(mostMs)}`;
    return ms >= leastMs && ms <= mostMs ? ms : this.invalid(name, value, wanted, 0);
  }

  rate(name: string, fallback: string): Rate {
    const value = this.text(name, fallback);
    return parseRate(value) ?? this.invalid(name, value, 'a rate like 20/s, 600/m or 5/h', { count: 1, seconds: 1 });
  }

  trustedProxies(name: string, isRequired: boolean): TrustedProxies {
    const value = this.text(name, '0');
    if (isRequired && this.optional(name) === null)
      return this.missing(name, `${TRUSTED_PROXIES}, or 0 if there are none`, null, 'in production');
    const proxies = parseTrustedProxies(value);
    return proxies === undefined ? this.invalid(name, value, TRUSTED_PROXIES, null) : proxies;
  }

  identifier(name: string, fallback: string): string {
    const value = this.text(name, fallback);
    return /^[A-Za-z][A-Za-z0-9_-]{0,39}$/.test(value)
      ? value
      : this.invalid(name, value, 'up to 40 letters, digits, - or _, starting with a letter', fallback);
  }

  credentials(userName: string, passwordName: string): { user: string; password: string } | null {
    const user = this.optional(userName);
    const password = this.secret(passwordName);
    if (user === null && password === null) return null;
    if (user === null || password === null) {
      return this.missing(
        user === null ? userName : passwordName,
        `${user === null ? passwordName : userName} needs it`,
        null,
      );
    }
    if (!user.includes(':')) return { user, password };
    // The value may be user:password by mistake, so the message does not show it.
    this.fault(`${userName} contains a colon; set only the user name here, and the password in ${passwordName}`);
    return null;
  }

  httpUrl(name: string): string | null {
    const value = this.optional(name);
    if (value === null) return null;
    const url = parseUrl(value);
    return url && /^https?:$/.test(url.protocol) && isPlain(url)
      ? value.replace(/\/+$/, '')
      : this.invalid(name, null, 'an http:// or https:// URL without credentials, query or fragment', null);
  }

  location<const K extends string, T>(
    name: string,
    value: string,
    schemes: Record<string, K>,
    example: string,
    standIn: T,
  ) {
    const url = parseConnectionUrl(value);
    const kind = url && schemes[url.protocol];
    if (!url || !kind) return this.invalid(name, null, `a URL like ${example}`, standIn);
    const correction = correctionOf(url);
    return correction === null ? { kind, url } : this.invalid(name, null, correction, standIn);
  }

  /** A value that may contain a password is not shown at all: where it is in a faulty URL cannot be known. Then pass null. */
  private invalid<T>(name: string, value: string | null, wanted: string, standIn: T): T {
    this.fault(`${name}${value === null ? '' : `=${oneLine(value)}`} is invalid; use ${wanted}`);
    return standIn;
  }
}

const FILE_ERRORS: Record<string, string> = {
  ENOENT: 'does not exist',
  EACCES: 'is not readable for this user',
  EISDIR: 'is a folder',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'is not UTF-8 text',
};

/** Paths are appended to this URL, so it has no query or fragment (RFC 8414 §2). It is public, so it has no credentials. */
const isPlain = ({ username, password, href }: URL): boolean => username + password === '' && !/[?#]/.test(href);

/** What to use instead if the URL parser reads something else than was meant; null if the URL is good. */
function correctionOf({ hostname, hash, username, password, pathname, searchParams }: URL): string | null {
  if (hash !== '') return '%23 for a # in a password';
  if (hostname === '' && !searchParams.has('host')) return 'a host after ://';
  return [username, password, pathname].every(isDecodable) ? null : '%25 for a % in a password';
}

function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 100);

/** Whose X-Forwarded-For is trusted: a number of proxies, or proxies with these addresses. Null: nobody's. */
export type TrustedProxies = { hops: number } | { addresses: string[] } | null;

/** Parses `2`, or `10.0.0.1, 192.168.0.0/16, ::1`; `0` means nobody. Undefined if the text is neither. */
export function parseTrustedProxies(text: string): TrustedProxies | undefined {
  if (/^\d{1,2}$/.test(text)) return Number(text) === 0 ? null : { hops: Number(text) };
  const addresses = text.split(',').map((address) => address.trim());
  return addresses.every(isAddressOrRange) ? { addresses } : undefined;
}

function isAddressOrRange(text: string): boolean {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128);
}
