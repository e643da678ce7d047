import { Injectable } from '@nestjs/common';
import { type Html, html } from '../../../http/html.js';
import { badRequest } from '../../../http/problem.js';
import { ID, timeOfId } from '../../../values/identifier.js';
import { type WebhookPage, WebhookList } from '../../../webhooks/search/webhook-list.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import { WebhookResends } from '../../../webhooks/undelivered/webhook-resends.js';
import { hiddenField, MOMENT_HINT, selectField, textField, textOf } from '../fields/fields.js';
import type { Page, View, Visit } from '../frame/pages.js';
import { clientLink, emptyState, notice, pager, time } from '../frame/parts.js';
import {
  listHref,
  type NotificationFilter,
  NotificationFilters,
  NOTIFICATIONS_PATH,
  STATUS_FILTERS,
} from './notification-filter.js';
import { isOpen, notificationTable, selectedIds, SELECTION_FORM } from './notification-table.js';

const PAGE_SIZE = 50;

/** The list of notifications, and what sends many of them again. */
@Injectable()
export class NotificationsPages {
  constructor(
    private readonly filters: NotificationFilters,
    private readonly webhooks: WebhookList,
    private readonly resends: WebhookResends,
  ) {}

  readonly pages: Page[] = [
    {
      path: NOTIFICATIONS_PATH,
      show: (visit) => this.show(visit),
      actions: {
        resend: {
          button: 'Send the selected ones again',
          kind: 'primary',
          answer: async (fields, { requestId, actor }) => {
            const ids = selectedIds(fields).filter((id) => ID.test(id));
            if (ids.length === 0) throw badRequest('select at least one notification');
            return `/ops/resends/${await this.resends.resendChosen(ids, { requestId, actor })}`;
          },
        },
        'resend-all': {
          button: 'Send all again',
          kind: 'danger',
          confirm: 'Yes, send all of them again',
          answer: async (fields, { requestId, actor }) => {
            const { criteria } = await this.filters.read(fields, Date.now());
            if (criteria === null) throw badRequest('the filter has a fault');
            return `/ops/resends/${await this.resends.startFor(criteria, { requestId, actor })}`;
          },
        },
      },
    },
  ];

  private async show(visit: Visit): Promise<View> {
    const input = visit.refusal?.given ?? visit.query;
    const filter = await this.filters.read(input, Date.now());
    const given = textOf(input.before);
    const before = ID.test(given) ? given : null;
    const page = filter.criteria && (await this.webhooks.page(filter.criteria, before, PAGE_SIZE));
    const body = html`${views(filter)} ${filterForm(filter)} ${choices(filter)}
    ${page && list(visit, filter, page, before === null)}`;
    return {
      title: 'Notifications',
      section: 'notifications',
      body,
      // Reloading would untick what is selected.
      isLive: before === null && page !== null && !page.webhooks.some(isOpen),
      ...(page === null && { status: 400 }),
    };
  }
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
  const field = (name: keyof typeof given, label: string) =>
    textField({ name, label, value: given[name], fault: faults[name] });
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

function list(visit: Visit, filter: NotificationFilter, page: WebhookPage, isFirst: boolean): Html {
  const { webhooks, next, isCut } = page;
  const isSelectable = visit.mayChange && webhooks.some(isOpen);
  const nothing = isCut ? null : emptyState(isFirst ? nothingFor(filter) : 'There are no older ones.');
  const { given } = filter;
  return html`${webhooks.length === 0 ? nothing : notificationTable(webhooks, isSelectable)}
  ${isCut && next !== null ? cut(next) : null}
  ${pager(
    isFirst ? null : [listHref(given), 'Newest'],
    next === null ? null : [listHref(given, { before: next }), isCut ? 'Search older ones' : 'Older'],
  )}
  ${isSelectable ? selectionForm(visit, filter) : null} ${resendAllForm(visit, filter)}`;
}

const nothingFor = ({ given }: NotificationFilter): string =>
  Object.values(given).some((value) => value !== '')
    ? 'No notification fits this filter.'
    : 'Every notification that Usher sends will be here. The first one is sent when an order is completed.';

/** A condition has no index, so a search ends after a bounded number of rows. */
const cut = (next: string): Html =>
  notice(
    'warning',
    html`This filter is looked up in the notifications themselves, and the search has ended at those of
    ${time(timeOfId(next))}. Older ones may fit; go on with “Search older ones”, or give a client, a status or a time.`,
  );

/** Its fields are the checkboxes of the table. */
const selectionForm = (visit: Visit, { given }: NotificationFilter): Html | null =>
  visit.form(
    'resend',
    html`<h2>Send the selected ones again</h2>
      ${Object.entries(given).map(([name, value]) => hiddenField(name, value))}`,
    SELECTION_FORM,
  );

/** Only where the list has FAILED ones alone, so that the operator sees what is sent. */
function resendAllForm(visit: Visit, { given, criteria, client }: NotificationFilter): Html | null {
  if (criteria?.status !== 'FAILED' || criteria.isSentAgain === true) return null;
  // A duration before now would mean other notifications when the form is sent.
  const moments = { since: exact(criteria.since), until: exact(criteria.until), client: client?.id ?? '' };
  const fields = Object.entries({ ...given, ...moments });
  return visit.form(
    'resend-all',
    html`<h2>Send all of this list again</h2>
      <p class="hint">
        All FAILED notifications ${client === null ? 'of every client' : html`of ${clientLink(client)}`} that fit the
        filter, also those on further pages. Left out is what has a newer, pending or delivered notification of the same
        order.
      </p>
      ${fields.map(([name, value]) => hiddenField(name, value))}`,
  );
}

const exact = (ms: number | null): string => (ms === null ? '' : new Date(ms).toISOString());
