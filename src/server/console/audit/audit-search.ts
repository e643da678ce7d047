import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, Equal, type FindOperator, In, Like, Or } from 'typeorm';
import { type AuditAction, AuditEvent } from '../../../audit/audit-event.entity.js';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { boundedSearch, type FoundIds } from '../../../database/statements/bounded-search.js';
import { runSql } from '../../../database/statements/statement.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../usher.options.js';
import { Member } from '../../../members/member.entity.js';
import { firstIdAt } from '../../../values/identifier.js';
import { clientNames } from '../../../webhooks/search/webhook-list.js';
import type { Filter } from '../../../http/pages/fields.js';

/** The names of clients and members, by how events name them: `client:ID`, `member:ID`, `owner:ID`. */
export type Names = ReadonlyMap<string, string>;

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
    const source = async (last: string | null, count: number): Promise<string[]> => {
      const { rows } = await runSql(this.dataSource, (parameter) => {
        const conditions = [
          subject && `subject = ${parameter(subject)}`,
          last && `id < ${parameter(last)}`,
          from && `id >= ${parameter(from)}`,
        ].filter((condition) => condition !== null);
        const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
        return `SELECT id FROM ${tableOf(this.dataSource, AuditEvent)} ${index} ${where} ORDER BY id DESC LIMIT ${count}`;
      });
      return rows.map(({ id }) => String(id));
    };
    const { manager } = this.dataSource;
    const conditions = { ...(actor !== null && { actor: actorCondition(actor) }), ...(action !== null && { action }) };
    const fitting = async (ids: string[]): Promise<string[]> => {
      const where = { id: In(ids), ...conditions };
      const found = await manager.find(AuditEvent, { select: { id: true }, where, order: { id: 'DESC' } });
      return found.map(({ id }) => id);
    };
    const { ids, ...rest } = await boundedSearch({
      source,
      fitting: actor === null && action === null ? null : fitting,
      before: end !== null && (before === null || before >= end) ? end : before,
      most,
    });
    const events = await manager.find(AuditEvent, { where: { id: In(ids) }, order: { id: 'DESC' } });
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
    const names = new Map<string, string>();
    for (const [id, name] of clients) names.set(`client:${id}`, name);
    for (const { id, name } of members) names.set(`member:${id}`, name).set(`owner:${id}`, name);
    return names;
  }
}

/** A kind alone means all actors of this kind. */
const actorCondition = (actor: string): FindOperator<string> =>
  /^[a-z-]+$/.test(actor) ? Or(Equal(actor), Like(`${actor}:%`)) : Equal(actor);

/** The ids of clients and members that events name. */
function namedIds(events: AuditEvent[]): { clients: string[]; members: string[] } {
  const named = events.flatMap(({ actor, subject, detail }) => [
    actor,
    subject ?? '',
    `client:${String(detail.client)}`,
  ]);
  const of = (...kinds: string[]): string[] => {
    const ids = named.map(kindAndId).flatMap(([kind, id]) => (kinds.includes(kind) ? [id] : []));
    return [...new Set(ids)];
  };
  return { clients: of('client'), members: of('member', 'owner') };
}

/** The kind and the id in an actor or a subject. The id may contain a colon itself. */
export function kindAndId(text: string): [kind: string, id: string] {
  const [kind = '', id = ''] = text.split(/:(.*)/s);
  return [kind, id];
}
