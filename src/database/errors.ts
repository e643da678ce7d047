const DEADLOCK_CODES = ['ER_LOCK_DEADLOCK', '40P01', '40001'];
/** Of Postgres: a prepared statement is missing, was prepared by another session, or before its table got another column. */
const NOT_PREPARED_CODES = ['26000', '42P05', '0A000'];

/** Whether the prepared statement cannot be used: a pooler lost it, or a migration changed its table. Nothing was run. */
export const isNotPrepared = (error: unknown): boolean => NOT_PREPARED_CODES.includes(codeOf(error));

/** Whether a deadlock or a missing prepared statement rolled the transaction back, so that it may be repeated. */
export const isRolledBack = (error: unknown): boolean =>
  DEADLOCK_CODES.includes(codeOf(error)) || isNotPrepared(error) || isSavepointLost(error);

/** Whether a deadlock that an application hid has rolled the transaction back, and with it the savepoint. Only on MySQL. */
const isSavepointLost = (error: unknown): boolean =>
  codeOf(error) === 'ER_SP_DOES_NOT_EXIST' && messageOf(error).includes('SAVEPOINT');

/** Whether the error says that a row with this key already exists. */
export const isDuplicate = (error: unknown): boolean => ['ER_DUP_ENTRY', '23505'].includes(codeOf(error));

/** Null where a statement found or changed another number of rows than it must; any other error is thrown again. */
export function nullForOtherCount(error: unknown): null {
  // MySQL reports a key that exists instead of leaving the row out.
  if (['ER_DATA_OUT_OF_RANGE', '22P02'].includes(codeOf(error)) || isDuplicate(error)) return null;
  throw error;
}

/** MySQL's and MariaDB's codes of a server that refuses to write; 25006 is Postgres's. */
const READ_ONLY_CODE = /^(ER_READ_ONLY_MODE|ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION|ER_OPEN_AS_READONLY|25006)$/;

/** Whether the server refuses to write: `read_only` is set, or it was a primary and is a replica now. */
export function isReadOnly(error: unknown): boolean {
  const code = codeOf(error);
  // This code is shared by several options of the server; the message names the option.
  if (code === 'ER_OPTION_PREVENTS_STATEMENT') return /read[-_]only/i.test(messageOf(error));
  return READ_ONLY_CODE.test(code);
}

/** Whether the server refuses to write because its disk is full. */
export const isDiskFull = (error: unknown): boolean =>
  ['ER_RECORD_FILE_FULL', 'ER_DISK_FULL', 'ER_DISK_FULL_NOWAIT', '53100'].includes(codeOf(error));

/** Whether a statement ran into its limit of time. It may have waited for one locked row. */
export const isOutOfTime = (error: unknown): boolean =>
  /^(57014|ER_(QUERY|STATEMENT|LOCK_WAIT)_TIMEOUT)$/.test(codeOf(error));

/** Errors of mysql2, pg and the network. SQLSTATE 08…, 25P03 and 57P0… mean a lost connection, 53300 too many of them. */
const DOWN_CODE =
  /^(E[A-Z]*(CONN|TIMEDOUT|PIPE|HOST|NET|NOTFOUND|ADDRNOTAVAIL)|EAI_AGAIN|PROTOCOL_|POOL_|08|25P03|57P0|53300|ER_CON_COUNT|ER_TOO_MANY_USER_CONNECTIONS|ER_USER_LIMIT_REACHED|ER_SERVER_SHUTDOWN|ER_NORMAL_SHUTDOWN|ER_CONNECTION_KILLED|ER_NET_)/;
const DOWN_MESSAGE =
  /Connection terminated|connection timeout|timeout exceeded when trying to connect|Connection is closed|closed state|not queryable/i;
/** TypeORM releases the runner of a Postgres connection that was lost; its next statement fails with such an error. */
const LOST_CONNECTION = ['QueryRunnerAlreadyReleasedError', 'QueryRunnerProviderAlreadyReleasedError'];

/** Whether the database cannot be used now, or a statement {@link isOutOfTime}: it does not answer, refuses connections or writes. */
export function isDatabaseDown(error: unknown): boolean {
  const { name = '' } = (error ?? {}) as Partial<Error>;
  if (DOWN_CODE.test(codeOf(error)) || LOST_CONNECTION.includes(name)) return true;
  return isOutOfTime(error) || isReadOnly(error) || isDiskFull(error) || DOWN_MESSAGE.test(messageOf(error));
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : '');

/** Empty if the error has no code. */
function codeOf(error: unknown): string {
  const { driverError = error } = (error ?? {}) as { driverError?: unknown };
  const { code, errno } = (driverError ?? {}) as { code?: unknown; errno?: unknown };
  // mysql2 has no name for this error of MariaDB.
  return errno === 1969 ? 'ER_STATEMENT_TIMEOUT' : String(code ?? '');
}
