import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { digestToken } from '../../../auth/tokens/token.js';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { databaseNow } from '../../../database/sql.js';
import { insertIfAbsent } from '../../../database/statements/statement.js';
import { FORM_AGE_MS } from '../../../http/pages/form.js';
import type { SentForms } from '../../../http/pages/site.js';
import { UsedForm } from '../../../operators/operator.entity.js';

/** The forms that were sent, shared by all processes. */
@Injectable()
export class UsedForms implements SentForms {
  constructor(@Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource) {}

  async use(form: string): Promise<boolean> {
    const { manager } = this.dataSource;
    const expiresAt = (await databaseNow(manager)) + FORM_AGE_MS;
    return insertIfAbsent(manager, UsedForm, { digest: digestToken(form), expiresAt });
  }

  release(form: string): Promise<unknown> {
    return this.dataSource.manager.delete(UsedForm, { digest: digestToken(form) });
  }
}
