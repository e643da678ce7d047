import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, In } from 'typeorm';
import { type AuditAction, AuditEvent } from '../../../audit/audit-event.entity.js';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { boundedSearch } from '../../../database/statements/bounded-search.js';
import { runStatement, statementFor } from '../../../database/statements/statement.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../usher.options.js';
import { firstIdAt } from '../../../values/identifier.js';

/** Which events: those that fit all fields. Null is any. Times in milliseconds since 1970. */
export interface AuditCriteria {
  /** An actor like `operator:ops`, or a kind of actors like `operator`. */
  actor: string | null;
  action: AuditAction | null;
  subject: string | null;
  since: number | null;
  until: number | null;
}

export interface AuditPage {
  events: AuditEvent[];
  next: string | null;
  isCut: boolean;
}

type Parameter = (value: unknown) => string;

/** Finds audit events, the newest first: by subject with its index, otherwise along the ids, which sort by time. */
@Injectable()
export class AuditSearch {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  async page(criteria: AuditCriteria, before: string | null, most: number): Promise<AuditPage> {
    const { since, until, actor, action } = criteria;
    const idAt = (ms: number | null) => (ms === null ? null : firstIdAt(this.options.environment, ms));
    const [from, end] = [idAt(since), idAt(until)];
    const start = end === null || (before !== null && before < end) ? before : end;
    const { ids, ...rest } = await boundedSearch({
      source: (last, count) => this.ids(criteria.subject, { before: last, from, count }),
      fitting: actor === null && action === null ? null : (ids) => this.fitting(ids, criteria),
      before: start,
      most,
    });
    const { manager } = this.dataSource;
    const events =
      ids.length === 0 ? [] : await manager.find(AuditEvent, { where: { id: In(ids) }, order: { id: 'DESC' } });
    return { events, ...rest };
  }

  private ids(
    subject: string | null,
    { before, from, count }: { before: string | null; from: string | null; count: number },
  ): Promise<string[]> {
    return this.select((parameter) => {
      const conditions = [
        ...(subject === null ? [] : [`subject = ${parameter(subject)}`]),
        ...(before === null ? [] : [`id < ${parameter(before)}`]),
        ...(from === null ? [] : [`id >= ${parameter(from)}`]),
      ];
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
      const index = subject === null ? 'PRIMARY' : 'usher_audit_event_subject';
      return `${dialectOf(this.dataSource).byIndex(index)} ${where} ORDER BY id DESC LIMIT ${count}`;
    });
  }

  private async fitting(ids: string[], { actor, action }: AuditCriteria): Promise<string[]> {
    if (ids.length === 0) return [];
    return this.select((parameter) => {
      const conditions = [
        `id IN (${ids.map(parameter).join(', ')})`,
        ...(actor === null ? [] : [actorCondition(actor, parameter)]),
        ...(action === null ? [] : [`action = ${parameter(action)}`]),
      ];
      return `WHERE ${conditions.join(' AND ')} ORDER BY id DESC`;
    });
  }

  private async select(write: (parameter: Parameter) => string): Promise<string[]> {
    const statement = statementFor(
      this.dataSource,
      (parameter) => `SELECT id FROM ${tableOf(this.dataSource, AuditEvent)} ${write(parameter)}`,
    );
    return (await runStatement(this.dataSource, statement)).rows.map(({ id }) => String(id));
  }
}

/** A kind alone means all actors of this kind. */
function actorCondition(actor: string, parameter: Parameter): string {
  if (!/^[a-z-]+$/.test(actor)) return `actor = ${parameter(actor)}`;
  return `(actor = ${parameter(actor)} OR actor LIKE ${parameter(`${actor}:%`)})`;
}
