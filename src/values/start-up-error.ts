import { dirname } from 'node:path';
import { satisfies } from 'semver';
import { manifestAbove, OPTIONAL_VERSIONS } from './version.js';

/** A fault that prevents a command from starting. Its message says what to do. */
export class StartUpError extends Error {}

/** A server that does not answer. It may answer later. */
export class NoAnswer extends StartUpError {}

const NETWORK_ERRORS: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host not found',
  ETIMEDOUT: 'no answer',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'no route to host',
  // Of an IPv6 address on a machine without IPv6.
  EADDRNOTAVAIL: 'no route to host',
};

/** A server that is reached with a correct URL, but accepts no further connection. */
const TOO_MANY_CONNECTIONS = ['ER_CON_COUNT_ERROR', 'ER_TOO_MANY_USER_CONNECTIONS', 'ER_USER_LIMIT_REACHED', '53300'];

/** An error for a database or queue that cannot be opened: its URL, the reason and the setting to correct. */
export function unreachable(setting: string, url: URL, error: unknown): StartUpError {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const { code = '' } = first as { code?: string };
  const networkError = NETWORK_ERRORS[code];
  const remedy = TOO_MANY_CONNECTIONS.includes(code)
    ? 'raise the connection limit of the server, or lower the pool size of the processes that use it'
    : networkError
      ? `start it or correct ${setting}`
      : `correct ${setting}`;
  const message = `cannot open ${hidePassword(String(url))}: ${networkError ?? serverMessage(first)}; ${remedy}`;
  return networkError ? new NoAnswer(message) : new StartUpError(message);
}

function serverMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message.split('\n')[0] || (error as { code?: string }).code || error.name;
}

const USER_WITHOUT_PASSWORD = /^[a-z][a-z0-9+.-]*:\/\/[^/:@]*@[^@?]*(\?(?!.*password)[^@]*)?$/i;

/** The URL with its passwords replaced: `scheme://user:***@host`. */
export function hidePassword(url: string): string {
  if (USER_WITHOUT_PASSWORD.test(url)) return url;
  return url
    .replace(/^((?:[a-z][a-z0-9+.-]*:\/\/)?[^/:@]*):[^]*@/i, '$1:***@')
    .replace(/([?&][a-z_]*password=)[^&]*/gi, '$1***');
}

/**
 * Runs `load`, which imports one or more of the packages that a host installs only if it uses them. Their versions are
 * checked here and not by npm, which would refuse to install Usher for a feature that the host does not use.
 * @throws StartUpError that names each package that is missing or has a wrong version, and the command that installs it
 */
export async function loadPackages<T>(
  names: readonly string[],
  load: () => Promise<T>,
  alternative?: string,
): Promise<T> {
  names.filter(isInstalled).forEach(checkVersion);
  try {
    return await load();
  } catch (error) {
    if (!names.some((name) => isMissing(name, error))) throw error;
    const missing = explanation(names.filter((name) => isMissing(name, error) || !isInstalled(name)));
    throw new StartUpError(alternative ? `${missing}, ${alternative}` : missing);
  }
}

/** The same for a single package. */
export const loadPackage = <T>(name: string, load: () => Promise<T>, alternative?: string): Promise<T> =>
  loadPackages([name], load, alternative);

/** Whether `error` says that this very package is missing, not one that the package itself needs. */
function isMissing(name: string, error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  const [, missing = ''] = /^Cannot find module '([^']+)'/.exec(message) ?? [];
  return code === 'MODULE_NOT_FOUND' && (missing === name || missing.startsWith(`${name}/`));
}

function isInstalled(name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch (error) {
    return !isMissing(name, error);
  }
}

function checkVersion(name: string): void {
  const { version } = manifestAbove(dirname(require.resolve(name)), name);
  const range = OPTIONAL_VERSIONS[name];
  if (version === undefined || range === undefined || satisfies(version, range, { includePrerelease: true })) return;
  throw new StartUpError(`the package ${name} ${version} does not work with Usher; run "npm install ${name}@${range}"`);
}

function explanation(missing: string[]): string {
  const packages = missing.length === 1 ? 'the package' : 'the packages';
  const verb = missing.length === 1 ? 'is' : 'are';
  return `${packages} ${missing.join(' and ')} ${verb} not installed; run "npm install ${missing.join(' ')}"`;
}
