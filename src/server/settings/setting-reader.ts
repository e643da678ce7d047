import { isIP } from 'node:net';
import { durationText, parseDuration, parseRate, type Rate } from '../../values/duration.js';
import { hidePassword } from '../../values/start-up-error.js';

/** Within the longest delay a timer takes (2^31 - 1 ms, 24.8 days). */
const LONGEST_TIMER_MS = 24 * 86_400_000;

/** Reads settings from names and texts; collects every fault instead of stopping at the first. */
export class SettingReader {
  readonly faults: string[] = [];

  private readonly asked = new Set<string>();

  constructor(private readonly settings: Record<string, string | undefined>) {}

  /** Every setting that was asked for so far: all that exist, once everything has been read. */
  get names(): string[] {
    return [...this.asked];
  }

  /** An empty text counts as absent, because compose files pass unset variables so. */
  optional(name: string): string | null {
    this.asked.add(name);
    return this.settings[name] || null;
  }

  text(name: string, fallback: string): string {
    return this.optional(name) ?? fallback;
  }

  /** Records that something must be set, and goes on with `standIn`. */
  missing<T>(name: string, what: string, standIn: T, why?: string): T {
    this.fault(`${name} must be set${why === undefined ? '' : ` ${why}`}: ${what}`);
    return standIn;
  }

  fault(text: string): void {
    if (!this.faults.includes(text)) this.faults.push(text);
  }

  choice<const T extends string>(name: string, choices: readonly T[], fallback: T): T {
    const value = this.text(name, fallback);
    const chosen = choices.find((choice) => choice === value);
    return chosen ?? this.bad(name, value, `one of ${choices.join(', ')}`, fallback);
  }

  integer(name: string, fallback: number, least: number, most: number): number {
    const value = this.text(name, String(fallback));
    const number = /^\d{1,15}$/.test(value) ? Number(value) : NaN;
    return number >= least && number <= most
      ? number
      : this.bad(name, value, `a whole number from ${least} to ${most}`, fallback);
  }

  flag(name: string): boolean | null {
    const value = this.optional(name);
    if (value === null) return null;
    if (/^(true|1|yes|on)$/i.test(value)) return true;
    return /^(false|0|no|off)$/i.test(value) ? false : this.bad(name, value, 'true or false', false);
  }

  duration(name: string, fallback: string, leastMs: number, mostMs = LONGEST_TIMER_MS): number {
    const value = this.text(name, fallback);
    const ms = parseDuration(value);
    if (ms === null) return this.bad(name, value, 'a duration like 500ms, 30s, 2m, 24h or 60d', 0);
    const wanted = `a duration from ${durationText(leastMs)} to ${durationText(mostMs)}`;
    return ms >= leastMs && ms <= mostMs ? ms : this.bad(name, value, wanted, 0);
  }

  rate(name: string, fallback: string): Rate {
    const value = this.text(name, fallback);
    return parseRate(value) ?? this.bad(name, value, 'a rate like 20/s, 600/m or 5/h', { count: 1, seconds: 1 });
  }

  trustedProxies(name: string): TrustedProxies {
    const value = this.text(name, '0');
    const proxies = parseTrustedProxies(value);
    return proxies === undefined
      ? this.bad(name, value, 'the number of proxies in front, or their addresses like 10.0.0.1,192.168.0.0/16', null)
      : proxies;
  }

  identifier(name: string, fallback: string): string {
    const value = this.text(name, fallback);
    return /^[A-Za-z][A-Za-z0-9_-]{0,39}$/.test(value)
      ? value
      : this.bad(name, value, 'up to 40 letters, digits, - or _, beginning with a letter', fallback);
  }

  credentials(userName: string, passwordName: string): { user: string; password: string } | null {
    const user = this.optional(userName);
    const password = this.optional(passwordName);
    if (user === null && password === null) return null;
    if (user === null || password === null) {
      return this.missing(
        user === null ? userName : passwordName,
        `it goes with ${user === null ? passwordName : userName}`,
        null,
      );
    }
    if (!user.includes(':')) return { user, password };
    // Somebody may have written user:password there.
    this.fault(`${userName} has a colon in it; write the name alone, and the password in ${passwordName}`);
    return null;
  }

  httpUrl(name: string): string | null {
    const value = this.optional(name);
    if (value === null) return null;
    const url = parseUrl(value);
    return url && /^https?:$/.test(url.protocol) && isPlain(url)
      ? value.replace(/\/+$/, '')
      : this.bad(name, hidePassword(value), 'an http:// or https:// address, with a path at most', null);
  }

  location<const K extends string, T>(
    name: string,
    value: string,
    schemes: Record<string, K>,
    example: string,
    standIn: T,
  ) {
    const url = parseUrl(value);
    const kind = url && schemes[url.protocol];
    if (!url || !kind) return this.bad(name, hidePassword(value), `something like ${example}`, standIn);
    const flaw = flawOf(url);
    return flaw === null ? { kind, url } : this.bad(name, hidePassword(value), flaw, standIn);
  }

  private bad<T>(name: string, value: string, wanted: string, standIn: T): T {
    this.fault(`${name}=${oneLine(value)} is not possible; write ${wanted}`);
    return standIn;
  }
}

/** RFC 8414 §2: what paths are added to has no query and no fragment; nor has what everybody is told credentials. */
const isPlain = ({ username, password, href }: URL): boolean => username + password === '' && !/[?#]/.test(href);

/** What to write instead, where a parser would read something else than was meant; or null. */
function flawOf({ hostname, hash, username, password, pathname, searchParams }: URL): string | null {
  if (hash !== '') return 'a # in a password as %23';
  if (hostname === '' && !searchParams.has('host')) return 'a host after the ://';
  return [username, password, pathname].every(isDecodable) ? null : 'a % in a password as %25';
}

function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 100);

const parseUrl = (text: string): URL | null => (URL.canParse(text) ? new URL(text) : null);

/** Whose X-Forwarded-For counts: of so many proxies in front, or of proxies at these addresses; null: nobody's. */
export type TrustedProxies = { hops: number } | { addresses: string[] } | null;

/** `2`, or `10.0.0.1, 192.168.0.0/16, ::1`; `0` is nobody. Undefined where the text is neither. */
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
