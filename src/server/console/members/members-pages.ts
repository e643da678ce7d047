import { Injectable } from '@nestjs/common';
import { ConnectedApplications } from '../../../auth/authorize/connected-applications.js';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../../auth/sign-in/passwords.js';
import { type Html, html } from '../../../http/html.js';
import { notFound } from '../../../http/problem.js';
import { MAX_MEMBER_NAME_LENGTH, type Member } from '../../../members/member.entity.js';
import { MembersService } from '../../../members/members.service.js';
import { hrefOf, textField, textOf } from '../fields/fields.js';
import { faultText, type Page, type View, type Visit } from '../frame/pages.js';
import { clientLink, copiedId, facts, pager, stateOf, stateSince, table, time } from '../frame/parts.js';
import { MemberDirectory } from './member-directory.js';

const PATH = '/ops/members';
const PAGE_SIZE = 50;

const memberPath = (id: string): string => `${PATH}/${encodeURIComponent(id)}`;

/** The built-in members. The server has no others: only an application that embeds Usher can have members of its own. */
@Injectable()
export class MembersPages {
  constructor(
    private readonly members: MembersService,
    private readonly directory: MemberDirectory,
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
          run: async ({ password = '' }, visit) =>
            this.members.setPassword((await this.get(visit)).name, password, visit.actor),
        },
        disable: {
          button: 'Disable the member',
          kind: 'danger',
          confirm: 'The member cannot sign in any more',
          done: 'The member is disabled.',
          run: async (_, visit) => this.members.setDisabled((await this.get(visit)).name, true, visit.actor),
        },
        enable: {
          button: 'Enable the member',
          done: 'The member is enabled.',
          run: async (_, visit) => this.members.setDisabled((await this.get(visit)).name, false, visit.actor),
        },
      },
    },
  ];

  private async get({ params: { id = '' } }: Visit): Promise<Member> {
    const member = await this.directory.find(id);
    if (!member) throw notFound('there is no such member');
    return member;
  }

  private async list(visit: Visit): Promise<View> {
    const [query, after] = [textOf(visit.query.q), textOf(visit.query.after)];
    const { members, next } = await this.directory.page(query, after, PAGE_SIZE);
    const nothing =
      query === ''
        ? 'Members sign in to let applications act for them. Create the first one.'
        : 'No member has a name that begins so.';
    const body = html`<form class="filter" method="get" action="${PATH}">
        ${textField({ name: 'q', label: 'Name', value: query })} <button>Search</button>
      </form>
      ${table(COLUMNS, members, nothing)}
      ${pager(
        after === '' ? null : [hrefOf(PATH, { q: query }), 'First'],
        next === null ? null : [hrefOf(PATH, { q: query, after: next }), 'Next'],
      )}
      ${visit.mayChange ? newMember(visit) : null}`;
    return { title: 'Members', section: 'members', body };
  }

  private async show(visit: Visit): Promise<View> {
    const member = await this.get(visit);
    const { id, name, createdAt, disabledAt } = member;
    const applications = await this.applications.list(id);
    const body = html`<section class="card">
        ${facts([
          ['State', stateSince(disabledAt)],
          ['Id', copiedId(id)],
          ['Created', time(createdAt)],
        ])}
        <p class="actions">
          <a class="button" href="${hrefOf('/ops/audit', { subject: `member:${id}` })}">Audit of this member</a>
        </p>
      </section>
      <h2>Connected applications</h2>
      ${table(
        [
          { name: 'Client', cell: ({ clientId, name }) => clientLink({ id: clientId, name }) },
          { name: 'Since', cell: ({ givenAt }) => time(givenAt) },
        ],
        applications,
        'The applications that may act for this member will be here.',
      )}
      ${visit.mayChange ? changes(visit, member) : null}`;
    return { title: name, section: 'members', body };
  }
}

const COLUMNS = [
  { name: 'Member', cell: ({ id, name }: Member) => html`<a href="${memberPath(id)}">${name}</a>` },
  { name: 'State', cell: ({ disabledAt }: Member) => stateOf(disabledAt) },
  { name: 'Created', cell: ({ createdAt }: Member) => time(createdAt) },
];

const passwordField = (label: string, fault?: string): Html =>
  textField({
    name: 'password',
    label,
    value: '',
    type: 'password',
    autocomplete: 'new-password',
    hint: `${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`,
    isRequired: true,
    fault,
  });

function newMember(visit: Visit): Html {
  const { fault, ...name } = visit.field('create', 'name', '');
  const isPassword = fault !== undefined && /password/.test(fault);
  const label = 'Name, which the member signs in with';
  const shown = { ...name, label, maxLength: MAX_MEMBER_NAME_LENGTH, isRequired: true };
  const body = html`${textField({ ...shown, fault: isPassword ? undefined : fault })}
  ${passwordField('Password', isPassword ? fault : undefined)}`;
  return html`<section class="card">
    <h2>New member</h2>
    ${visit.form('create', body)}
  </section>`;
}

function changes(visit: Visit, { disabledAt }: Member): Html {
  const { refusal } = visit;
  const fault = refusal?.form === 'set-password' ? faultText(refusal.problem) : undefined;
  const password = html`${passwordField('New password', fault)}
    <p class="hint">Ends the member’s sessions, and what applications got from them.</p>`;
  const hint = html`<p class="hint">Refuses the sign-in, and ends sessions and what applications got.</p>`;
  return html`<h2>Changes</h2>
    <div class="columns">
      <section class="card">
        <h3>Password</h3>
        ${visit.form('set-password', password)}
      </section>
      <section class="card">
        <h3>Access</h3>
        ${disabledAt === null ? visit.form('disable', hint) : visit.form('enable')}
      </section>
    </div>`;
}
