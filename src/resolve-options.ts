import { resolve } from 'node:path';
import type {
  ContactChannel,
  DatabaseLocation,
  QueueLocation,
  ResolvedOptions,
  SettingNames,
  UsherOptions,
} from './usher.options.js';
import { HOST } from './values/actor.js';
import {
  connectionUrlFault,
  DATABASE_SCHEMES,
  parseConnectionUrl,
  QUEUE_EXAMPLE,
  QUEUE_SCHEMES,
} from './values/urls/connection-url.js';
import { parseRate, type Rate } from './values/duration.js';
import type { Environment } from './values/identifier.js';
import { parseMasterKeys } from './values/master-key.js';
import { type RetryPolicy, SPECIFIED_RETRY } from './values/retry-schedule.js';
import { senderFault, smtpUrlFault } from './values/urls/smtp-url.js';
import { passwordFault, StartUpError } from './values/start-up-error.js';
import { parseUrl } from './values/urls/parse-url.js';

const DAY_MS = 86_400_000;
/** Specification 8. */
const ACCESS_TOKEN_SECONDS = 5_184_000;
const REFRESH_TOKEN_SECONDS = 31_536_000;
/** More than the order limit allows in the ten minutes that five attempts take. */
const PENDING_WEBHOOKS = 10_000;

const OPTION_NAMES: SettingNames = {
  database: 'database.url',
  queue: 'queue.url',
  masterKeys: 'masterKeys',
  allowPrivateHosts: 'notifyUrls.allowPrivate',
  retry: 'retry',
  internalPassword: 'internal.password',
  publicUrl: 'publicUrl',
};

/** All faults of the options at once, one line each. */
export class UsherOptionsError extends StartUpError {
  constructor(readonly faults: string[]) {
    super(`The options of UsherModule are invalid:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`);
  }
}

/**
 * Checks the options of an application and puts the defaults in place.
 * @throws UsherOptionsError with every fault
 */
export function resolveOptions(options: UsherOptions): ResolvedOptions {
  const faults: string[] = [];
  const resolved = resolveWith(options, (fault) => void faults.push(fault));
  faults.push(...productionFaults(resolved));
  if (faults.length > 0) throw new UsherOptionsError(faults);
  return resolved;
}

type Report = (fault: string) => void;

function resolveWith(options: UsherOptions, report: Report): ResolvedOptions {
  const { environment, masterKeys, queue = {}, lifetimes = {}, limits = {} } = options;
  if (environment !== 'sandbox' && environment !== 'production')
    report(`environment is ${JSON.stringify(environment)}; use 'sandbox' or 'production'`);
  const database = databaseOf(options.database, report);
  checkMasterKeys(masterKeys, database, report);
  return {
    names: OPTION_NAMES,
    environment,
    actor: HOST,
    publicUrl: publicUrlOf(options.publicUrl, report),
    resourceOwners: options.resourceOwners ?? null,
    database,
    queue: queueOf(queue.url, database, report),
    databasePool: poolOf(options.database),
    queuePrefix: queue.prefix ?? `usher-${environment}`,
    masterKeys: masterKeys ?? null,
    internal: options.internal ?? null,
    deliver: options.deliver ?? true,
    retry: retryOf(options.retry, report),
    concurrency: wholeNumber('concurrency', options.concurrency ?? 256, 1, report),
    retentionMs: wholeNumber('retentionMs', options.retentionMs ?? 90 * DAY_MS, DAY_MS, report),
    auditRetentionMs: wholeNumber('auditRetentionMs', options.auditRetentionMs ?? 365 * DAY_MS, DAY_MS, report),
    allowPrivateHosts: options.notifyUrls?.allowPrivate ?? false,
    proxy: proxyOf(options.proxy, report),
    contactMessages: contactChannel(options, report),
    traceReceivers: options.traceReceivers ?? false,
    accessTokenSeconds: wholeNumber('lifetimes.accessToken', lifetimes.accessToken ?? ACCESS_TOKEN_SECONDS, 1, report),
    refreshTokenSeconds: wholeNumber(
      'lifetimes.refreshToken',
      lifetimes.refreshToken ?? REFRESH_TOKEN_SECONDS,
      1,
      report,
    ),
    authFailureLimit: rateOf('limits.authFailures', limits.authFailures ?? '20/m', report),
    tokenRateLimit: limits.tokens === 'off' ? null : rateOf('limits.tokens', limits.tokens ?? '600/m', report),
    orderRateLimit: limits.orders === 'off' ? null : rateOf('limits.orders', limits.orders ?? '600/m', report),
    pendingWebhookLimit:
      limits.pendingWebhooks === 'off'
        ? null
        : wholeNumber('limits.pendingWebhooks', limits.pendingWebhooks ?? PENDING_WEBHOOKS, 1, report),
  };
}

const poolOf = (database: UsherOptions['database'] | undefined): number =>
  (database && 'pool' in database ? database.pool : undefined) ?? 10;

/** Stands in for an address that is invalid, so that the other faults are found too. */
const NOWHERE = new URL('postgres://nowhere/nowhere');

function databaseOf(database: UsherOptions['database'] | undefined, report: Report): DatabaseLocation {
  if (database && 'dataSource' in database) {
    const { dataSource } = database;
    if (dataSource && ['mysql', 'mariadb', 'postgres'].includes(dataSource.options.type))
      return { kind: 'host', dataSource };
    report('database.dataSource must be a DataSource of type mysql, mariadb or postgres; inject it into useFactory');
    return { kind: 'postgres', url: NOWHERE };
  }
  const url = database?.url ?? '';
  if (url.startsWith('embedded:') && url.length > 'embedded:'.length)
    return { kind: 'embedded', folder: resolve(url.slice('embedded:'.length)), join: database?.join ?? false };
  return addressOf(
    'database.url',
    url,
    DATABASE_SCHEMES,
    'mysql://user:password@host:3306/name or postgres://…',
    report,
  );
}

function queueOf(url: string | undefined, database: DatabaseLocation, report: Report): QueueLocation {
  if (url !== undefined) return addressOf('queue.url', url, QUEUE_SCHEMES, QUEUE_EXAMPLE, report);
  const isPostgres =
    database.kind === 'host' ? database.dataSource.options.type === 'postgres' : database.kind !== 'mysql';
  if (!isPostgres) report('queue.url is missing; use redis://host:6379, because MySQL cannot hold the queue');
  return { kind: 'database' };
}

function addressOf<K extends 'mysql' | 'postgres' | 'redis'>(
  name: string,
  text: string,
  schemes: Record<string, K>,
  example: string,
  report: Report,
): { kind: K; url: URL } {
  const url = parseConnectionUrl(text);
  const kind = url ? schemes[url.protocol] : undefined;
  if (!url || !kind) {
    report(`${name} is invalid; use ${example}`);
    return { kind: 'postgres' as K, url: NOWHERE };
  }
  const fault = connectionUrlFault(kind, url);
  if (fault !== null) report(`${name}: ${fault}`);
  return { kind, url };
}

function checkMasterKeys(masterKeys: string | undefined, database: DatabaseLocation, report: Report): void {
  if (masterKeys === undefined && database.kind === 'embedded') return;
  if (masterKeys === undefined || !parseMasterKeys(masterKeys))
    report(
      `masterKeys is ${masterKeys === undefined ? 'missing' : 'invalid'}; ` +
        'use id:base64[,id:base64…] with 32 bytes a key, for example k1:$(openssl rand -base64 32)',
    );
}

function retryOf(given: Partial<RetryPolicy> = {}, report: Report): RetryPolicy {
  const retry = { ...SPECIFIED_RETRY, ...given };
  wholeNumber('retry.timeoutMs', retry.timeoutMs, 1, report);
  wholeNumber('retry.retryEveryMs', retry.retryEveryMs, 100, report);
  wholeNumber('retry.minIntervalMs', retry.minIntervalMs, 0, report);
  if (wholeNumber('retry.maxAttempts', retry.maxAttempts, 1, report) > SPECIFIED_RETRY.maxAttempts)
    report('retry.maxAttempts may be at most 5');
  return retry;
}

function publicUrlOf(text: string | undefined, report: Report): string | null {
  if (text === undefined) return null;
  const url = parseUrl(text);
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && !/[?#]/.test(url.href);
  if (!isPlain) report('publicUrl is invalid; use an http:// or https:// address without a query');
  return text.replace(/\/+$/, '');
}

function proxyOf(text: string | undefined, report: Report): URL | null {
  if (text === undefined) return null;
  const url = parseUrl(text);
  if (url && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search === '') return url;
  report('proxy is invalid; use http://proxy.example:3128');
  return null;
}

function contactChannel({ contactMessages, environment }: UsherOptions, report: Report): ContactChannel {
  if (contactMessages === undefined) return defaultChannel(environment);
  if ('send' in contactMessages) return contactMessages;
  const { smtpUrl, from } = contactMessages;
  const fault = smtpUrlFault(smtpUrl);
  if (fault !== null) report(`contactMessages.smtpUrl ${fault}`);
  const fromFault = senderFault(from);
  if (fromFault !== null) report(`contactMessages.from ${fromFault}`);
  return fault === null ? { kind: 'smtp', url: new URL(smtpUrl), from } : null;
}

/** Without a mail server: only a sandbox, whose messages are looked at by the one who tries it, has a file. */
export const defaultChannel = (environment: Environment): ContactChannel =>
  environment === 'sandbox' ? { kind: 'file' } : null;

function rateOf(name: string, text: string, report: Report): Rate {
  const rate = parseRate(text);
  if (!rate) report(`${name}=${text} is invalid; use a rate like 20/s, 600/m or 5/h`);
  return rate ?? { count: 1, seconds: 1 };
}

function wholeNumber(name: string, value: number, least: number, report: Report): number {
  if (!Number.isSafeInteger(value) || value < least)
    report(`${name}=${value} is invalid; use a whole number of at least ${least}`);
  return value;
}

/** What production does not allow, by the names of the options or settings. */
export function productionFaults(options: ResolvedOptions): string[] {
  const { environment, database, allowPrivateHosts, retry, internal, publicUrl, names } = options;
  if (environment !== 'production') return [];
  const faults: string[] = [];
  const fault = internal && passwordFault(names.internalPassword, internal.password);
  if (fault) faults.push(fault);
  if (database.kind === 'embedded')
    faults.push(
      `${names.database}: production needs mysql:// or postgres://; the embedded database is for the sandbox`,
    );
  if (allowPrivateHosts)
    faults.push(`${names.allowPrivateHosts}: production never delivers to private addresses; leave it out`);
  const times = Object.keys(SPECIFIED_RETRY) as (keyof RetryPolicy)[];
  if (times.some((name) => retry[name] !== SPECIFIED_RETRY[name]))
    faults.push(`${names.retry}: production keeps the specified 30 s, 2 min, 30 s and 5 attempts; leave it out`);
  if (publicUrl !== null && !publicUrl.startsWith('https:'))
    faults.push(`${names.publicUrl}: production needs https://; set the address that clients use, it is the issuer`);
  return faults;
}
