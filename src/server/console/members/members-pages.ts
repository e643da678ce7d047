import { Inject, Injectable } from '@nestjs/common';
import type { DataSource, SelectQueryBuilder } from 'typeorm';
import { ConnectedApplications } from '../../../auth/authorize/connected-applications.js';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../../auth/sign-in/passwords.js';
import { html } from '../../../http/html.js';
import { MAX_MEMBER_NAME_LENGTH, Member } from '../../../members/member.entity.js';
import { MembersService } from '../../../members/members.service.js';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { boundedCount } from '../../../database/statements/bounded-search.js';
import { hrefOf, passwordField, searchField } from '../../../http/pages/fields.js';
import { type Found, listPage, MAX_COUNTED, type Part, partOf } from '../../../http/pages/list.js';
import { copiedId, facts, STATE, stateSince, table, time } from '../../../http/pages/parts.js';
import { definePage } from '../../../http/pages/site.js';
import { notFound } from '../../../http/problem.js';
import { ID } from '../../../values/identifier.js';
import { clientLink, memberLink } from '../frame/links.js';

const PATH = '/ops/members';

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

/** The built-in members. The server has no others: only an application that embeds Usher can have members of its own. */
@Injectable()
export class MembersPages {
  constructor(
    private readonly members: MembersService,
    private readonly directory: MemberDirectory,
    private readonly applications: ConnectedApplications,
  ) {}

  readonly pages = [
    listPage<Member, { q: string }>({
      path: PATH,
      title: 'Members',
      noun: 'member',
      fields: { q: searchField('Name') },
      read: ({ values }, part) => this.directory.page(values.q, part),
      count: ({ values }) => boundedCount(this.directory.found(values.q), MAX_COUNTED),
      columns: {
        Member: { value: 'name', cell: memberLink },
        State: STATE,
        Created: { time: 'createdAt' },
      },
      nothing: [
        'Members sign in to let applications act for them. Create the first one.',
        'No member has a name that begins with this text.',
      ],
      under: (visit) =>
        visit.mayChange &&
        html`<section class="card">
          <h2>New member</h2>
          ${visit.form('create')}
        </section>`,
      actions: {
        create: {
          at: '',
          button: 'Create the member',
          fields: () => [NAME, passwordField('Password', PASSWORD_HINT)],
          kind: 'primary',
          answer: async ({ name = '', password = '' }, { actor }) => {
            const { id } = await this.members.create(name.trim(), password, actor);
            return `${PATH}/${id}?done=create`;
          },
        },
      },
    }),
    definePage({
      path: `${PATH}/:id`,
      read: async ({ id }) => ({
        member: await this.directory.get(id),
        applications: await this.applications.list(id),
      }),
      show: (visit, { member: { id, name, createdAt, disabledAt }, applications }) => ({
        title: name,
        body: html`<section class="card">
            ${facts({ State: stateSince({ disabledAt }), Id: copiedId(id), Created: time(createdAt) })}
            <p class="actions">
              <a class="button" href="${hrefOf('/ops/audit', { subject: `member:${id}` })}">Audit of this member</a>
            </p>
          </section>
          <h2>Connected applications</h2>
          ${table(
            {
              Client: ({ clientId, name }) => clientLink({ id: clientId, name }),
              Since: { time: 'givenAt' },
            },
            applications,
            'The applications that may act for this member will be here.',
          )}
          ${applications.length > 0 && visit.form('withdraw')}
          ${visit.forms({ Password: ['set-password'], Access: [disabledAt === null ? 'disable' : 'enable'] })}`,
      }),
      notices: { create: 'The member is created.' },
      actions: {
        withdraw: {
          button: 'Withdraw the access',
          fields: ({ applications }) => [
            {
              name: 'client',
              label: 'Application',
              options: Object.fromEntries(applications.map(({ clientId, name }) => [clientId, name])),
            },
          ],
          kind: 'danger',
          done: 'The application cannot act for the member any more.',
          run: ({ client = '' }, { id, actor }) => this.applications.withdraw(id, client, actor),
        },
        'set-password': {
          button: 'Set the password',
          fields: () => [passwordField('New password', PASSWORD_HINT)],
          hint: 'This ends the member’s sessions, and withdraws the access of all applications.',
          done: 'The password is set.',
          run: async ({ password = '' }, { id, actor }) =>
            this.members.setPassword((await this.directory.get(id)).name, password, actor),
        },
        disable: {
          button: 'Disable the member',
          hint: 'This refuses the sign-in, ends all sessions, and withdraws the access of all applications.',
          kind: 'danger',
          confirm: 'The member cannot sign in any more',
          done: 'The member is disabled.',
          run: async (_, { id, actor }) => this.members.setDisabled((await this.directory.get(id)).name, true, actor),
        },
        enable: {
          button: 'Enable the member',
          done: 'The member is enabled.',
          run: async (_, { id, actor }) => this.members.setDisabled((await this.directory.get(id)).name, false, actor),
        },
      },
    }),
  ];
}

const NAME = {
  name: 'name',
  label: 'Name, which the member signs in with',
  maxLength: MAX_MEMBER_NAME_LENGTH,
  isRequired: true,
};

const PASSWORD_HINT = { hint: `${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters` };
