import type { LoggerService } from '@nestjs/common';
import { destination, type DestinationStream, type Logger, pino } from 'pino';
import { AUDIT_CONTEXT } from '../audit/audit.module.js';
import { traceFields } from '../telemetry/tracing.js';
import { loadPackage } from '../values/start-up-error.js';
import type { Config } from './settings/settings.js';

/** Fields whose values are never logged, at any depth. */
const SECRET_FIELDS = new Set([
  'authorization',
  'cookie',
  'set-cookie',
  'secret',
  'client_secret',
  'password',
  'access_token',
  'refresh_token',
]);
const MAX_DEPTH = 5;

/**
 * Logs JSON lines, or readable text on a terminal outside production. A command logs to standard error, because its
 * result goes to standard output.
 */
export async function createLogger(
  { logLevel, environment, tracing }: Pick<Config, 'logLevel' | 'environment' | 'tracing'>,
  output: 'stdout' | 'stderr' | DestinationStream = 'stdout',
): Promise<Logger> {
  const options = {
    level: logLevel,
    base: null,
    timestamp: timeField,
    // pino's own redaction would make a line about ten times slower.
    formatters: { log: (fields: object) => redacted(fields, 1) },
    ...(tracing && { mixin: traceFields }),
  };
  if (typeof output !== 'string') return pino(options, output);
  const { fd, isTTY } = process[output];
  const isPretty = isTTY && environment !== 'production' && logLevel !== 'silent';
  return pino(options, isPretty ? await prettyOutput(fd) : linesTo(fd));
}

let [writtenMs, written] = [NaN, ''];

/** Like pino's `isoTime`, but formats each millisecond once: a busy process logs several lines in one. */
function timeField(): string {
  const now = Date.now();
  if (now !== writtenMs) [writtenMs, written] = [now, `,"time":"${new Date(now).toISOString()}"`];
  return written;
}

const outputs = new Map<number, DestinationStream>();

/** Lines that cannot be written, for example to a full disk, wait for the next ones. More than this is dropped. */
const MAX_WAITING_BYTES = 16_000_000;

/** Writes the lines of one turn of the event loop together: a system call for each would cost more than most requests. */
function linesTo(fd: number): DestinationStream {
  const known = outputs.get(fd);
  if (known) return known;
  // Without a listener, a full disk would end the process.
  const open = (): ReturnType<typeof destination> =>
    destination({ dest: fd, sync: true, maxLength: MAX_WAITING_BYTES })
      .on('error', () => undefined)
      .on('drop', () => (file = open()));
  let file = open();
  let lines = '';
  const flush = (): void => {
    if (lines !== '') file.write(lines);
    lines = '';
  };
  process.on('exit', flush);
  const output = {
    write(line: string): void {
      if (lines === '') setImmediate(flush);
      lines += line;
    },
  };
  outputs.set(fd, output);
  return output;
}

function redacted(fields: object, depth: number): Record<string, unknown> {
  const all: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields))
    if (SECRET_FIELDS.has(name.toLowerCase())) all[name] = '[Redacted]';
    else all[name] = typeof value === 'object' && value !== null ? shown(value, depth) : value;
  return all;
}

function shown(value: object, depth: number): unknown {
  if (value instanceof Date || value instanceof Error) return value;
  if (depth === MAX_DEPTH) return '[Deeper]';
  return Array.isArray(value) ? Object.values(redacted(value, depth + 1)) : redacted(value, depth + 1);
}

async function prettyOutput(fd: number): Promise<DestinationStream> {
  const { default: pretty } = await loadPackage('pino-pretty', () => import('pino-pretty'));
  return pretty({
    destination: fd,
    colorize: true,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'context',
    messageFormat: '{context}: {msg}',
  });
}

/** Writes Nest's lines and Usher's to one log. An object is logged as fields, a string as the message. */
export class NestLogger implements LoggerService {
  /** Logs the audit at every level but silent. */
  private readonly audit: Logger;

  constructor(private readonly logger: Logger) {
    this.audit = logger.level === 'silent' ? logger : logger.child({}, { level: 'info' });
  }

  readonly log = this.at('info');
  readonly error = this.at('error');
  readonly warn = this.at('warn');
  readonly debug = this.at('debug');
  readonly verbose = this.at('trace');
  readonly fatal = this.at('fatal');

  private at(level: 'info' | 'error' | 'warn' | 'debug' | 'trace' | 'fatal') {
    return (message: unknown, ...rest: unknown[]): void => {
      const context = ownContext(rest.at(-1));
      const shown = NEST_NOISE[level]?.has(context) ? 'debug' : level;
      if (message instanceof Error) this.logger[shown](message.stack ?? message.message);
      else if (typeof message === 'object' && message !== null)
        (context === AUDIT_CONTEXT ? this.audit : this.logger)[shown]({ ...message, context });
      else this.logger[shown]({ context }, String(message));
    };
  }
}

/** Without the prefix that distinguishes Usher's lines in the log of an application. */
const ownContext = (context: unknown): unknown =>
  typeof context === 'string' ? context.replace(/^Usher /, '') : context;

/**
 * The contexts whose lines of a level are logged as debug. Nest logs every module and route at the start, and errors
 * that it also throws.
 */
const NEST_NOISE: Record<string, ReadonlySet<unknown>> = {
  info: new Set(['NestFactory', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer', 'NestApplication']),
  error: new Set(['ExceptionHandler', 'NestApplication']),
};
