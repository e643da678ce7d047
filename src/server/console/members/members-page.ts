import type { FastifyRequest } from 'fastify';
import type { ConnectedApplication } from '../../../auth/authorize/connected-applications.js';
import { type Html, html } from '../../../http/html.js';
import { MAX_MEMBER_NAME_LENGTH, type Member } from '../../../members/member.entity.js';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../../auth/sign-in/passwords.js';
import { hrefOf, textField } from '../fields/fields.js';
import { faultText, type Refusal, shownField } from '../fields/refusal.js';
import { type PostForm, postForm } from '../frame/form.js';
import { mayChange } from '../frame/frame.js';
import { clientLink, copyButton, emptyState, facts, notice, statusBadge, table, time } from '../frame/parts.js';
import type { MemberPage } from './member-directory.js';

export const MEMBERS_PATH = '/ops/members';

export const memberPath = (id: string): string => `${MEMBERS_PATH}/${encodeURIComponent(id)}`;

export interface MembersPage {
  query: string;
  page: MemberPage;
  isFirst: boolean;
  /** Why a new member was refused; null if none was. */
  refusal: Refusal | null;
}

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

/** The members of the cinema, who let applications act for them. */
export function membersPage(request: FastifyRequest, { query, page, isFirst, refusal }: MembersPage): Html {
  const { members, next } = page;
  const nothing =
    query === ''
      ? 'Members sign in to let applications act for them. Create the first one.'
      : 'No member has a name that begins so.';
  const rows = members.map(({ id, name, createdAt, disabledAt }) => [
    html`<a href="${memberPath(id)}">${name}</a>`,
    statusBadge(disabledAt === null ? 'active' : 'disabled'),
    time(createdAt),
  ]);
  return html`<form class="filter" method="get" action="${MEMBERS_PATH}">
      ${textField({ name: 'q', label: 'Name', value: query })} <button>Search</button>
    </form>
    ${rows.length === 0 ? emptyState(nothing) : table([{ name: 'Member' }, { name: 'State' }, { name: 'Created' }], rows)}
    ${pages(query, next, isFirst)} ${mayChange(request) ? newMemberForm(request, refusal) : null}`;
}

const pages = (query: string, next: string | null, isFirst: boolean): Html | null =>
  isFirst && next === null
    ? null
    : html`<nav class="pager" aria-label="Pages">
        ${isFirst ? null : html`<a class="button" href="${hrefOf(MEMBERS_PATH, { q: query })}">First</a>`}
        ${next === null ? null : html`<a class="button" rel="next" href="${hrefOf(MEMBERS_PATH, { q: query, after: next })}">Next</a>`}
      </nav>`;

function newMemberForm(request: FastifyRequest, refusal: Refusal | null): Html {
  const isPassword = refusal !== null && /password/.test(refusal.problem.detail);
  const shown = shownField(refusal, 'create', 'name', '');
  const name = { ...shown, ...(isPassword && { fault: undefined }) };
  const label = 'Name, which the member signs in with';
  const fault = isPassword ? faultText(refusal.problem) : undefined;
  const body = html`${textField({ ...name, label, maxLength: MAX_MEMBER_NAME_LENGTH, isRequired: true })}
  ${passwordField('Password', fault)}`;
  return html`<section class="card">
    <h2>New member</h2>
    ${postForm(request, { action: MEMBERS_PATH, body, button: 'Create the member', kind: 'primary' })}
  </section>`;
}

export interface ShownMember {
  member: Member;
  applications: ConnectedApplication[];
  done: string | null;
  refusal: Refusal | null;
}

/** The page of one member. */
export function memberPage(request: FastifyRequest, { member, applications, done, refusal }: ShownMember): Html {
  const { id, createdAt, disabledAt } = member;
  const rows = applications.map(({ clientId, name, givenAt }) => [clientLink({ id: clientId, name }), time(givenAt)]);
  return html`${done === null ? null : notice('good', done)}
    ${refusal === null ? null : notice('bad', `Nothing was changed. ${faultText(refusal.problem)}`)}
    <section class="card">
      ${facts([
        [
          'State',
          disabledAt === null ? statusBadge('active') : html`${statusBadge('disabled')} since ${time(disabledAt)}`,
        ],
        ['Id', html`<span class="id">${id} ${copyButton(id)}</span>`],
        ['Created', time(createdAt)],
      ])}
      <p class="actions">
        <a class="button" href="${hrefOf('/ops/audit', { subject: `member:${id}` })}">Audit of this member</a>
      </p>
    </section>
    <h2>Connected applications</h2>
    ${rows.length === 0 ? emptyState('The applications that may act for this member will be here.') : table([{ name: 'Client' }, { name: 'Since' }], rows)}
    ${mayChange(request) ? changes(request, member, refusal) : null}`;
}

function changes(request: FastifyRequest, { id, disabledAt }: Member, refusal: Refusal | null): Html {
  const form = (change: string, content: Omit<PostForm, 'action'>) =>
    postForm(request, { ...content, action: `${memberPath(id)}/${change}` });
  const fault = refusal?.form === 'set-password' ? faultText(refusal.problem) : undefined;
  const password = form('set-password', {
    body: html`${passwordField('New password', fault)}
      <p class="hint">Ends the member’s sessions, and what applications got from them.</p>`,
    button: 'Set the password',
  });
  const disable = form('disable', {
    body: html`<p class="hint">Refuses the sign-in, and ends sessions and what applications got.</p>`,
    button: 'Disable the member',
    kind: 'danger',
    confirm: 'The member cannot sign in any more',
  });
  const enable = form('enable', { button: 'Enable the member' });
  return html`<h2>Changes</h2>
    <div class="columns">
      <section class="card">
        <h3>Password</h3>
        ${password}
      </section>
      <section class="card">
        <h3>Access</h3>
        ${disabledAt === null ? disable : enable}
      </section>
    </div>`;
}
