import type { DataSource, Logger } from 'typeorm';
import { SILENT } from '../../src/database/data-source.js';

export interface Statement {
  sql: string;
  parameters: unknown[];
}

/** A logger that does what `methods` do, and ignores the rest. */
export const loggerOf = (methods: Partial<Logger>): Logger => ({ ...SILENT, ...methods });

/** Every statement of a data source from now on, as the driver gets it: one for each wait for the database. */
export function statementsFromNowOn(dataSource: DataSource): string[] {
  const statements: string[] = [];
  dataSource.logger = loggerOf({ logQuery: (sql) => void statements.push(sql) });
  return statements;
}

/** The statements of a data source while `work` runs. */
export async function statementsOf(dataSource: DataSource, work: () => Promise<unknown>): Promise<Statement[]> {
  const { logger } = dataSource;
  const statements: Statement[] = [];
  dataSource.logger = loggerOf({
    logQuery: (sql, parameters) => void statements.push({ sql, parameters: (parameters ?? []) as unknown[] }),
  });
  await work().finally(() => (dataSource.logger = logger));
  return statements;
}
