import { hash } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Pool as MysqlPool, ResultSetHeader, RowDataPacket } from 'mysql2';
import type { Pool as PgPool } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { isPostgres } from '../data-source.js';
import { allEnded, ownDrivers } from '../sql.js';

/** A row as the driver returns it. 64-bit integers may be text. */
export type Row = Record<string, string | number | boolean | null>;

export interface StatementResult {
  rows: Row[];
  /** Rows that an INSERT, UPDATE or DELETE wrote. */
  affected: number;
}

export interface Statement {
  /** With `?` on MySQL and `$1` on Postgres. */
  text: string;
  parameters: unknown[];
  /** If its text is always the same: without a list, Postgres then parses it once for each connection of Usher's own. */
  name?: string | undefined;
  /** How many rows it must find or change. Otherwise it fails with {@link nullForOtherCount}, and so does its transaction. */
  rows?: { found: number } | { changed: number };
  /** The columns of the changed rows that it returns. Only on Postgres. */
  returning?: string;
}

/** A sole statement stays as it is. */
export const joined = (statements: Statement[]): Statement =>
  statements.reduce((whole, { text, parameters }) => ({
    text: `${whole.text}; ${text}`,
    parameters: [...whole.parameters, ...parameters],
  }));

/**
 * Statements as one of Postgres, which fails unless each finds or changes as many rows as it must. It returns the rows of the
 * first one; the others can read them as `s1`. None sees what another one writes.
 */
export function combined(statements: Statement[]): Statement {
  const parameters: unknown[] = [];
  const parts = statements.map(({ text, rows, returning = '1', ...own }, index) => {
    const before = parameters.length;
    parameters.push(...own.parameters);
    const moved = before === 0 ? text : text.replace(/\$(\d+)/g, (_, position) => `$${before + Number(position)}`);
    return `s${index + 1} AS (${moved} ${rows && 'changed' in rows ? `RETURNING ${returning}` : ''})`;
  });
  const checks = statements.flatMap(({ rows }, index) => {
    const count = rows && `$${parameters.push(...Object.values(rows))}`;
    return count ? `(SELECT ${checkedCount(count)} FROM s${index + 1})` : [];
  });
  return {
    text: `WITH ${parts.join(', ')} SELECT * FROM (SELECT ${checks.join(', ')}) checks LEFT JOIN s1 ON true`,
    parameters,
    name: statements.every(({ name }) => name) ? statements[0]?.name : undefined,
  };
}

/** With another count the statement fails, because the text is not a number. The error shows the text. */
const checkedCount = (count: string): string =>
  `CASE count(*) WHEN ${count} THEN 1 ELSE CAST(count(*) || ' rows' AS int) END`;

/** Runs statements in their order, on the connection of the transaction or one of the pool. */
export async function runOnDriver(
  on: DataSource | EntityManager,
  dataSource: DataSource,
  statements: Statement[],
  isPrepared: boolean,
): Promise<StatementResult[]> {
  // The connection of the transaction, or the pool.
  const { queryRunner } = on as Partial<EntityManager>;
  const runner = queryRunner ? await queryRunner.connect() : poolOf(dataSource);
  if (!runner) throw new Error('the data source is closed');
  const run = isPostgres(dataSource) ? runOnPostgres : runOnMysql;
  if (ownDrivers.has(dataSource.driver)) return run(runner as never, statements, isPrepared);
  return oneByOne(statements, (statement) => run(runner as never, [statement], false));
}

async function oneByOne(
  statements: Statement[],
  run: (statement: Statement) => Promise<StatementResult[]>,
): Promise<StatementResult[]> {
  const results: StatementResult[] = [];
  for (const statement of statements) results.push(...(await run(statement)));
  return results;
}

/** The driver sends them without waiting for the answers, and the socket by one write. */
function runOnPostgres(
  runner: PgPool & { connection?: { stream: Socket } },
  statements: Statement[],
  isPrepared: boolean,
): Promise<StatementResult[]> {
  const stream = runner.connection?.stream;
  stream?.cork();
  const results = statements.map(async ({ text, parameters: values, name }) => {
    // A prepared statement may keep a plan that scans the table, made for a list of another length in a smaller table.
    const hasPlan = isPrepared && !values.some(Array.isArray);
    const { rows, rowCount } = await runner.query<Row>({ text, values, name: hasPlan ? nameOf(text, name) : '' });
    return { rows, affected: rowCount ?? 0 };
  });
  stream?.uncork();
  return allEnded(results);
}

const names = new Map<string, string>();

/** With a digest of the text: behind a pooler another version of Usher may have prepared another text in the same session. */
function nameOf(text: string, name = ''): string {
  if (name && !names.has(text)) names.set(text, `${name}_${hash('sha256', text).slice(0, 16)}`);
  return names.get(text) ?? '';
}

type MysqlResult = (Row & RowDataPacket)[] | ResultSetHeader;

function runOnMysql(runner: MysqlPool, statements: Statement[]): Promise<StatementResult[]> {
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
function poolOf({ driver }: DataSource): object | undefined {
  const { master, pool, poolCluster } = driver as {
    master?: object;
    pool?: object;
    poolCluster?: { of(pattern: string): object };
  };
  return master ?? pool ?? poolCluster?.of('MASTER');
}
