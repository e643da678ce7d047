import { Inject, Injectable } from '@nestjs/common';
import type { DataSource, SelectQueryBuilder } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { type Found, type Part, partOf } from '../../../http/pages/list.js';
import { notFound } from '../../../http/problem.js';
import { Member } from '../../../members/member.entity.js';
import { ID } from '../../../values/identifier.js';

/** Finds the built-in members by id, or by the beginning of their name, which the index of names finds. */
@Injectable()
export class MemberDirectory {
  constructor(@Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource) {}

  /** Throws 404 if there is no member with this id. */
  async get(id: string): Promise<Member> {
    const member = ID.test(id) ? await this.dataSource.manager.findOneBy(Member, { id }) : null;
    if (!member) throw notFound('there is no such member');
    return member;
  }

  /** Those whose name begins with `query`; all members if it is empty. */
  found(query: string | null): SelectQueryBuilder<Member> {
    const prefix = (query ?? '').toLowerCase().replace(/[\\%_]/g, (char) => `\\${char}`);
    const found = this.dataSource.manager.createQueryBuilder(Member, 'member');
    return found.where('member.name LIKE :prefix', { prefix: `${prefix}%` });
  }

  /** The same members by name. `after`: the part begins behind this name. */
  async page(query: string | null, { after, most }: Omit<Part, 'order'>): Promise<Found<Member>> {
    const found = this.found(query)
      .andWhere('member.name > :after', { after: after ?? '' })
      .orderBy('member.name')
      .limit(most + 1);
    return partOf(await found.getMany(), most, ({ name }) => name);
  }
}
