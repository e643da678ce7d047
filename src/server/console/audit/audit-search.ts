import { type DataSource, type EntityManager, In } from 'typeorm';
import { type AuditAction, AuditEvent } from '../../../audit/audit-event.entity.js';
import { Client } from '../../../clients/client.entity.js';
import { dialectOf, tableOf } from '../../../database/data-source.js';
import { boundedSearch, MAX_EXAMINED } from '../../../database/statements/bounded-search.js';
import { type Parameter, runSql, type WriteSql } from '../../../database/statements/statement.js';
import type { ResolvedOptions } from '../../../usher.options.js';
import { Member } from '../../../members/member.entity.js';
import { firstIdAt, ID } from '../../../values/identifier.js';
import { namesOf } from '../../../database/statements/names.js';
import { compared } from '../../../webhooks/undelivered/webhook-ids.js';
import { isSearchable } from '../../../http/pages/fields.js';
import type { Part } from '../../../http/pages/list.js';

/** An event with the names of clients and members, by how events name them: `client:ID`, `member:ID`, `owner:ID`. */
export type ListedEvent = AuditEvent & { names: ReadonlyMap<string, string> };

/** Null matches any. */
export interface AuditCriteria {
  /** An actor like `operator:ops`, or a kind of actors like `operator`. */
  actor?: string | null;
  action?: AuditAction | null;
  subject?: string | null;
  /** In milliseconds since 1970. */
  since?: number | null;
  until?: number | null;
}

/** Finds audit events, the newest first: by subject with its index, otherwise along the ids, which sort by time. */
export function auditSearch(dataSource: DataSource, { environment }: ResolvedOptions) {
  const { manager } = dataSource;
  const { byIndex, isOneOf } = dialectOf(dataSource);
  const table = tableOf(dataSource, AuditEvent);

  const idsOf = async (write: WriteSql) => (await runSql(dataSource, write)).rows.map(({ id }) => String(id));

  /** By the index of the subject, otherwise by the ids, the newest first. */
  function select(
    { since = null, until = null, subject }: AuditCriteria,
    before: string | null,
    count: number,
    parameter: Parameter,
    columns = 'id',
  ) {
    const [from, end] = [since, until].map((ms) => firstIdAt(environment, ms));
    const [first] = [before, end].filter((id) => typeof id === 'string').sort();
    // Every id is greater than an empty text.
    const conditions = compared({ 'subject =': subject, 'id <': first, 'id >=': from ?? '' }, parameter);
    return `
      SELECT ${columns} FROM ${table} ${byIndex(subject ? 'usher_audit_event_subject' : 'PRIMARY')}
      WHERE ${conditions.join(' AND ')} ORDER BY id DESC LIMIT ${count}`;
  }

  return {
    /** The events that match all criteria; null matches any. `after`: only events older than this id are found. */
    async find(criteria: AuditCriteria, { after, most }: Omit<Part, 'order'>) {
      const source = (before: string | null, count: number) =>
        idsOf((parameter) => select(criteria, before, count, parameter));
      const fitting = (ids: string[]) =>
        idsOf((parameter) => {
          const conditions = [`id ${isOneOf(parameter, ids)}`, ...conditionsOf(criteria, parameter)].join(' AND ');
          return `SELECT id FROM ${table} WHERE ${conditions} ORDER BY id DESC`;
        });
      const isExact = !criteria.actor && !criteria.action;
      const before = ID.test(after ?? '') ? after : null;
      const { ids, ...rest } = await boundedSearch({ source, fitting: isExact ? null : fitting, before, most });
      const events = await manager.find(AuditEvent, { where: { id: In(ids) }, order: { id: 'DESC' } });
      const names = await namesIn(manager, events);
      return { rows: events.map((event) => ({ ...event, names })), ...rest };
    },

    /** How many of the newest {@link MAX_EXAMINED} of the time and the subject match all criteria. */
    async count(criteria: AuditCriteria) {
      const { rows } = await runSql(dataSource, (parameter) => {
        const conditions = conditionsOf(criteria, parameter).join(' AND ') || '1 = 1';
        return `
          SELECT COUNT(*) AS examined, SUM(CASE WHEN ${conditions} THEN 1 ELSE 0 END) AS matching
          FROM (${select(criteria, null, MAX_EXAMINED + 1, parameter, 'id, actor, action')}) e`;
      });
      const [examined, matching] = [Number(rows[0]?.examined), Number(rows[0]?.matching)];
      return { count: Math.min(matching, MAX_EXAMINED), isMore: examined > MAX_EXAMINED };
    },
  };
}

async function namesIn(manager: EntityManager, events: AuditEvent[]) {
  const named = events
    .flatMap(({ actor, subject, detail }) => [actor, subject ?? '', `client:${String(detail.client)}`])
    .filter(isSearchable)
    .map(kindAndId);
  const found = Object.entries({ client: Client, member: Member, owner: Member }).map(async ([kind, entity]) => {
    const ids = named.flatMap(([one, id]) => (one === kind ? id : []));
    return [...(await namesOf(manager, entity, ids))].map(([id, name]) => [`${kind}:${id}`, name] as const);
  });
  return new Map((await Promise.all(found)).flat());
}

/** What no index has. A kind alone means all actors of this kind. */
const conditionsOf = ({ actor, action }: AuditCriteria, parameter: Parameter) => [
  ...compared({ 'action =': action }, parameter),
  ...(actor
    ? [
        /^[a-z-]+$/.test(actor)
          ? `(actor = ${parameter(actor)} OR actor LIKE ${parameter(`${actor}:%`)})`
          : `actor = ${parameter(actor)}`,
      ]
    : []),
];

/** The kind and the id in an actor or a subject. The id may contain a colon itself. */
export function kindAndId(text: string) {
  const [kind = '', id = ''] = text.split(/:(.*)/s);
  return [kind, id] as const;
}
