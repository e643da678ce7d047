import type { FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import type { Problem } from '../../../http/problem.js';
import { MAX_OPERATOR_NAME_LENGTH, type Operator, type OperatorRole } from '../../../operators/operator.entity.js';
import { postForm } from '../frame/form.js';
import { PASSWORD_PATH, SIGN_IN_PATH } from '../frame/frame.js';
import { copyButton, facts, notice, sentence, statusBadge, table, time } from '../frame/parts.js';
import { mayChange } from '../frame/signed-in.js';

const PATH = '/ops/operators';

const ROLES: Record<OperatorRole, string> = {
  operator: 'reads everything and makes changes',
  viewer: 'reads everything and changes nothing',
};

export interface OperatorsView {
  operators: Operator[];
  /** The name of the operator whom the settings name. */
  first: string;
  /** What was given for a new operator, and why it was refused. */
  name: string;
  refusal: Problem | null;
}

export function operatorsPage(request: FastifyRequest, { operators, first, name, refusal }: OperatorsView): Html {
  const columns = ['Name', 'Role', 'State', 'Created'].map((name) => ({ name }));
  const ofSettings = [html`${first}`, html`operator`, stateOf(null), html`<span class="dim">from OPS_USER</span>`];
  const rows = operators.map((operator) => [
    html`<a href="${pathOf(operator)}">${operator.name}</a>`,
    html`${operator.role}`,
    stateOf(operator.disabledAt),
    time(operator.createdAt),
  ]);
  const form = {
    action: PATH,
    body: newOperatorFields(name, refusal),
    button: 'Create operator',
    kind: 'primary',
  } as const;
  return html`${refusal === null ? null : notice('bad', sentence(refusal.detail))}
  ${table(columns, [ofSettings, ...rows])}
  ${
    mayChange(request)
      ? html`<section class="card">
          <h2>New operator</h2>
          <p class="dim">The next page shows a password, once. The operator changes it after the first sign-in.</p>
          ${postForm(request, form)}
        </section>`
      : null
  }`;
}

const newOperatorFields = (name: string, refusal: Problem | null): Html =>
  html`<label>
      Name
      <input
        name="name"
        value="${name}"
        maxlength="${MAX_OPERATOR_NAME_LENGTH}"
        autocapitalize="none"
        autocomplete="off"
        required
        aria-invalid="${refusal === null ? 'false' : 'true'}"
      />
    </label>
    ${roleField('operator')}`;

const roleField = (current: OperatorRole): Html =>
  html`<label>
    Role
    <select name="role">
      ${Object.entries(ROLES).map(
        ([role, meaning]) =>
          html`<option value="${role}" ${role === current ? SELECTED : null}>${role}: ${meaning}</option>`,
      )}
    </select>
  </label>`;

const SELECTED = html`selected`;

export function operatorPage(request: FastifyRequest, operator: Operator, isOwn: boolean): Html {
  const { name, role, createdAt, disabledAt } = operator;
  const audit = `/ops/audit?${new URLSearchParams({ actor: `operator:${name}` })}`;
  return html`<section class="card">
      ${facts([
        ['State', stateOf(disabledAt)],
        ['Role', `${role}: ${ROLES[role]}`],
        ['Created', time(createdAt)],
        ['Disabled', disabledAt === null ? null : time(disabledAt)],
        ['Changes', html`<a href="${audit}">in the audit</a>`],
      ])}
    </section>
    ${
      isOwn
        ? html`<p>
            This is you. <a href="${PASSWORD_PATH}">Change your password</a>. Another operator can change the rest.
          </p>`
        : changes(request, operator)
    }`;
}

function changes(request: FastifyRequest, operator: Operator): Html | null {
  if (!mayChange(request)) return null;
  const path = pathOf(operator);
  const role = { action: `${path}/role`, body: roleField(operator.role), button: 'Set role' };
  const password = { action: `${path}/password`, button: 'Make a new password' };
  const able =
    operator.disabledAt === null
      ? ({ action: `${path}/disable`, button: 'Disable', kind: 'danger' } as const)
      : { action: `${path}/enable`, button: 'Enable' };
  return html`<div class="columns">
    <section class="card">
      <h2>Role</h2>
      ${postForm(request, role)}
    </section>
    <section class="card">
      <h2>Password</h2>
      <p class="dim">The next page shows the new password, once. The operator’s sessions end.</p>
      ${postForm(request, password)}
    </section>
    <section class="card">
      <h2>Access</h2>
      <p class="dim">
        ${operator.disabledAt === null ? 'Disabling ends all sessions at once, and refuses sign-in.' : 'Enabling allows sign-in again.'}
      </p>
      ${postForm(request, able)}
    </section>
  </div>`;
}

/** The only page that shows the password. */
export const newPasswordPage = ({ name, role }: Pick<Operator, 'name' | 'role'>, password: string): Html =>
  html`${notice('warning', 'Copy the password now. It is not shown again.')}
    <section class="card">
      ${facts([
        ['Name', name],
        ['Role', role],
        ['Password', html`<span class="id">${password} ${copyButton(password)}</span>`],
        ['Sign in at', html`<code>${SIGN_IN_PATH}</code>`],
      ])}
    </section>
    <p><a href="${PATH}">All operators</a></p>`;

const pathOf = ({ name }: Pick<Operator, 'name'>): string => `${PATH}/${encodeURIComponent(name)}`;

const stateOf = (disabledAt: number | null): Html =>
  disabledAt === null ? statusBadge('active') : statusBadge('disabled');
