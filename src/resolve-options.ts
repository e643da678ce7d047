import type { Option } from './options/option-kinds.js';
import { OptionReader, shown } from './options/option-reader.js';
import { type LibraryValues, OPTIONS } from './options/option-table.js';
import type { DatabaseLocation, ResolvedOptions, UsherOptions } from './usher.options.js';
import { type Actor, HOST } from './values/actor.js';
import type { ContactMessenger } from './values/contact-messenger.js';
import { remedyFor } from './values/spelling.js';
import { StartUpError } from './values/start-up-error.js';

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
  if (options instanceof Promise)
    throw new UsherOptionsError([
      'options=[object Promise] is invalid; await it, or return it from useFactory of UsherModule.forRootAsync()',
    ]);
  const reader = new OptionReader(OPTIONS, {
    isText: false,
    valueOf: (option) =>
      pathOf(option)
        .split('.')
        .reduce(member, options as unknown),
  });
  if (!reader.isGiven('environment')) reader.missing('environment');
  const database: unknown = options?.database;
  const isUndefined = isObject(database) && 'dataSource' in database;
  if (!reader.isGiven('dataSource', 'databaseUrl'))
    reader.missing('databaseUrl', isUndefined ? ', because database.dataSource is undefined' : '');
  if (reader.isGiven('dataSource')) {
    reader.values.databaseUrl = null;
    if (reader.isGiven('databaseUrl', 'databasePool', 'migrationTable', 'databaseTimeoutMs', 'joinDatabase'))
      reader.fault('dataSource', ' is used as it is; leave out url, pool, migrationTable, timeoutMs and join');
  } else if (reader.isGiven('currentManager'))
    reader.fault('currentManager', ' needs database.dataSource; pass that DataSource, or leave currentManager out');
  if (isObject(options?.internal) && !reader.isGiven('internalUser', 'internalPassword'))
    reader.missing('internalUser');
  const contactMessages: unknown = options?.contactMessages;
  const isOwn = isMessenger(contactMessages);
  if (isObject(contactMessages) && !isOwn && !reader.isGiven('smtpUrl', 'smtpFrom')) reader.missing('smtpUrl');
  const resolved = combined(reader, HOST, exposure(reader.values));
  const faults = [...nameFaults(options, ''), ...reader.finish()];
  if (faults.length > 0) throw new UsherOptionsError(faults);
  return isOwn ? { ...resolved, contactMessages } : resolved;
}

const pathOf = ({ option }: Option): string => String(option);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object of the application: its members are no options. */
const isMessenger = (value: unknown): value is ContactMessenger => isObject(value) && typeof value.send === 'function';

const member = (value: unknown, name: string): unknown =>
  isObject(value) && !isMessenger(value) ? value[name] : undefined;

const PATHS = Object.values<Option>(OPTIONS).map(pathOf);

/** What is wrong with the names at `path`, which is '' or ends with a dot, and below it. */
function nameFaults(given: unknown, path: string): string[] {
  const below = PATHS.filter((other) => other.startsWith(path)).map((other) => other.slice(path.length));
  const known = [...new Set(below.map((other) => other.replace(/\..*/, '')))];
  if (!isObject(given))
    return [`${path.slice(0, -1) || 'options'}=${shown(given)} is invalid; use an object with ${known.join(', ')}`];
  const unknown = Object.keys(given).filter((name) => !known.includes(name));
  return [
    ...unknown.map((name) => `${path}${name} is not a setting; ${remedyFor(name, known, path)}`),
    ...known.flatMap((name) => {
      const value = given[name];
      const isValue = value === undefined || PATHS.includes(path + name);
      const isSender = name === 'contactMessages' && isMessenger(value);
      return isValue || isSender ? [] : nameFaults(value, `${path}${name}.`);
    }),
  ];
}

/** Why the defaults of a local sandbox do not apply; null: they do. */
export function exposure({ environment, databaseUrl }: LibraryValues, host = 'localhost'): string | null {
  if (environment === 'production') return ' in production';
  if (databaseUrl?.kind !== 'embedded') return ' with a database server';
  return /^(localhost|::1|127(\.\d{1,3}){3})$/.test(host) ? null : ` with HOST=${host}`;
}

/** Stands in for an address that is invalid, so that the other faults are found too. */
const NOWHERE: DatabaseLocation = { kind: 'postgres', url: new URL('postgres://nowhere/nowhere') };

/** Checks what concerns several options, and combines them. */
export function combined(
  reader: OptionReader<typeof OPTIONS>,
  actor: Actor,
  exposed: string | null,
  opensQueue = true,
): ResolvedOptions {
  const { values } = reader;
  const { environment, dataSource, databaseUrl, queueUrl, internalUser, internalPassword, smtpUrl, smtpFrom } = values;
  const { timeoutMs, retryEveryMs, minIntervalMs, maxAttempts } = values;
  if (exposed !== null && !reader.isGiven('masterKeys')) reader.missing('masterKeys', exposed);
  const database = dataSource ? ({ kind: 'host', dataSource } as const) : (databaseUrl ?? NOWHERE);
  const type = dataSource ? dataSource.options.type : database.kind;
  const needsServer = opensQueue && type !== 'embedded' && (queueUrl === 'embedded' || type !== 'postgres');
  if (needsServer && (queueUrl === 'embedded' || !reader.isGiven('queueUrl'))) reader.missing('queueUrl');
  return {
    ...values,
    names: reader.names,
    actor,
    role: values.deliver ? 'all' : 'api',
    database: database.kind === 'embedded' ? { ...database, join: values.joinDatabase } : database,
    queue: queueUrl && queueUrl !== 'embedded' ? queueUrl : { kind: 'database' },
    queuePrefix: values.queuePrefix ?? `usher-${environment}`,
    internal: internalUser && internalPassword ? { user: internalUser, password: internalPassword } : null,
    retry: { timeoutMs, retryEveryMs, minIntervalMs, maxAttempts },
    contactMessages:
      smtpUrl && smtpFrom
        ? { kind: 'smtp', url: smtpUrl, from: smtpFrom }
        : environment === 'sandbox'
          ? { kind: 'file' }
          : null,
    accessTokenSeconds: Math.floor(values.accessTokenMs / 1_000),
    refreshTokenSeconds: Math.floor(values.refreshTokenMs / 1_000),
  };
}
