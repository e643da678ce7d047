import { hash } from 'node:crypto';
import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import type { Connection, Pool as MysqlPool, PoolConnection, ResultSetHeader, RowDataPacket } from 'mysql2';
import type { Pool as PgPool, QueryResult } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { isPostgres } from '../data-source.js';
import type { Parameter } from '../rows.js';
import { ownDrivers } from '../sql.js';

/** A row as the driver returns it. 64-bit integers may be text. */
export type Row = Record<string, string | number | boolean | null>;

export interface StatementResult {
  rows: Row[];
  /** Rows that an INSERT, UPDATE or DELETE wrote. */
  affected: number;
}

export interface Statement {
  write: WriteSql;
  /** If its text is always the same: without a list, Postgres then parses it once for each connection of Usher's own. */
  name?: string | undefined;
  /** How many rows it must find or change. Otherwise it fails with {@link nullForOtherCount}, and so does its transaction. */
  rows?: { found: number } | { changed: number };
  /** The columns of the changed rows that it returns. Only on Postgres. */
  returning?: string;
}

/** Writes the SQL of a statement, once for each time that it is sent. */
export type WriteSql = (parameter: Parameter) => string;

/** A statement as the driver gets it. */
export interface WrittenStatement extends Pick<Statement, 'name'> {
  /** With `?` on MySQL and `$1` on Postgres. */
  text: string;
  parameters: unknown[];
}

/** A sole statement stays as it is. */
export const joined = (statements: WrittenStatement[]): WrittenStatement =>
  statements.reduce((whole, { text, parameters }) => ({
    text: `${whole.text}; ${text}`,
    parameters: [...whole.parameters, ...parameters],
  }));

/**
 * Statements as one of Postgres, which fails unless each finds or changes as many rows as it must. It returns the rows of the
 * first one; the others can read them as `s1`. None sees what another one writes.
 */
export function combined(statements: Statement[]): Statement {
  const write: WriteSql = (parameter) => {
    const parts = statements.map(({ rows, returning = '1', ...one }, index) => {
      const end = rows && 'changed' in rows ? `RETURNING ${returning}` : '';
      return `s${index + 1} AS (${one.write(parameter)} ${end})`;
    });
    const checks = statements.flatMap(({ rows = {} }, index) =>
      Object.values(rows).map((count) => `(SELECT ${checkedCount(parameter(count))} FROM s${index + 1})`),
    );
    return `WITH ${parts.join(', ')} SELECT * FROM (SELECT ${checks.join(', ')}) checks LEFT JOIN s1 ON true`;
  };
  return { write, name: statements.every(({ name }) => name) ? statements[0]?.name : undefined };
}

/** With another count the statement fails, because the text is not a number. The error shows the text. */
const checkedCount = (count: string): string =>
  `CASE count(*) WHEN ${count} THEN 1 ELSE CAST(count(*) || ' rows' AS int) END`;

/** Runs statements in their order, on the connection of the transaction or one of the pool. */
export async function runOnDriver(
  on: DataSource | EntityManager,
  dataSource: DataSource,
  statements: WrittenStatement[],
  isPrepared: boolean,
): Promise<StatementResult[]> {
  const { queryRunner } = on as Partial<EntityManager>;
  const isOwn = ownDrivers.has(dataSource.driver);
  const run = isPostgres(dataSource) ? runOnPostgres : runOnMysql;
  // An older pool of pg does not call back after a query that sends itself.
  if (isOwn && !queryRunner && isPostgres(dataSource))
    return onConnection(dataSource, (connection) => run(connection as never, statements, isPrepared));
  // The connection of the transaction, or the pool.
  const runner = queryRunner ? await queryRunner.connect() : poolOf(dataSource);
  return isOwn ? run(runner as never, statements, isPrepared) : oneByOne(dataSource, runner, statements);
}

/**
 * Runs a transaction on a connection of the pool. If it fails, it is rolled back before this rejects, because what follows may
 * need its locks. `hasBegun`: whether START TRANSACTION was sent, which a sole statement does not need.
 */
export async function onConnection<T>(
  dataSource: DataSource,
  work: (connection: object) => Promise<T>,
  hasBegun = () => false,
): Promise<T> {
  const pool = poolOf(dataSource);
  const connection =
    'getConnection' in pool ? await promisify<PoolConnection>(pool.getConnection.bind(pool))() : await pool.connect();
  let isBroken = false;
  try {
    return await work(connection);
  } catch (error) {
    await rollback(dataSource, connection, hasBegun()).catch(() => (isBroken = true));
    throw error;
  } finally {
    if (isBroken && 'destroy' in connection) connection.destroy();
    else connection.release(isBroken);
  }
}

function rollback(dataSource: DataSource, connection: object, hasBegun: boolean): Promise<unknown> {
  const statement = { text: 'ROLLBACK', parameters: [] };
  if (!isPostgres(dataSource)) return runOnMysql(connection as never, [statement]);
  // Postgres rolls back a sole statement by itself. It reports the error before it releases the locks, and answers an empty
  // statement afterwards.
  return runOnPostgres(connection as never, [hasBegun ? statement : { ...statement, text: '' }], false);
}

/** On the driver of an application, which may refuse several statements in one text. */
async function oneByOne(source: DataSource, runner: object, all: WrittenStatement[]): Promise<StatementResult[]> {
  const run = isPostgres(source) ? runOnForeignPostgres : runOnMysql;
  const results: StatementResult[] = [];
  for (const statement of all) results.push(...(await run(runner as never, [statement])));
  return results;
}

/** Sends the statements together, and is answered once, behind the last one. If one fails, Postgres runs none of those after it. */
async function runOnPostgres(
  client: PgClient,
  statements: WrittenStatement[],
  isPrepared: boolean,
): Promise<StatementResult[]> {
  const { Query } = client.constructor;
  const whole = new Query('');
  let forgetAdded = (): void => undefined;
  whole.submit = (connection) => {
    const queries = statements.map(({ text, parameters, name }) => {
      // A prepared statement may keep a plan that scans the table, made for a list of another length in a smaller table.
      const hasPlan = isPrepared && !parameters.some(Array.isArray);
      return Object.assign(new Query(text, parameters), { name: hasPlan ? nameOf(text, name) : '' });
    });
    forgetAdded = sendTogether(connection, queries);
  };
  return new Promise((resolve, reject) => {
    client.query(whole, (error, results) => {
      if (!error) return resolve([results].flat().map(resultOf));
      forgetAdded();
      reject(error);
    });
  });
}

/** Sends them with one Sync. Returns what to call after an error, because it is then unknown which of them were prepared. */
function sendTogether(connection: PgConnection, queries: PgQuery[]): () => void {
  const session = sessionOf(connection);
  const { parsedStatements: prepared } = session;
  const added = queries.filter(({ name }) => name !== '' && prepared[name] === undefined);
  connection.stream.cork();
  for (const query of queries) {
    query.prepare(session);
    prepared[query.name] = query.text;
  }
  connection.sync();
  connection.stream.uncork();
  return () => {
    for (const { name } of added) prepared[name] = undefined;
    if (connection.stream.writable) for (const { name } of added) connection.close({ type: 'S', name });
  };
}

const resultOf = ({ rows, rowCount }: QueryResult<Row>): StatementResult => ({ rows, affected: rowCount ?? 0 });

/** An application's driver may be pg-native, whose queries cannot be sent together. */
async function runOnForeignPostgres(runner: PgPool, [statement]: [WrittenStatement]): Promise<StatementResult[]> {
  return [resultOf(await runner.query<Row>(statement.text, statement.parameters))];
}

/** A client, a query and a connection of pg, with what its types leave out. The nightly stage `floors` runs them on the lowest version. */
interface PgClient {
  constructor: { Query: new (text: string, parameters?: unknown[]) => PgQuery };
  query(query: PgQuery, callback: (error: Error | null, results: QueryResult<Row> | QueryResult<Row>[]) => void): void;
}
interface PgQuery {
  name: string;
  text: string;
  submit: (connection: PgConnection) => void;
  /** Sends what prepares and runs it. */
  prepare(connection: PgConnection): void;
}
interface PgConnection {
  stream: Socket;
  /** Their texts by their names. */
  parsedStatements: Record<string, string | undefined>;
  close(statement: { type: 'S'; name: string }): void;
  sync(): void;
}

const sessions = new WeakMap<PgConnection, PgConnection>();

/** The connection for queries that share one Sync: their own does nothing. It keeps the statements that they have prepared. */
function sessionOf(connection: PgConnection): PgConnection {
  let session = sessions.get(connection);
  if (!session) {
    const prepared = {};
    const own = { parsedStatements: prepared, submittedNamedStatements: prepared, sync: () => undefined };
    session = Object.assign(Object.create(connection) as PgConnection, own);
    sessions.set(connection, session);
  }
  return session;
}

const names = new Map<string, string>();

/** With a digest of the text: behind a pooler another version of Usher may have prepared another text in the same session. */
function nameOf(text: string, name = ''): string {
  if (name && !names.has(text)) names.set(text, `${name}_${hash('sha256', text).slice(0, 16)}`);
  return names.get(text) ?? '';
}

type MysqlResult = (Row & RowDataPacket)[] | ResultSetHeader;

function runOnMysql(runner: MysqlPool | Connection, statements: WrittenStatement[]): Promise<StatementResult[]> {
  const { text, parameters } = joined(statements);
  return new Promise((resolve, reject) => {
    runner.query<MysqlResult & RowDataPacket[]>(text, parameters, (error, result) => {
      if (error) return reject(error);
      const results = (statements.length === 1 ? [result] : result) as MysqlResult[];
      resolve(
        results.map((one) =>
          Array.isArray(one) ? { rows: one, affected: 0 } : { rows: [], affected: one.affectedRows },
        ),
      );
    });
  });
}

/** The pool of connections to the primary. */
function poolOf({ driver }: DataSource): PgPool | MysqlPool {
  const { master, pool, poolCluster } = driver as {
    master?: PgPool;
    pool?: MysqlPool;
    poolCluster?: { of(pattern: string): MysqlPool };
  };
  const found = master ?? pool ?? poolCluster?.of('MASTER');
  if (!found) throw new Error('the data source is closed');
  return found;
}
