import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { addNotice } from '../../clients/contact-notice.entity.js';
import { CLIENT_ID_LENGTH } from '../../database/columns.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { addressGroup, addressOf } from '../../http/exchange.js';
import { html } from '../../http/html.js';
import { isSearchable } from '../../http/pages/fields.js';
import { refused } from '../../http/pages/form-token.js';
import { copiedId, facts, notice } from '../../http/pages/parts.js';
import type { Page, View, Visit } from '../../http/pages/site.js';
import { tooManyRequests } from '../../http/problem.js';
import { limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { PORTAL_PATH } from '../../portal/portal-links.js';
import { PortalSessions } from '../../portal/portal-sessions.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { signOutPage } from '../console/access/sign-in-pages.js';
import { OPEN_ROUTE, OVERVIEW_PATH, PortalBrowsers, SIGN_OUT_PATH } from './portal-site.js';

/** Links that an address, and a client, may ask for. */
const ASKED_FROM_ADDRESS = { count: 10, seconds: 3_600 };
const ASKED_FOR_CLIENT = { count: 3, seconds: 3_600 };

const CLIENT = { name: 'client', label: 'Client id', maxLength: CLIENT_ID_LENGTH, isRequired: true };
/** Of a form before the sign-in, which is posted to its page. */
const OWN = { at: '', kind: 'primary', isForViewers: true } as const;

/** How somebody gets into a portal, and out of it. */
@Injectable()
export class EntryPages {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly sessions: PortalSessions,
    private readonly browsers: PortalBrowsers,
    private readonly limits: Limits,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  readonly pages: Page[] = [
    {
      path: PORTAL_PATH,
      show: (visit) => (visit.viewer ? OVERVIEW_PATH : this.entry(visit)),
      actions: {
        ask: {
          ...OWN,
          button: 'Send me a link',
          fields: (_, visit) => [this.browsers.formField(visit), CLIENT],
          answer: (fields, visit) => this.ask(fields, visit),
        },
      },
    },
    {
      path: OPEN_ROUTE,
      // Mail and chat programs fetch links, so only the button opens it.
      show: (visit) => this.openPage(visit),
      actions: {
        open: {
          ...OWN,
          button: 'Open the portal',
          fields: (_, visit) => [this.browsers.formField(visit)],
          answer: (fields, visit) => this.open(fields, visit),
        },
      },
    },
    signOutPage(SIGN_OUT_PATH, PORTAL_PATH, () => this.browsers),
  ];

  private entry(visit: Visit): View {
    const body =
      this.options.contactMessages === null
        ? html`<p>Ask your operator for a link.</p>`
        : html`<p>A link goes to the contact of the client. Without a contact, ask your operator for a link.</p>
            ${visit.form('ask')}`;
    return { title: 'Portal', body };
  }

  /** Nothing differs whether or not there is such a client: a worker looks that up. */
  private async ask(fields: Record<string, string>, visit: Visit): Promise<View> {
    const { client: given = '' } = fields;
    const clientId = given.trim();
    if (!this.browsers.isOwnForm(visit, fields)) throw refused();
    const address = limitKey(addressGroup(addressOf(visit.request) ?? ''));
    const wait = this.limits.limiter('portal-entry-address', ASKED_FROM_ADDRESS).count(address);
    if (wait > 0) throw tooManyRequests('too many links were asked for from this address; try again later', wait);
    const isLimited = this.limits.limiter('portal-entry', ASKED_FOR_CLIENT).count(limitKey(clientId)) > 0;
    if (!isLimited && isSearchable(clientId) && clientId.length <= CLIENT_ID_LENGTH)
      await addNotice(this.dataSource.manager, this.options, { clientId, kind: 'link', contact: null });
    const body = html`<p>
      If there is a client with this id, and it has a contact, a link is on its way to the contact. It is valid for an
      hour. At most ${ASKED_FOR_CLIENT.count} are sent in an hour.
    </p>`;
    return { title: 'Look into your mailbox', body };
  }

  private openPage(visit: Visit): View {
    const body = html`<p>This link opens the portal once. You are then signed in with this browser.</p>
      ${visit.form('open')}`;
    return { title: 'Portal', body };
  }

  private async open(fields: Record<string, string>, visit: Visit): Promise<View | string> {
    const { request, reply, id: token } = visit;
    if (!this.browsers.isOwnForm(visit, fields)) throw refused();
    const opened = await this.sessions.open(token, addressOf(request));
    if (!opened) return { title: 'This link is not valid', body: NOT_VALID, status: 410 };
    if (opened === 'disabled') return { title: 'The client is disabled', body: DISABLED, status: 403 };
    await this.browsers.begin(request, reply, opened);
    const { client, secret } = opened;
    if (!opened.showsSecret) return OVERVIEW_PATH;
    const body = html`${
        secret === null
          ? notice('bad', SECRET_GONE)
          : html`${notice('warning', 'Copy the secret now. It is not shown again.')}
            ${facts({ 'Client id': copiedId(client.id), 'Client secret': copiedId(secret) })}`
      }
      <p><a class="button" href="${OVERVIEW_PATH}">To the portal</a></p>`;
    return { title: client.name, body };
  }
}

const SECRET_GONE =
  'This link shows no secret: it was replaced, or another link has shown it. If you do not have it, ask your operator for a new one.';
const DISABLED = html`<p>The link was not used up. Ask your operator to enable the client.</p>`;
const NOT_VALID = html`<p>It was opened before or withdrawn, or it has expired.</p>
  <p><a class="button" href="${PORTAL_PATH}">Ask for another one</a></p>`;
