/** A fault that prevents a command from starting. Its message says what to do. */
export class StartUpError extends Error {}

/** The errors of a server that cannot be reached. */
const NETWORK_ERRORS: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host not found',
  ETIMEDOUT: 'no answer',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'no route to host',
};

/** An error for a database or queue that cannot be opened: its URL, the reason and the setting to correct. */
export function unreachable(setting: string, url: URL, error: unknown): StartUpError {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const networkError = NETWORK_ERRORS[(first as { code?: string }).code ?? ''];
  const remedy = networkError ? `start it or correct ${setting}` : `correct ${setting}`;
  return new StartUpError(`cannot open ${hidePassword(url.href)}: ${networkError ?? serverMessage(first)}; ${remedy}`);
}

/** The first line of the server's own error message. */
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
    .replace(/([?&][a-z]*password=)[^&]*/gi, '$1***');
}
