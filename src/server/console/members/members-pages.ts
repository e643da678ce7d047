import type { EntityManager } from 'typeorm';
import { ConnectedApplications } from '../../../auth/authorize/connected-applications.js';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../../auth/sign-in/passwords.js';
import { html } from '../../../http/html.js';
import { MAX_MEMBER_NAME_LENGTH, Member } from '../../../members/member.entity.js';
import { MembersService } from '../../../members/members.service.js';
import { boundedCount } from '../../../database/statements/bounded-search.js';
import { hrefOf, passwordField, searchField } from '../../../http/pages/fields.js';
import { listPage, MAX_COUNTED, partOf } from '../../../http/pages/list.js';
import { copiedId, facts, notice, STATE, stateSince, table, time } from '../../../http/pages/parts.js';
import { definePage, pagesWith, type Visit } from '../../../http/pages/site.js';
import { notFound } from '../../../http/problem.js';
import { ID } from '../../../values/identifier.js';
import { clientLink, memberLink } from '../frame/links.js';

const PATH = '/ops/members';

/** The built-in members. The server has no others: only an application that embeds Usher can have members of its own. */
export const membersPages = pagesWith([MembersService, ConnectedApplications], (members, connected, { manager }) => {
  /** Throws 404 if there is no member with the id in the address. */
  const memberOf = async ({ id }: Visit) => {
    const member = ID.test(id) ? await manager.findOneBy(Member, { id }) : null;
    if (!member) throw notFound('there is no such member');
    return member;
  };

  const setDisabled = async (visit: Visit, disabled: boolean) =>
    members.setDisabled((await memberOf(visit)).name, disabled, visit.actor);

  return [
    listPage<Member, { q: string }>({
      path: PATH,
      title: 'Members',
      noun: 'member',
      fields: { q: searchField('Name') },
      read: async ({ values }, { after, most }) => {
        const found = membersNamed(manager, values.q)
          .andWhere('member.name > :after', { after: after ?? '' })
          .orderBy('member.name')
          .limit(most + 1);
        return partOf(await found.getMany(), most, ({ name }) => name);
      },
      count: ({ values }) => boundedCount(membersNamed(manager, values.q), MAX_COUNTED),
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
            const { id } = await members.create(name.trim(), password, actor);
            return `${PATH}/${id}?done=create`;
          },
        },
      },
    }),
    definePage({
      path: `${PATH}/:id`,
      read: async (visit) => ({
        member: await memberOf(visit),
        applications: await connected.list(visit.id),
      }),
      show: (visit, { member: { id, name, createdAt, disabledAt }, applications }) => ({
        title: name,
        body: html`${visit.query.done === 'create' && notice('good', 'The member is created.')}
          <section class="card">
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
          run: ({ client = '' }, { id, actor }) => connected.withdraw(id, client, actor),
        },
        'set-password': {
          button: 'Set the password',
          fields: () => [passwordField('New password', PASSWORD_HINT)],
          hint: 'This ends the member’s sessions, and withdraws the access of all applications.',
          done: 'The password is set.',
          run: async ({ password = '' }, visit) =>
            members.setPassword((await memberOf(visit)).name, password, visit.actor),
        },
        disable: {
          button: 'Disable the member',
          hint: 'This refuses the sign-in, ends all sessions, and withdraws the access of all applications.',
          kind: 'danger',
          confirm: 'The member cannot sign in any more',
          done: 'The member is disabled.',
          run: (_, visit) => setDisabled(visit, true),
        },
        enable: {
          button: 'Enable the member',
          done: 'The member is enabled.',
          run: (_, visit) => setDisabled(visit, false),
        },
      },
    }),
  ];
});

/** The members whose name begins with `query`, which the index of names finds; all members if it is empty. */
export function membersNamed(manager: EntityManager, query: string | null) {
  const prefix = (query ?? '').toLowerCase().replace(/[\\%_]/g, (char) => `\\${char}`);
  return manager.createQueryBuilder(Member, 'member').where('member.name LIKE :prefix', { prefix: `${prefix}%` });
}

const NAME = {
  name: 'name',
  label: 'Name, which the member signs in with',
  maxLength: MAX_MEMBER_NAME_LENGTH,
  isRequired: true,
};

const PASSWORD_HINT = { hint: `${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters` };
