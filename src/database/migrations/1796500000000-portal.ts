import { type MigrationInterface, type QueryRunner, Table, type TableColumnOptions } from 'typeorm';
import { columnsFor, tablePath } from './column-types.js';

/** The portal of clients, and what is to be mailed to their contacts. */
export class Portal1796500000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const { text, wholeNumber } = columnsFor(runner);
    const [primary, optional] = [{ isPrimary: true }, { isNullable: true }];
    const [clientId, mayChange] = [text('client_id', 255), { name: 'may_change', type: 'boolean' }];
    const [createdAt, expiresAt] = [wholeNumber('created_at'), wholeNumber('expires_at')];
    const create = (name: string, columns: TableColumnOptions[], indexed: string[]): Promise<void> => {
      const indices = indexed.map((column) => ({
        name: `${name}_${column}`,
        columnNames: [column],
        isUnique: column === 'digest',
      }));
      return runner.createTable(new Table({ name: tablePath(runner, name), columns, indices }), true);
    };
    const link = [text('id', 22, primary), clientId, text('digest', 43), mayChange, text('secret_id', 22, optional)];
    const made = [text('created_by', 300), createdAt, expiresAt];
    const opened = [wholeNumber('opened_at', optional), text('opened_from', 255, optional)];
    const linkColumns = [...link, ...made, ...opened, wholeNumber('withdrawn_at', optional)];
    await create('usher_portal_link', linkColumns, ['client_id', 'digest', 'expires_at']);
    const session = [text('digest', 43, primary), clientId, text('link_id', 22), mayChange, createdAt, expiresAt];
    await create('usher_portal_session', session, ['client_id', 'expires_at']);
    const notice = [text('id', 22, primary), clientId, text('kind', 16), text('contact', 254, optional)];
    const noticeColumns = [...notice, createdAt, wholeNumber('not_before')];
    await create('usher_contact_notice', noticeColumns, ['created_at', 'not_before']);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of ['contact_notice', 'portal_session', 'portal_link'])
      await runner.dropTable(tablePath(runner, `usher_${name}`));
  }
}
