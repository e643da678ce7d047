import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { productionFaults } from '../../resolve-options.js';
import type {
  Credentials,
  DatabaseLocation,
  QueueLocation,
  ResolvedOptions,
  SettingNames,
} from '../../usher.options.js';
import { SYSTEM } from '../../values/actor.js';
import {
  connectionUrlFault,
  DATABASE_SCHEMES,
  QUEUE_EXAMPLE,
  QUEUE_SCHEMES,
} from '../../values/urls/connection-url.js';
import { parseMasterKeys } from '../../values/master-key.js';
import { passwordFault, StartUpError } from '../../values/start-up-error.js';
import { misspeltNames } from './misspelling.js';
import { readContactChannel, readEgressProxy } from './outbound.js';
import { SettingReader, type TrustedProxies } from './setting-reader.js';

export type Role = 'all' | 'api' | 'worker';

/** Injects the {@link Config}. */
export const SERVER_CONFIG = Symbol('ServerConfig');

/** The server's configuration, checked. Times are in milliseconds unless the name says seconds. */
export interface Config extends ResolvedOptions {
  role: Role;
  port: number;
  host: string;
  operator: Credentials;
  trustProxy: TrustedProxies;
  /** After SIGTERM: how long it reports "not ready" before it closes its port. */
  shutdownDelayMs: number;
  /** Whether to trace with OpenTelemetry: the environment names an exporter. */
  tracing: boolean;
  logLevel: LogLevel;
  /** Log level of commands: silent unless LOG_LEVEL is set. */
  commandLogLevel: LogLevel;
  /** Defaults in use that are safe only on a local machine; the startup banner lists them. */
  unsafeDefaults: string[];
}

const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const DAY_MS = 86_400_000;

/** Lists all errors in the configuration at once, one line each. */
export class ConfigError extends StartUpError {
  constructor(readonly faults: string[]) {
    super(
      `The configuration has ${faults.length === 1 ? 'an error' : `${faults.length} errors`}:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
  }
}

const SETTING_NAMES: SettingNames = {
  database: 'DATABASE_URL',
  queue: 'QUEUE_URL',
  masterKeys: 'USHER_MASTER_KEYS',
  allowPrivateHosts: 'WEBHOOK_ALLOW_PRIVATE_HOSTS',
  retry: 'WEBHOOK_TIMEOUT, WEBHOOK_RETRY_* and WEBHOOK_MAX_ATTEMPTS',
  internalPassword: 'INTERNAL_PASSWORD',
  publicUrl: 'USHER_AUTH_URL',
};

/**
 * Reads the server's settings from the environment.
 * @throws ConfigError with every fault
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const read = new SettingReader(environment);
  const config = readConfig(read);
  const { environment: kind, operator } = config;
  const weak = kind === 'production' ? passwordFault('OPS_PASSWORD', operator.password) : null;
  if (weak) read.fault(weak);
  const faults = [...misspeltNames(environment, read.names), ...read.faults, ...productionFaults(config)];
  if (faults.length > 0) throw new ConfigError(faults);
  return config;
}

/** The client secret that `usher listen` checks signatures with; empty if it is not set. */
export const clientSecret = (environment: NodeJS.ProcessEnv = process.env): string => environment.CLIENT_SECRET ?? '';

/** The environment that a command without a server is used for; it needs no other setting. */
export const commandEnvironment = (environment: NodeJS.ProcessEnv = process.env): string =>
  environment.USHER_ENV ?? 'sandbox';

function readConfig(read: SettingReader): Config {
  const environment = read.choice('USHER_ENV', ['sandbox', 'production'], 'sandbox');
  const role = read.choice('USHER_ROLE', ['all', 'api', 'worker'], 'all');
  const database = readDatabase(read);
  const host = read.text('HOST', '127.0.0.1');
  const isLocalSandbox = database.kind === 'embedded' && isLoopback(host) && environment === 'sandbox';
  const reason = environment === 'production' ? 'in production' : exposureReason(database, host);
  const unsafeDefaults: string[] = [];
  const unsafeDefault = <T>(value: T, description: string): T => {
    unsafeDefaults.push(description);
    return value;
  };
  return {
    names: SETTING_NAMES,
    environment,
    actor: SYSTEM,
    role,
    deliver: role !== 'api',
    port: read.integer('PORT', 3000, 0, 65_535),
    host,
    publicUrl: read.httpUrl('USHER_AUTH_URL'),
    resourceOwners: null,
    database,
    queue: readQueue(read, database),
    databasePool: read.integer('DATABASE_POOL', 10, 1, 1_000),
    queuePrefix: read.identifier('QUEUE_PREFIX', `usher-${environment}`),
    masterKeys:
      readMasterKeys(read) ??
      (isLocalSandbox ? unsafeDefault(null, 'a generated master key') : missingKeys(read, reason)),
    operator:
      read.credentials('OPS_USER', 'OPS_PASSWORD') ??
      (isLocalSandbox
        ? unsafeDefault({ user: 'ops', password: 'ops' }, 'operator credentials ops:ops')
        : read.missing(
            `OPS_USER and OPS_PASSWORD`,
            `the operator’s credentials for /ops`,
            { user: '', password: '' },
            reason,
          )),
    internal:
      read.credentials('INTERNAL_USER', 'INTERNAL_PASSWORD') ??
      (isLocalSandbox
        ? unsafeDefault({ user: 'internal', password: 'internal' }, 'internal credentials internal:internal')
        : null),
    retry: {
      timeoutMs: read.duration('WEBHOOK_TIMEOUT', '30s', 1),
      retryEveryMs: read.duration('WEBHOOK_RETRY_EVERY', '2m', 100),
      minIntervalMs: read.duration('WEBHOOK_RETRY_MIN_INTERVAL', '30s', 0),
      maxAttempts: read.integer('WEBHOOK_MAX_ATTEMPTS', 5, 1, 5),
    },
    concurrency: read.integer('WEBHOOK_CONCURRENCY', 256, 1, 10_000),
    retentionMs: read.duration('WEBHOOK_RETENTION', '90d', DAY_MS, 3_650 * DAY_MS),
    auditRetentionMs: read.duration('AUDIT_RETENTION', '365d', DAY_MS, 3_650 * DAY_MS),
    allowPrivateHosts:
      read.flag('WEBHOOK_ALLOW_PRIVATE_HOSTS') ?? (isLocalSandbox && unsafeDefault(true, 'private Notify URLs')),
    proxy: readEgressProxy(read),
    contactMessages: readContactChannel(read, environment),
    traceReceivers: read.flag('WEBHOOK_TRACEPARENT') ?? false,
    accessTokenSeconds: Math.floor(read.duration('ACCESS_TOKEN_LIFETIME', '60d', 1_000, 3_650 * DAY_MS) / 1_000),
    refreshTokenSeconds: Math.floor(read.duration('REFRESH_TOKEN_LIFETIME', '365d', 1_000, 3_650 * DAY_MS) / 1_000),
    authFailureLimit: read.rate('AUTH_FAILURE_LIMIT', '20/m'),
    tokenRateLimit: read.text('TOKEN_RATE_LIMIT', '') === 'off' ? null : read.rate('TOKEN_RATE_LIMIT', '600/m'),
    trustProxy: read.trustedProxies('TRUST_PROXY', environment === 'production'),
    orderRateLimit: read.text('ORDER_RATE_LIMIT', '') === 'off' ? null : read.rate('ORDER_RATE_LIMIT', '600/m'),
    pendingWebhookLimit:
      read.text('WEBHOOK_PENDING_LIMIT', '') === 'off'
        ? null
        : read.integer('WEBHOOK_PENDING_LIMIT', 10_000, 1, 1_000_000),
    shutdownDelayMs: read.duration('SHUTDOWN_DELAY', '0s', 0, 600_000),
    tracing: readTracing(read),
    logLevel: read.choice('LOG_LEVEL', LOG_LEVELS, 'info'),
    commandLogLevel: read.optional('LOG_LEVEL') === null ? 'silent' : read.choice('LOG_LEVEL', LOG_LEVELS, 'silent'),
    unsafeDefaults,
  };
}

/** OpenTelemetry's own variables. Its SDK reads them itself, with all others; here they decide only whether it is started. */
function readTracing(read: SettingReader): boolean {
  const exporters = read.optional('OTEL_TRACES_EXPORTER');
  const endpoints = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'].map((name) =>
    read.optional(name),
  );
  const isDisabled = read.optional('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || exporters === 'none';
  return !isDisabled && [exporters, ...endpoints].some((value) => value !== null);
}

const MASTER_KEYS_FORMAT = 'id:base64[,id:base64…] with 32 bytes per key, e.g. k1:$(openssl rand -base64 32)';

function readMasterKeys(read: SettingReader): string | null {
  const value = read.secret('USHER_MASTER_KEYS');
  if (value !== null && !parseMasterKeys(value)) read.fault(`USHER_MASTER_KEYS is invalid; use ${MASTER_KEYS_FORMAT}`);
  return value;
}

const missingKeys = (read: SettingReader, reason: string): null =>
  read.missing('USHER_MASTER_KEYS', MASTER_KEYS_FORMAT, null, reason);

/** Why the unsafe defaults do not apply. */
const exposureReason = ({ kind }: DatabaseLocation, host: string): string =>
  kind === 'embedded' ? `with HOST=${host}` : 'with a database server';

/** Used in place of an invalid DATABASE_URL, so that missing settings of a server are reported in the same run. */
const PLACEHOLDER_SERVER: DatabaseLocation = { kind: 'postgres', url: new URL('postgres://unknown/unknown') };

function readDatabase(read: SettingReader): DatabaseLocation {
  const value = read.secret('DATABASE_URL') ?? 'embedded:./data';
  if (value.startsWith('embedded:')) {
    const folder = value.slice('embedded:'.length);
    if (folder === '') read.fault('DATABASE_URL=embedded: has no folder; use embedded:./data');
    return { kind: 'embedded', folder: resolve(folder), join: false };
  }
  const example = 'embedded:./data, mysql://user:password@host:3306/name or postgres://…';
  const location = read.location('DATABASE_URL', value, DATABASE_SCHEMES, example, PLACEHOLDER_SERVER);
  const isValid = checkUrl(read, 'DATABASE_URL', location);
  if (isValid && 'url' in location && location.url.pathname.length < 2)
    read.fault('DATABASE_URL has no database name; add one at its end, like /usher');
  return location;
}

function readQueue(read: SettingReader, database: DatabaseLocation): QueueLocation {
  const value = read.secret('QUEUE_URL');
  if (value === null || value.startsWith('embedded:')) {
    const canHoldQueue = database.kind === 'embedded' || (value === null && database.kind === 'postgres');
    if (!canHoldQueue) read.missing('QUEUE_URL', 'redis://host:6379 or postgres://…', null);
    return { kind: 'database' };
  }
  const location = read.location('QUEUE_URL', value, QUEUE_SCHEMES, QUEUE_EXAMPLE, { kind: 'database' as const });
  checkUrl(read, 'QUEUE_URL', location);
  return location;
}

function checkUrl(read: SettingReader, name: string, location: DatabaseLocation | QueueLocation): boolean {
  const fault = 'url' in location ? connectionUrlFault(location.kind, location.url) : null;
  if (fault !== null) read.fault(`${name}: ${fault}`);
  return fault === null;
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
