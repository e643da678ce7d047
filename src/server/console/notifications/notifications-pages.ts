import { Injectable } from '@nestjs/common';
import { type Html, html } from '../../../http/html.js';
import { badRequest } from '../../../http/problem.js';
import { ID, timeOfId } from '../../../values/identifier.js';
import { type WebhookPage, WebhookList } from '../../../webhooks/search/webhook-list.js';
import { WebhookResends } from '../../../webhooks/undelivered/webhook-resends.js';
import { ClientDirectory } from '../clients/client-directory.js';
import { filterForm, hiddenField, MOMENT_HINT } from '../frame/fields.js';
import type { Page, View, Visit } from '../frame/pages.js';
import { clientLink, emptyState, notice, pager, time } from '../frame/parts.js';
import {
  FILTER_FIELDS,
  listHref,
  type NotificationFilter,
  NOTIFICATIONS_PATH,
  readNotificationFilter,
  STATUS_FILTERS,
} from './notification-filter.js';
import { isOpen, notificationTable, selectedIds, SELECTION_FORM } from './notification-table.js';

const PAGE_SIZE = 50;

/** The list of notifications, and what sends many of them again. */
@Injectable()
export class NotificationsPages {
  constructor(
    private readonly clients: ClientDirectory,
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
          answer: async (fields, visit) => {
            const ids = selectedIds(fields).filter((id) => ID.test(id));
            if (ids.length === 0) throw badRequest('select at least one notification');
            return `/ops/resends/${await this.resends.resendChosen(ids, visit)}`;
          },
        },
        'resend-all': {
          button: 'Send all again',
          kind: 'danger',
          confirm: 'Yes, send all of them again',
          answer: async (fields, visit) => {
            const { criteria } = await readNotificationFilter(this.clients, fields);
            if (criteria === null) throw badRequest('the filter has a fault');
            return `/ops/resends/${await this.resends.startFor(criteria, visit)}`;
          },
        },
      },
    },
  ];

  private async show(visit: Visit): Promise<View> {
    const input = visit.refusal?.given ?? visit.query;
    const filter = await readNotificationFilter(this.clients, input);
    const { before: cursor = '' } = input;
    const before = ID.test(cursor) ? cursor : '';
    const page = filter.criteria && (await this.webhooks.page(filter.criteria, before || null, PAGE_SIZE));
    const body = html`${views(filter)} ${filterForm(NOTIFICATIONS_PATH, FILTER_FIELDS, filter)} ${HINT}
    ${choices(filter)} ${page && list(visit, filter, page, before)}`;
    return {
      title: 'Notifications',
      section: 'notifications',
      body,
      isLive: before === '' && page !== null,
      ...(page === null && { status: 400 }),
    };
  }
}

/** The lists that are needed most, as links. */
const views = ({ given }: NotificationFilter): Html =>
  html`<nav class="actions" aria-label="Lists">
    ${[...STATUS_FILTERS].map(([status, { name }]) => {
      const isCurrent = given.status === status && html`aria-current="page"`;
      return html`<a class="button" href="${listHref({ ...given, status })}" ${isCurrent}>${name}</a>`;
    })}
  </nav>`;

const HINT = html`<p class="hint">
  A time is ${MOMENT_HINT}. The address of this page keeps the filter: save it as a link.
</p>`;

const choices = ({ given, choices: found }: NotificationFilter): Html | false =>
  found.length > 0 &&
  html`<section class="card">
    <h2>Which client?</h2>
    <ul>
      ${found.map(
        ({ id, name }) =>
          html`<li><a href="${listHref({ ...given, client: id })}">${name}</a> <span class="dim">${id}</span></li>`,
      )}
    </ul>
  </section>`;

function list(visit: Visit, filter: NotificationFilter, { webhooks, next, isCut }: WebhookPage, before: string): Html {
  const isSelectable = visit.mayChange && webhooks.some(isOpen);
  const nothing = !isCut && emptyState(before === '' ? nothingFor(filter) : 'There are no older ones.');
  const { given } = filter;
  return html`${webhooks.length === 0 ? nothing : notificationTable(webhooks, isSelectable)}
  ${isCut && next && cut(next)}
  ${pager((before) => listHref({ ...given, before }), before, next, ['Newest', isCut ? 'Search older ones' : 'Older'])}
  ${isSelectable && selectionForm(visit, filter)} ${resendAllForm(visit, filter)}`;
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
      ${hiddenFields(given)}`,
    SELECTION_FORM,
  );

/** Only where the list has FAILED ones alone, so that the operator sees what is sent. */
function resendAllForm(visit: Visit, { given, criteria, client }: NotificationFilter): Html | null {
  if (criteria?.status !== 'FAILED' || criteria.isSentAgain === true) return null;
  // A duration before now would mean other notifications when the form is sent.
  const moments = { since: exact(criteria.since), until: exact(criteria.until), client: client?.id ?? '' };
  return visit.form(
    'resend-all',
    html`<h2>Send all of this list again</h2>
      <p class="hint">
        All FAILED notifications ${client === null ? 'of every client' : html`of ${clientLink(client)}`} that fit the
        filter, also those on further pages. Left out is what has a newer, pending or delivered notification of the same
        order.
      </p>
      ${hiddenFields({ ...given, ...moments })}`,
  );
}

const hiddenFields = (given: NotificationFilter['given']): Html[] =>
  Object.entries(given).map(([name, value]) => hiddenField(name, value));

const exact = (ms: number | null): string => (ms === null ? '' : new Date(ms).toISOString());
