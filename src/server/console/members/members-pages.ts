import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { ConnectedApplications } from '../../../auth/authorize/connected-applications.js';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../../auth/sign-in/passwords.js';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { type Html, html } from '../../../http/html.js';
import { notFound } from '../../../http/problem.js';
import { MAX_MEMBER_NAME_LENGTH, Member } from '../../../members/member.entity.js';
import { MembersService } from '../../../members/members.service.js';
import { ID } from '../../../values/identifier.js';
import { type Field, hrefOf, inputField, isSearchable } from '../../../http/pages/fields.js';
import type { Page, View, Visit } from '../../../http/pages/site.js';
import { type Columns, copiedId, facts, pager, stateOf, stateSince, table, time } from '../../../http/pages/parts.js';
import { clientLink } from '../frame/links.js';

const PATH = '/ops/members';
const PAGE_SIZE = 50;

const memberPath = (id: string): string => `${PATH}/${encodeURIComponent(id)}`;

/** The built-in members. The server has no others: only an application that embeds Usher can have members of its own. */
@Injectable()
export class MembersPages {
  constructor(
    private readonly members: MembersService,
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly applications: ConnectedApplications,
  ) {}

  readonly pages: Page[] = [
    {
      path: PATH,
      show: (visit) => this.list(visit),
      actions: {
        create: {
          at: '',
          button: 'Create the member',
          kind: 'primary',
          answer: async ({ name = '', password = '' }, { actor }) => {
            const { id } = await this.members.create(name.trim(), password, actor);
            return `${memberPath(id)}?done=create`;
          },
        },
      },
    },
    {
      path: `${PATH}/:id`,
      show: (visit) => this.show(visit),
      notices: { create: 'The member is created.' },
      actions: {
        'set-password': {
          button: 'Set the password',
          done: 'The password is set.',
          run: async ({ password = '' }, { id, actor }) =>
            this.members.setPassword((await this.get(id)).name, password, actor),
        },
        disable: {
          button: 'Disable the member',
          kind: 'danger',
          confirm: 'The member cannot sign in any more',
          done: 'The member is disabled.',
          run: async (_, { id, actor }) => this.members.setDisabled((await this.get(id)).name, true, actor),
        },
        enable: {
          button: 'Enable the member',
          done: 'The member is enabled.',
          run: async (_, { id, actor }) => this.members.setDisabled((await this.get(id)).name, false, actor),
        },
      },
    },
  ];

  private async get(id: string): Promise<Member> {
    const member = ID.test(id) ? await this.dataSource.manager.findOneBy(Member, { id }) : null;
    if (!member) throw notFound('there is no such member');
    return member;
  }

  private async list(visit: Visit): Promise<View> {
    const { q = '', after = '' } = visit.query;
    const found = await this.find(q, after);
    const members = found.slice(0, PAGE_SIZE);
    const next = found.length > PAGE_SIZE ? (members.at(-1)?.name ?? null) : null;
    const nothing =
      q === ''
        ? 'Members sign in to let applications act for them. Create the first one.'
        : 'No member has a name that begins so.';
    const body = html`<form class="filter" method="get" action="${PATH}">
        ${inputField({ name: 'q', label: 'Name', value: q })} <button>Search</button>
      </form>
      ${table(COLUMNS, members, nothing)} ${pager((after) => hrefOf(PATH, { q, after }), after, next)}
      ${visit.mayChange && newMember(visit)}`;
    return { title: 'Members', section: 'members', body };
  }

  /** By name, behind `after`: one more than a page has. Only those whose name begins with `query`, which the index of names finds. */
  private async find(query: string, after: string): Promise<Member[]> {
    if (!isSearchable(query + after)) return [];
    const found = this.dataSource.manager
      .createQueryBuilder(Member, 'member')
      .orderBy('member.name')
      .limit(PAGE_SIZE + 1);
    const prefix = query.toLowerCase().replace(/[\\%_]/g, (char) => `\\${char}`);
    if (query !== '') found.where('member.name LIKE :prefix', { prefix: `${prefix}%` });
    if (after !== '') found.andWhere('member.name > :after', { after });
    return found.getMany();
  }

  private async show(visit: Visit): Promise<View> {
    const member = await this.get(visit.id);
    const { id, name, createdAt, disabledAt } = member;
    const applications = await this.applications.list(id);
    const body = html`<section class="card">
        ${facts({ State: stateSince(disabledAt), Id: copiedId(id), Created: time(createdAt) })}
        <p class="actions">
          <a class="button" href="${hrefOf('/ops/audit', { subject: `member:${id}` })}">Audit of this member</a>
        </p>
      </section>
      <h2>Connected applications</h2>
      ${table(
        {
          Client: ({ clientId, name }) => clientLink({ id: clientId, name }),
          Since: ({ givenAt }) => time(givenAt),
        },
        applications,
        'The applications that may act for this member will be here.',
      )}
      ${visit.mayChange && changes(visit, member)}`;
    return { title: name, section: 'members', body };
  }
}

const COLUMNS: Columns<Member> = {
  Member: ({ id, name }) => html`<a href="${memberPath(id)}">${name}</a>`,
  State: ({ disabledAt }) => stateOf(disabledAt),
  Created: ({ createdAt }) => time(createdAt),
};

const NAME: Field = {
  name: 'name',
  label: 'Name, which the member signs in with',
  maxLength: MAX_MEMBER_NAME_LENGTH,
  isRequired: true,
};

const passwordField = (label: string): Field => ({
  name: 'password',
  label,
  type: 'password',
  autocomplete: 'new-password',
  hint: `${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`,
  isRequired: true,
});

const newMember = (visit: Visit): Html =>
  html`<section class="card">
    <h2>New member</h2>
    ${visit.form('create', [NAME, passwordField('Password')])}
  </section>`;

function changes(visit: Visit, { disabledAt }: Member): Html {
  const ends = html`<p class="hint">Ends the member’s sessions, and what applications got from them.</p>`;
  const hint = html`<p class="hint">Refuses the sign-in, and ends sessions and what applications got.</p>`;
  return html`<h2>Changes</h2>
    <div class="columns">
      <section class="card">
        <h3>Password</h3>
        ${visit.form('set-password', [passwordField('New password'), ends])}
      </section>
      <section class="card">
        <h3>Access</h3>
        ${disabledAt === null ? visit.form('disable', hint) : visit.form('enable')}
      </section>
    </div>`;
}
