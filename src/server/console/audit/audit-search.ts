import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, In } from 'typeorm';
import { type AuditAction, AuditEvent } from '../../../audit/audit-event.entity.js';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { boundedSearch, type FoundIds } from '../../../database/statements/bounded-search.js';
import { runSql } from '../../../database/statements/statement.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../usher.options.js';
import { Member } from '../../../members/member.entity.js';
import { firstIdAt } from '../../../values/identifier.js';
import { clientNames } from '../../../webhooks/search/webhook-list.js';
import type { Filter } from '../frame/fields.js';
import { namedIds, type Names } from './audit-words.js';

/** What events are searched for. */
export interface AuditCriteria {
  /** An actor like `operator:ops`, or a kind of actors like `operator`. */
  actor: string;
  action: AuditAction;
  subject: string;
  /** In milliseconds since 1970. */
  since: number;
  until: number;
}

type Parameter = (value: unknown) => string;

/** Finds audit events, the newest first: by subject with its index, otherwise along the ids, which sort by time. */
@Injectable()
export class AuditSearch {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Those that fit all criteria. Null is any. */
  async page(
    { since, until, actor, action, subject }: Filter<AuditCriteria>['values'],
    before: string | null,
    most: number,
  ): Promise<Omit<FoundIds, 'ids'> & { events: AuditEvent[] }> {
    const idAt = (ms: number | null) => (ms === null ? null : firstIdAt(this.options.environment, ms));
    const [from, end] = [idAt(since), idAt(until)];
    const index = dialectOf(this.dataSource).byIndex(subject === null ? 'PRIMARY' : 'usher_audit_event_subject');
    const inFrontOf = (last: string | null, count: number): Promise<string[]> =>
      this.select(
        (parameter) => [
          subject && `subject = ${parameter(subject)}`,
          last && `id < ${parameter(last)}`,
          from && `id >= ${parameter(from)}`,
        ],
        index,
        `LIMIT ${count}`,
      );
    const fitting = async (ids: string[]): Promise<string[]> =>
      ids.length === 0
        ? []
        : this.select((parameter) => [
            `id IN (${ids.map(parameter).join(', ')})`,
            actor && actorCondition(actor, parameter),
            action && `action = ${parameter(action)}`,
          ]);
    const { ids, ...rest } = await boundedSearch({
      source: inFrontOf,
      fitting: actor === null && action === null ? null : fitting,
      before: end !== null && (before === null || before >= end) ? end : before,
      most,
    });
    const { manager } = this.dataSource;
    const events =
      ids.length === 0 ? [] : await manager.find(AuditEvent, { where: { id: In(ids) }, order: { id: 'DESC' } });
    return { events, ...rest };
  }

  /** The names of the clients and members that events tell of. */
  async names(events: AuditEvent[]): Promise<Names> {
    const { manager } = this.dataSource;
    const ids = namedIds(events);
    const [clients, members] = await Promise.all([
      clientNames(manager, ids.clients),
      manager.find(Member, { select: { id: true, name: true }, where: { id: In(ids.members) } }),
    ]);
    return { clients, members: new Map(members.map(({ id, name }) => [id, name])) };
  }

  private async select(
    conditionsOf: (parameter: Parameter) => (string | null)[],
    index = '',
    limit = '',
  ): Promise<string[]> {
    const { rows } = await runSql(this.dataSource, (parameter) => {
      const conditions = conditionsOf(parameter).filter((condition) => condition !== null);
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
      return `SELECT id FROM ${tableOf(this.dataSource, AuditEvent)} ${index} ${where} ORDER BY id DESC ${limit}`;
    });
    return rows.map(({ id }) => String(id));
  }
}

/** A kind alone means all actors of this kind. */
function actorCondition(actor: string, parameter: Parameter): string {
  if (!/^[a-z-]+$/.test(actor)) return `actor = ${parameter(actor)}`;
  return `(actor = ${parameter(actor)} OR actor LIKE ${parameter(`${actor}:%`)})`;
}
