import { type MigrationInterface, type QueryRunner, Table } from 'typeorm';
import { columnsFor, tablePath } from './column-types.js';

/** The portal of clients, and what is to be mailed to their contacts. */
export class Portal1796500000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    const { text, wholeNumber } = columnsFor(runner);
    const [primary, optional] = [{ isPrimary: true }, { isNullable: true }];
    const mayChange = { name: 'may_change', type: 'boolean' };
    const tables = {
      usher_portal_link: {
        columns: [
          text('id', 22, primary),
          text('client_id', 255),
          text('digest', 43),
          mayChange,
          text('secret_id', 22, optional),
          text('created_by', 300),
          wholeNumber('created_at'),
          wholeNumber('expires_at'),
          wholeNumber('opened_at', optional),
          text('opened_from', 255, optional),
          wholeNumber('withdrawn_at', optional),
        ],
        indices: [
          { name: 'usher_portal_link_client', columnNames: ['client_id'] },
          { name: 'usher_portal_link_digest', columnNames: ['digest'], isUnique: true },
          { name: 'usher_portal_link_expiry', columnNames: ['expires_at'] },
        ],
      },
      usher_portal_session: {
        columns: [
          text('digest', 43, primary),
          text('client_id', 255),
          text('link_id', 22),
          mayChange,
          wholeNumber('created_at'),
          wholeNumber('expires_at'),
        ],
        indices: [
          { name: 'usher_portal_session_client', columnNames: ['client_id'] },
          { name: 'usher_portal_session_expiry', columnNames: ['expires_at'] },
        ],
      },
      usher_contact_notice: {
        columns: [
          text('id', 22, primary),
          text('client_id', 255),
          text('kind', 16),
          text('contact', 254, optional),
          wholeNumber('created_at'),
          wholeNumber('not_before'),
        ],
        indices: [
          { name: 'usher_contact_notice_due', columnNames: ['not_before'] },
          { name: 'usher_contact_notice_created', columnNames: ['created_at'] },
        ],
      },
    };
    for (const [name, table] of Object.entries(tables))
      await runner.createTable(new Table({ name: tablePath(runner, name), ...table }), true);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of ['usher_contact_notice', 'usher_portal_session', 'usher_portal_link'])
      await runner.dropTable(tablePath(runner, name));
  }
}
