import type { DataSource, Logger } from 'typeorm';

const SILENT: Logger = {
  logQuery: () => undefined,
  logQueryError: () => undefined,
  logQuerySlow: () => undefined,
  logSchemaBuild: () => undefined,
  logMigration: () => undefined,
  log: () => undefined,
};

export interface Recorded {
  sql: string;
  parameters: unknown[];
}

/** The statements of a data source while `work` runs. */
export async function recordStatements(dataSource: DataSource, work: () => Promise<unknown>): Promise<Recorded[]> {
  const { logger } = dataSource;
  const statements: Recorded[] = [];
  dataSource.logger = {
    ...SILENT,
    logQuery: (sql, parameters) => void statements.push({ sql, parameters: (parameters ?? []) as unknown[] }),
  };
  await work().finally(() => (dataSource.logger = logger));
  return statements;
}
