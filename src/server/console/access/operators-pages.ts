import { html } from '../../../http/html.js';
import { conflict } from '../../../http/problem.js';
import { MAX_OPERATOR_NAME_LENGTH, type Operator, type OperatorRole } from '../../../operators/operator.entity.js';
import { OperatorsService } from '../../../operators/operators.service.js';
import { randomAlphanumeric } from '../../../values/identifier.js';
import { hrefOf } from '../../../http/pages/fields.js';
import { PASSWORD_PATH, SIGN_IN_PATH } from '../frame/frame.js';
import { listPage } from '../../../http/pages/list.js';
import { definePage, pagesWith, type Visit } from '../../../http/pages/site.js';
import { copiedId, facts, notice, STATE, stateOf, time } from '../../../http/pages/parts.js';

const PATH = '/ops/operators';
/** About 119 random bits. */
const PASSWORD_LENGTH = 20;

const ROLES: Record<OperatorRole, string> = {
  operator: 'operator: reads everything and makes changes',
  viewer: 'viewer: reads everything and changes nothing',
};

export const operatorsPages = pagesWith([OperatorsService], (operators) => [
  listPage({
    path: PATH,
    title: 'Operators',
    noun: 'operator',
    fields: {},
    // The operator whom the settings name has no row, so nobody knows when it was created.
    read: async () => {
      const first = { name: operators.firstName, role: 'operator' as const, disabledAt: null, createdAt: null };
      return { rows: [first, ...(await operators.list())], next: null };
    },
    columns: {
      Name: {
        value: 'name',
        cell: ({ name, createdAt }) =>
          createdAt === null ? name : html`<a href="${PATH}/${encodeURIComponent(name)}">${name}</a>`,
      },
      Role: 'role',
      State: STATE,
      Created: {
        time: 'createdAt',
        cell: ({ createdAt }) => time(createdAt) ?? html`<span class="dim">from OPS_USER</span>`,
      },
    },
    nothing: ['', ''],
    under: (visit) =>
      visit.mayChange &&
      html`<section class="card">
        <h2>New operator</h2>
        <p class="dim">The next page shows a password, once. The operator should change it after the first sign-in.</p>
        ${visit.form('create')}
      </section>`,
    actions: {
      create: {
        at: '',
        button: 'Create operator',
        fields: () => [
          { name: 'name', label: 'Name', maxLength: MAX_OPERATOR_NAME_LENGTH, isRequired: true },
          roleField('operator'),
        ],
        kind: 'primary',
        answer: ({ name = '', role = '' }, { actor }) =>
          newPassword((password) => operators.create({ name, password, role: role as OperatorRole }, actor), 201),
      },
    },
  }),
  definePage({
    path: `${PATH}/:name`,
    read: ({ id }) => operators.get(id),
    show: (visit, { name, role, createdAt, disabledAt }) => ({
      title: `Operator ${name}`,
      body: html`<section class="card">
          ${facts({
            State: stateOf({ disabledAt }),
            Role: ROLES[role],
            Created: time(createdAt),
            Disabled: time(disabledAt),
            Changes: html`<a href="${hrefOf('/ops/audit', { actor: `operator:${name}` })}">in the audit</a>`,
          })}
        </section>
        ${
          isOwn(visit)
            ? html`<p>
                This is you. <a href="${PASSWORD_PATH}">Change your password</a>. Another operator can change the rest.
              </p>`
            : visit.forms({
                Role: ['role'],
                Password: ['password'],
                Access: [disabledAt === null ? 'disable' : 'enable'],
              })
        }`,
    }),
    actions: {
      role: {
        button: 'Set role',
        fields: ({ role }) => [roleField(role)],
        done: 'The role is set.',
        run: ({ role = '' }, visit) => operators.setRole(notOwn(visit), role as OperatorRole, visit.actor),
      },
      password: {
        button: 'Make a new password',
        hint: 'The next page shows the new password, once. The operator’s sessions end.',
        answer: (_, visit) => newPassword((password) => operators.setPassword(notOwn(visit), password, visit.actor)),
      },
      disable: {
        button: 'Disable',
        hint: 'Disabling ends all sessions at once, and refuses sign-in.',
        kind: 'danger',
        done: 'The operator is disabled.',
        run: (_, visit) => operators.setDisabled(notOwn(visit), true, visit.actor),
      },
      enable: {
        button: 'Enable',
        done: 'The operator is enabled.',
        run: (_, { id, actor }) => operators.setDisabled(id, false, actor),
      },
    },
  }),
]);

const roleField = (value: OperatorRole) => ({ name: 'role', label: 'Role', value, options: ROLES });

/** Makes a password, and is the only page that shows it. */
async function newPassword(save: (password: string) => Promise<Operator>, status = 200) {
  const password = randomAlphanumeric(PASSWORD_LENGTH);
  const { name, role } = await save(password);
  const body = html`${notice('warning', 'Copy the password now. It is not shown again.')}
    <section class="card">
      ${facts({
        Name: name,
        Role: role,
        Password: copiedId(password),
        'Sign in at': html`<code>${SIGN_IN_PATH}</code>`,
      })}
    </section>
    <p><a href="${PATH}">All operators</a></p>`;
  return { title: `Password of ${name}`, body, status };
}

const isOwn = ({ viewer, id }: Visit) => viewer?.name.toLowerCase() === id.toLowerCase();

/** Refuses changes of one's own account, so that nobody locks themselves out. */
function notOwn(visit: Visit) {
  if (isOwn(visit))
    throw conflict('this is your own account; another operator can disable it, change its role or its password');
  return visit.id;
}
