import { Injectable } from '@nestjs/common';
import { AuditLog } from '../../../audit/audit.module.js';
import { type Html, html } from '../../../http/html.js';
import { notFound, unprocessable } from '../../../http/problem.js';
import { type TestResult, TestNotifications } from '../../../webhooks/api/test-notifications.js';
import { HOST_LENGTH } from '../../../webhooks/contact/failing-host.entity.js';
import { LAST_DAY, LAST_WEEK, type Range } from '../figures/figures.js';
import type { Page, View, Visit } from '../frame/pages.js';
import { type Columns, notice, receiverLink, table, time } from '../frame/parts.js';
import { FIGURES, noAttempts, reasonOf, receiverPage } from './receiver-page.js';
import { type ListedHost, MAX_HOSTS, ReceiversData } from './receivers-data.js';

const PATH = '/ops/receivers';

/** The hosts that notifications are sent to. */
@Injectable()
export class ReceiversPages {
  constructor(
    private readonly data: ReceiversData,
    private readonly tests: TestNotifications,
    private readonly audit: AuditLog,
  ) {}

  readonly pages: Page[] = [
    { path: PATH, show: (visit) => this.list(visit) },
    {
      path: `${PATH}/:host`,
      show: (visit) => this.show(visit),
      actions: {
        test: { button: 'Send a test', answer: ({ client = '' }, visit) => this.test(client, visit) },
      },
    },
  ];

  private async list({ query }: Visit): Promise<View> {
    const range = rangeOf(query.range);
    const hosts = await this.data.list(range);
    const body = hosts === null ? notice('bad', 'The database does not answer.') : receivers(hosts, range);
    return { title: 'Receivers', section: 'receivers', body, isLive: true };
  }

  private async show(visit: Visit, test: TestResult | null = null): Promise<View> {
    const host = hostOf(visit);
    const range = rangeOf(visit.query.range);
    const shown = { range, ranges: rangeLinks(visit.path, range), test };
    const body = receiverPage(visit, await this.data.of(host, range), shown);
    return { title: `Receiver ${host}`, section: 'receivers', body };
  }

  /** Its result is not stored, so the answer itself shows it. */
  private async test(client: string, visit: Visit): Promise<View> {
    const host = hostOf(visit);
    const url = await this.data.notifyUrlAt(host, client);
    if (url === null) throw unprocessable('The client has no Notify URL at this host; choose another one');
    const result = await this.tests.sendTo({ id: client }, url);
    const detail = { host, outcome: result.outcome };
    await this.audit.record({ action: 'webhook.tested', subject: `client:${client}`, actor: visit.actor, detail });
    return this.show(visit, result);
  }
}

/** No host of a URL contains a space or a control character, and Postgres refuses NUL. */
function hostOf({ id: host }: Visit): string {
  if (host.length > HOST_LENGTH || /[\s\p{Cc}]/u.test(host)) throw notFound('there is no such receiver');
  return host;
}

/** The ranges that a page offers, by the value in its address. */
const RANGE_NAMES: Record<string, Range> = { '24h': LAST_DAY, '7d': LAST_WEEK };

const rangeOf = (given: string | undefined): Range => (given === '7d' ? LAST_WEEK : LAST_DAY);

/** Links to the other ranges of the same page. */
const rangeLinks = (path: string, current: Range): Html =>
  html`<nav class="actions" aria-label="Range">
    ${Object.entries(RANGE_NAMES).map(([value, range]) =>
      range === current
        ? html`<strong aria-current="true">${range.name}</strong>`
        : html`<a href="${path}?range=${value}">${range.name}</a>`,
    )}
  </nav>`;

const receivers = (hosts: ListedHost[], range: Range): Html =>
  html`${rangeLinks(PATH, range)}
    <p class="dim">
      The hosts of Notify URLs, those with the most failed attempts first. p50 and p95 are of the time of an attempt.
    </p>
    ${table(COLUMNS, hosts, noAttempts(range))}
    ${hosts.length === MAX_HOSTS && html`<p class="dim">Only ${MAX_HOSTS} receivers are shown.</p>`}`;

const COLUMNS: Columns<ListedHost> = {
  Receiver: ({ host }) => receiverLink(host),
  Clients: { number: ({ clients }) => clients },
  ...FIGURES,
  'Failing since': ({ failing }) => time(failing && failing.failingSince),
  Why: ({ failing }) => failing && reasonOf(failing),
};
