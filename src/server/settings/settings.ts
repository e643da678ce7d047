import { readFileSync } from 'node:fs';
import { OptionReader, type OptionSource } from '../../options/option-reader.js';
import type { OptionValues } from '../../options/option-kinds.js';
import type { OPTIONS } from '../../options/option-table.js';
import { combined, exposure } from '../../resolve-options.js';
import type { Credentials, ResolvedOptions } from '../../usher.options.js';
import { SYSTEM } from '../../values/actor.js';
import { StartUpError } from '../../values/start-up-error.js';
import { misspeltNames } from './misspelling.js';
import { SETTINGS } from './server-options.js';

type Values = OptionValues<typeof SETTINGS>;

export type Role = Values['role'];
type LogLevel = Values['logLevel'];

/** Injects the {@link Config}. */
export const SERVER_CONFIG = Symbol('ServerConfig');

/** The server's configuration, checked. Times are in milliseconds unless the name says seconds. */
export interface Config
  extends
    ResolvedOptions,
    Omit<Values, keyof typeof OPTIONS | 'operatorUser' | 'operatorPassword' | 'metricsUser' | 'metricsPassword'> {
  role: Role;
  operator: Credentials;
  /** Null: metrics take the operator's credentials only. */
  metrics: Credentials | null;
  /** Whether to trace with OpenTelemetry: the environment names an exporter. */
  tracing: boolean;
  /** Log level of commands: silent unless LOG_LEVEL is set. */
  commandLogLevel: LogLevel;
  /** Defaults in use that are safe only on a local machine; the startup banner lists them. */
  unsafeDefaults: string[];
  /** Every setting that is no secret, as the environment writes it. */
  texts: Record<string, string>;
}

/** Lists all errors in the configuration at once, one line each. */
export class ConfigError extends StartUpError {
  constructor(readonly faults: string[]) {
    super(
      `The configuration has ${faults.length === 1 ? 'an error' : `${faults.length} errors`}:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
  }
}

/** Whether a command adds jobs. A command without jobs does not connect to the queue, which may be down or unknown. */
export type Needs = 'with-queue' | 'without-queue';

/** What the settings are read for. A command serves no requests, and may run beside an application that embeds Usher. */
type Task = 'serve' | 'migrate' | Needs;

/**
 * Reads the settings from the environment. A command needs nothing that is only for serving, and a migration no master keys.
 * @throws ConfigError with every fault
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env, task: Task = 'serve'): Config {
  const reader = new OptionReader(SETTINGS, environmentSource(environment));
  const { role, host, port, logLevel } = reader.values;
  const exposed = task === 'migrate' ? null : exposure(reader.values, host);
  const unsafeDefaults = exposed === null && task !== 'migrate' ? reader.useLocalDefaults() : [];
  const { operatorUser, operatorPassword, metricsUser, metricsPassword, ...values } = reader.values;
  const options = combined(reader, SYSTEM, exposed, task !== 'without-queue');
  if (task === 'serve') {
    if (exposed !== null && !reader.isGiven('operatorUser', 'operatorPassword'))
      reader.faults.push(`OPS_USER and OPS_PASSWORD must be set${exposed}: the operator’s credentials for /ops`);
    if (options.environment === 'production' && !reader.isGiven('trustProxy'))
      reader.missing('trustProxy', ' in production');
  }
  if (port && values.opsPort === port) reader.fault('opsPort', `=${port} is also PORT; use another port`);
  const others = [operatorUser, operatorPassword, values.internalUser, values.internalPassword];
  for (const [key, value] of Object.entries({ metricsUser, metricsPassword }))
    if (value !== null && others.includes(value))
      reader.fault(key as keyof Values, ' must differ from the credentials of operators and order services');
  const faults = [...misspeltNames(environment, NAMES), ...reader.finish()];
  if (faults.length > 0) throw new ConfigError(faults);
  const texts = NOT_SECRET.map(({ variable, local, default: fallback }) => [
    variable,
    environment[String(variable)] || (exposed === null && local?.default) || fallback || 'not set',
  ]);
  return {
    ...values,
    ...options,
    guidesUrl: `${options.publicUrl ?? ''}/docs`,
    unsafeDefaults,
    role,
    deliver: role !== 'api',
    operator: { user: operatorUser ?? '', password: operatorPassword ?? '' },
    metrics: metricsUser && metricsPassword ? { user: metricsUser, password: metricsPassword } : null,
    tracing: isTraced(environment),
    commandLogLevel: reader.isGiven('logLevel') ? logLevel : 'silent',
    texts: Object.fromEntries(texts) as Config['texts'],
  };
}

export const commandConfig = (task: Task): Config => loadConfig(process.env, task);

const OF_THE_SERVER = Object.values(SETTINGS).filter(({ variable }) => variable !== null);
const NOT_SECRET = OF_THE_SERVER.filter(({ isSecret }) => !isSecret);

/** OpenTelemetry's own variables. Its SDK reads them itself, with all others; here they decide only whether it is started. */
const EXPORTERS = ['OTEL_TRACES_EXPORTER', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];

const isTraced = (environment: NodeJS.ProcessEnv): boolean =>
  environment.OTEL_SDK_DISABLED?.toLowerCase() !== 'true' &&
  environment.OTEL_TRACES_EXPORTER !== 'none' &&
  EXPORTERS.some((name) => environment[name]);

const NAMES = [
  ...OF_THE_SERVER.flatMap(({ variable, isSecret }) => [`${variable}`, ...(isSecret ? [`${variable}_FILE`] : [])]),
  ...EXPORTERS,
  'OTEL_SDK_DISABLED',
];

/** For the commands of the receiver's package, which need no setting. */
export const variables = (): NodeJS.ProcessEnv => process.env;

/** Texts of environment variables. An empty one counts as absent, because compose files pass unset variables as ''. */
const environmentSource = (variables: Record<string, string | undefined>): OptionSource => ({
  isText: true,
  /** A secret is its value, or the content of the file that NAME_FILE names. */
  valueOf({ variable, isSecret }, report) {
    const value = variable === null ? undefined : variables[variable] || undefined;
    const path = isSecret && variables[`${variable}_FILE`];
    if (!path) return value;
    if (value !== undefined) report(`${variable} and ${variable}_FILE are both set; remove one of them`);
    return contentOf(path, (fault) => report(`${variable}_FILE: the file ${fault}`));
  },
});

/** No message shows the path or the content: the secret may have been given in place of the path. */
function contentOf(path: string, report: (fault: string) => void): string | undefined {
  try {
    const content = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)).replace(/\r?\n$/, '');
    if (content !== '') return content;
    report('is empty; write the value into it');
  } catch (error) {
    const reason = FILE_ERRORS[(error as NodeJS.ErrnoException).code ?? ''] ?? 'cannot be read';
    report(`${reason}; use the path of a text file that this user may read`);
  }
  return undefined;
}

const FILE_ERRORS: Record<string, string> = {
  ENOENT: 'does not exist',
  EACCES: 'is not readable for this user',
  EISDIR: 'is a folder',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'is not UTF-8 text',
};
