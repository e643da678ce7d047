/** A fault that keeps a command from starting; its message says what to do. */
export class StartUpError extends Error {}

/** Nobody answers there. */
const SILENCES: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host not found',
  ETIMEDOUT: 'no answer',
  EHOSTUNREACH: 'no route to it',
  ENETUNREACH: 'no route to it',
};

/** One line for a database or queue that cannot be opened: which, why, and which setting to look at. */
export function unreachable(setting: string, url: URL, error: unknown): StartUpError {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const silence = SILENCES[(first as { code?: string }).code ?? ''];
  const remedy = silence ? `start it or correct ${setting}` : `correct ${setting}`;
  return new StartUpError(`cannot open ${hidePassword(url.href)}: ${silence ?? answerOf(first)}; ${remedy}`);
}

/** What the server itself said. */
function answerOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message.split('\n')[0] || (error as { code?: string }).code || error.name;
}

const USER_ALONE = /^[a-z][a-z0-9+.-]*:\/\/[^/:@]*@[^@?]*(\?(?!.*password)[^@]*)?$/i;

/** A URL as it may be shown: `scheme://user:***@host`. */
export function hidePassword(url: string): string {
  if (USER_ALONE.test(url)) return url;
  return url
    .replace(/^((?:[a-z][a-z0-9+.-]*:\/\/)?[^/:@]*):[^]*@/i, '$1:***@')
    .replace(/([?&][a-z]*password=)[^&]*/gi, '$1***');
}
