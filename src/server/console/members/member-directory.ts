import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { Member } from '../../../members/member.entity.js';
import { ID } from '../../../values/identifier.js';
import { isSearchable } from '../fields/fields.js';

export interface MemberPage {
  members: Member[];
  /** The name behind which the next page begins; null at the end. */
  next: string | null;
}

/** Lists the built-in members by name. */
@Injectable()
export class MemberDirectory {
  private readonly manager: EntityManager;

  constructor(@Inject(USHER_DATA_SOURCE) { manager }: DataSource) {
    this.manager = manager;
  }

  /** Members whose name begins with `query`, which the index of names finds. */
  async page(query: string, after: string, most: number): Promise<MemberPage> {
    if (!isSearchable(query + after)) return { members: [], next: null };
    const found = this.manager
      .createQueryBuilder(Member, 'member')
      .orderBy('member.name')
      .limit(most + 1);
    const prefix = query.toLowerCase().replace(/[\\%_]/g, (char) => `\\${char}`);
    if (query !== '') found.where('member.name LIKE :prefix', { prefix: `${prefix}%` });
    if (after !== '') found.andWhere('member.name > :after', { after });
    const members = await found.getMany();
    const shown = members.slice(0, most);
    return { members: shown, next: members.length > most ? (shown.at(-1)?.name ?? null) : null };
  }

  /** Null if there is no member with this id. */
  async find(id: string): Promise<Member | null> {
    return ID.test(id) ? this.manager.findOneBy(Member, { id }) : null;
  }

  /** The names of members, by id. */
  async names(ids: string[]): Promise<Map<string, string>> {
    if (ids.length === 0) return new Map();
    const members = await this.manager.find(Member, { select: { id: true, name: true }, where: { id: In(ids) } });
    return new Map(members.map(({ id, name }) => [id, name]));
  }
}
