import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, Equal, In, Like, Or } from 'typeorm';
import { type AuditAction, AuditEvent } from '../../../audit/audit-event.entity.js';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { boundedSearch } from '../../../database/statements/bounded-search.js';
import { runSql } from '../../../database/statements/statement.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../usher.options.js';
import { Member } from '../../../members/member.entity.js';
import { firstIdAt, ID } from '../../../values/identifier.js';
import { clientNames } from '../../../webhooks/search/webhook-list.js';
import { compared } from '../../../webhooks/undelivered/webhook-ids.js';
import type { Filter } from '../../../http/pages/fields.js';
import type { Found, Part } from '../../../http/pages/list.js';

/** An event with the names of clients and members, by how events name them: `client:ID`, `member:ID`, `owner:ID`. */
export type ListedEvent = AuditEvent & { names: ReadonlyMap<string, string> };

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

  /** The ids of the events that match all criteria; null matches any. `after`: only events older than this id are found. */
  async find(
    { since = null, until = null, actor, action, subject }: Partial<Filter<AuditCriteria>['values']>,
    { after, most }: Omit<Part, 'order'>,
  ): Promise<Found<string>> {
    const { manager } = this.dataSource;
    const [from, end] = [since, until].map((ms) => firstIdAt(this.options.environment, ms));
    const index = dialectOf(manager).byIndex(subject ? 'usher_audit_event_subject' : 'PRIMARY');
    const source = async (before: string | null, count: number) => {
      const { rows } = await runSql(manager, (parameter) => {
        // Every id is greater than an empty text.
        const conditions = compared({ 'subject =': subject, 'id <': before, 'id >=': from ?? '' }, parameter);
        return `
          SELECT id FROM ${tableOf(manager, AuditEvent)} ${index} WHERE ${conditions.join(' AND ')}
          ORDER BY id DESC LIMIT ${count}`;
      });
      return rows.map(({ id }) => String(id));
    };
    const conditions = { ...(actor && { actor: actorCondition(actor) }), ...(action && { action }) };
    const fitting = async (ids: string[]) => {
      const where = { id: In(ids), ...conditions };
      const found = await manager.find(AuditEvent, { select: { id: true }, where, order: { id: 'DESC' } });
      return found.map(({ id }) => id);
    };
    const [before = null] = [ID.test(after ?? '') && after, end].filter((id) => typeof id === 'string').sort();
    const { ids, ...rest } = await boundedSearch({ source, fitting: actor || action ? fitting : null, before, most });
    return { rows: ids, ...rest };
  }

  /** The events with the ids that were found, the newest first. */
  async events({ rows: ids, ...rest }: Found<string>): Promise<Found<ListedEvent>> {
    const { manager } = this.dataSource;
    const events = await manager.find(AuditEvent, { where: { id: In(ids) }, order: { id: 'DESC' } });
    const named = events
      .flatMap(({ actor, subject, detail }) => [actor, subject ?? '', `client:${String(detail.client)}`])
      .map(kindAndId);
    const idsOf = (...kinds: string[]) => named.flatMap(([kind, id]) => (kinds.includes(kind) ? id : []));
    const [clients, members] = await Promise.all([
      clientNames(manager, idsOf('client')),
      manager.find(Member, { select: { id: true, name: true }, where: { id: In(idsOf('member', 'owner')) } }),
    ]);
    const names = new Map<string, string>();
    for (const [id, name] of clients) names.set(`client:${id}`, name);
    for (const { id, name } of members) names.set(`member:${id}`, name).set(`owner:${id}`, name);
    return { rows: events.map((event) => ({ ...event, names })), ...rest };
  }
}

/** A kind alone means all actors of this kind. */
const actorCondition = (actor: string) =>
  /^[a-z-]+$/.test(actor) ? Or(Equal(actor), Like(`${actor}:%`)) : Equal(actor);

/** The kind and the id in an actor or a subject. The id may contain a colon itself. */
export function kindAndId(text: string) {
  const [kind = '', id = ''] = text.split(/:(.*)/s);
  return [kind, id] as const;
}
