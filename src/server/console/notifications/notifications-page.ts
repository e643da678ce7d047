import type { FastifyRequest } from 'fastify';
import { type Html, html } from '../../../http/html.js';
import { timeOfId } from '../../../values/identifier.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import type { WebhookPage } from '../../../webhooks/search/webhook-list.js';
import { hiddenField, MOMENT_HINT, selectField, textField } from '../fields/fields.js';
import { postForm } from '../frame/form.js';
import { mayChange } from '../frame/frame.js';
import { clientLink, emptyState, notice, time } from '../frame/parts.js';
import { listHref, NOTIFICATIONS_PATH, type NotificationFilter, STATUS_FILTERS } from './notification-filter.js';
import { isOpen, notificationTable, SELECTION_FORM } from './notification-table.js';

export interface NotificationsPage {
  filter: NotificationFilter;
  /** Null if the filter has a fault. */
  page: WebhookPage | null;
  /** Whether it is the first page of the list. */
  isFirst: boolean;
  /** Why a form of the page was refused; null if none was. */
  refusal: string | null;
}

/** Notifications by filter, the newest first. */
export function notificationsPage(request: FastifyRequest, shown: NotificationsPage): Html {
  const { filter, page, refusal } = shown;
  return html`${refusal === null ? null : notice('bad', refusal)} ${views(filter)} ${filterForm(filter)}
  ${choices(filter)} ${page && list(request, { ...shown, page })}`;
}

/** The lists that are needed most, as links. */
const views = ({ given }: NotificationFilter): Html =>
  html`<nav class="actions" aria-label="Lists">
    ${Object.entries(STATUS_FILTERS).map(([status, { name }]) => {
      const isCurrent = given.status === status ? html`aria-current="page"` : null;
      return html`<a class="button" href="${listHref(given, { status })}" ${isCurrent}>${name}</a>`;
    })}
  </nav>`;

function filterForm({ given, faults }: NotificationFilter): Html {
  const field = (name: keyof typeof given, label: string, hint?: string) =>
    textField({ name, label, value: given[name], fault: faults[name], ...(hint !== undefined && { hint }) });
  const reasons = Object.entries(DIAGNOSES).map(([code, { meaning }]): [string, string] => [
    code,
    `${code}: ${meaning}`,
  ]);
  return html`<form class="filter" method="get" action="${NOTIFICATIONS_PATH}">
      ${given.status === '' ? null : hiddenField('status', given.status)} ${field('client', 'Client, by name or id')}
      ${field('host', 'Receiver')}
      ${selectField({ name: 'reason', label: 'Reason', value: given.reason, fault: faults.reason }, [
        ['', 'any'],
        ...reasons,
      ])}
      ${field('since', 'Created since')} ${field('until', 'Created before')} ${field('order', 'Order key')}
      <button>Filter</button> <a class="button" href="${NOTIFICATIONS_PATH}">Clear</a>
    </form>
    <p class="hint">A time is ${MOMENT_HINT}. The address of this page keeps the filter: save it as a link.</p>`;
}

const choices = ({ given, choices: found }: NotificationFilter): Html | null =>
  found.length === 0
    ? null
    : html`<section class="card">
        <h2>Which client?</h2>
        <ul>
          ${found.map(
            ({ id, name }) =>
              html`<li><a href="${listHref(given, { client: id })}">${name}</a> <span class="dim">${id}</span></li>`,
          )}
        </ul>
      </section>`;

function list(request: FastifyRequest, shown: NotificationsPage & { page: WebhookPage }): Html {
  const { filter, page, isFirst } = shown;
  const isSelectable = mayChange(request) && page.webhooks.some(isOpen);
  return html`${page.webhooks.length === 0 ? empty(shown) : notificationTable(page.webhooks, isSelectable)}
  ${page.isCut && page.next !== null ? cut(page.next) : null} ${pages(filter, page, isFirst)}
  ${isSelectable ? selectionForm(request, filter) : null} ${resendAllForm(request, filter)}`;
}

function empty({ filter: { given }, page, isFirst }: NotificationsPage): Html | null {
  if (page?.isCut) return null;
  if (!isFirst) return emptyState('There are no older ones.');
  const isFiltered = Object.values(given).some((value) => value !== '');
  return emptyState(
    isFiltered
      ? 'No notification fits this filter.'
      : 'Every notification that Usher sends will be here. The first one is sent when an order is completed.',
  );
}

/** A condition has no index, so a search ends after a bounded number of rows. */
const cut = (next: string): Html =>
  notice(
    'warning',
    html`This filter is looked up in the notifications themselves, and the search has ended at those of
    ${time(timeOfId(next))}. Older ones may fit; go on with “Search older ones”, or give a client, a status or a time.`,
  );

function pages({ given }: NotificationFilter, { next, isCut }: WebhookPage, isFirst: boolean): Html | null {
  if (isFirst && next === null) return null;
  return html`<nav class="pager" aria-label="Pages">
    ${isFirst ? null : html`<a class="button" href="${listHref(given)}">Newest</a>`}
    ${
      next === null
        ? null
        : html`<a class="button" rel="next" href="${listHref(given, { before: next })}"
            >${isCut ? 'Search older ones' : 'Older'}</a
          >`
    }
  </nav>`;
}

const selectionForm = (request: FastifyRequest, { given }: NotificationFilter): Html | null =>
  postForm(request, {
    id: SELECTION_FORM,
    action: `${NOTIFICATIONS_PATH}/resend`,
    body: html`<h2>Send the selected ones again</h2>
      ${Object.entries(given).map(([name, value]) => hiddenField(name, value))}`,
    button: 'Send the selected ones again',
    kind: 'primary',
  });

/** Only where the list has FAILED ones alone, so that the operator sees what is sent. */
function resendAllForm(request: FastifyRequest, { given, criteria, client }: NotificationFilter): Html | null {
  if (criteria?.status !== 'FAILED' || criteria.isSentAgain === true) return null;
  // A duration before now would mean other notifications when the form is sent.
  const moments = { since: exact(criteria.since), until: exact(criteria.until), client: client?.id ?? '' };
  const fields = Object.entries({ ...given, ...moments });
  return postForm(request, {
    action: `${NOTIFICATIONS_PATH}/resend-all`,
    body: html`<h2>Send all of this list again</h2>
      <p class="hint">
        All FAILED notifications ${client === null ? 'of every client' : html`of ${clientLink(client)}`} that fit the
        filter, also those on further pages. Left out is what has a newer, pending or delivered notification of the same
        order.
      </p>
      ${fields.map(([name, value]) => hiddenField(name, value))}`,
    button: 'Send all again',
    kind: 'danger',
    confirm: 'Yes, send all of them again',
  });
}

const exact = (ms: number | null): string => (ms === null ? '' : new Date(ms).toISOString());
