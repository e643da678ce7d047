import { Inject, Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DataSource } from 'typeorm';
import { addNotice } from '../../clients/portal.entity.js';
import { CLIENT_ID_LENGTH } from '../../database/columns.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { addressGroup, addressOf } from '../../http/exchange.js';
import { html } from '../../http/html.js';
import { type FormPart, isSearchable, type Texts } from '../../http/pages/fields.js';
import { postForm, setViewer } from '../../http/pages/form.js';
import { refused } from '../../http/pages/form-tokens.js';
import { copiedId, facts, notice } from '../../http/pages/parts.js';
import type { Action, Page, Visit } from '../../http/pages/site.js';
import { forbidden, tooManyRequests } from '../../http/problem.js';
import { limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { OPEN_PATH, PORTAL_PATH, type PortalOwner, PortalSessions } from '../../portal/portal.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { BrowserSessions, SAFE_METHODS } from '../console/access/browser-sessions.js';
import { OPS_HEADERS, type Site, siteOf } from '../console/frame/frame.js';

export const OVERVIEW_PATH = `${PORTAL_PATH}/overview`;
const SIGN_OUT_PATH = `${PORTAL_PATH}/sign-out`;
const OPEN_ROUTE = `${OPEN_PATH}/:token`;
const SECTIONS = ['Overview', 'Notifications', 'Missed', 'Orders', 'Settings', 'Record'];

/** How many links may be asked for from one address, and for one client. */
const ASKED_FROM_ADDRESS = { count: 10, seconds: 3_600 };
const ASKED_FOR_CLIENT = { count: 3, seconds: 3_600 };

const CLIENT = { name: 'client', label: 'Client id', maxLength: CLIENT_ID_LENGTH, isRequired: true };

/** How a client gets into its portal and out of it: the cookies, the check of every request, and the pages. */
@Injectable()
export class PortalEntry extends BrowserSessions<PortalOwner> {
  readonly site: Site;

  constructor(
    private readonly portals: PortalSessions,
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly limits: Limits,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    const { brandName, publicUrl } = options;
    super(portals, PORTAL_PATH, publicUrl);
    this.site = siteOf({
      home: PORTAL_PATH,
      sections: SECTIONS,
      bar: ({ name }, request) =>
        html`<div class="u-who">
          ${name} ${postForm(request, SIGN_OUT_PATH, { button: 'Sign out', isForViewers: true })}
        </div>`,
      overview: OVERVIEW_PATH,
      name: brandName,
      base: new URL(publicUrl ?? 'http://host').pathname.replace(/\/$/, ''),
    });
  }

  readonly pages: Page[] = [
    {
      path: PORTAL_PATH,
      show: (visit) => {
        if (visit.viewer) return OVERVIEW_PATH;
        const isMailed = this.options.contactMessages !== null;
        const body = html`<p>
            Ask your operator for a link${isMailed && ', or have one sent to the contact of the client'}.
          </p>
          ${isMailed && visit.form('ask')}`;
        return { title: 'Portal', body };
      },
      actions: { ask: this.entryForm('Send me a link', (fields, visit) => this.ask(fields, visit), CLIENT) },
    },
    {
      path: OPEN_ROUTE,
      // Mail and chat programs fetch links, so only the button opens the portal.
      show: (visit) => ({
        title: 'Portal',
        body: html`<p>This link opens the portal once. You are then signed in with this browser.</p>
          ${visit.form('open')}`,
      }),
      actions: { open: this.entryForm('Open the portal', (_, visit) => this.open(visit)) },
    },
    this.signOutPage(PORTAL_PATH),
  ];

  /** Checks every request of the portal. Redirects a browser that is not signed in to the entry. Throws 403. */
  async check(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { url = '' } = request.routeOptions;
    void reply.headers(OPS_HEADERS);
    if (this.site.assets.some(({ path }) => path === url)) return;
    const isRead = SAFE_METHODS.includes(request.method);
    if (!isRead) this.checkPage(request);
    // Opening a link starts a new session, even if somebody is signed in.
    if (url === OPEN_ROUTE) return;
    const client = await this.signedIn(request);
    if (client === null) return url === PORTAL_PATH ? undefined : reply.redirect(this.site.address('~'), 303);
    if (!isRead && !client.mayChange && url !== SIGN_OUT_PATH)
      throw forbidden('your link lets you see everything and change nothing; ask for another one');
    setViewer(request, client);
  }

  /** A form before the sign-in, posted to the address of its page. Throws 403 unless this browser got it from there. */
  private entryForm(button: string, answer: NonNullable<Action['answer']>, ...parts: FormPart[]): Action {
    return {
      at: '',
      button,
      kind: 'primary',
      isForViewers: true,
      fields: (_, visit) => [this.formField(visit), ...parts],
      answer: (fields, visit) => {
        if (!this.isOwnForm(visit, fields)) throw refused();
        return answer(fields, visit);
      },
    };
  }

  /** The answer does not reveal whether the client exists, because only a worker looks it up. */
  private async ask({ client = '' }: Texts, { request }: Visit) {
    const clientId = client.trim();
    const address = limitKey(addressGroup(addressOf(request) ?? ''));
    const wait = this.limits.limiter('portal-entry-address', ASKED_FROM_ADDRESS).count(address);
    if (wait > 0) throw tooManyRequests('too many links were asked for from this address; try again later', wait);
    const isLimited = this.limits.limiter('portal-entry', ASKED_FOR_CLIENT).count(limitKey(clientId)) > 0;
    if (!isLimited && isSearchable(clientId) && clientId.length <= CLIENT_ID_LENGTH)
      await addNotice(this.dataSource.manager, this.options, { clientId, kind: 'link', contact: null });
    const body = html`<p>
      If there is a client with this id, and it has a contact, a link is on its way to the contact. It is valid for an
      hour. At most ${ASKED_FOR_CLIENT.count} are sent in an hour.
    </p>`;
    return { title: 'Check your mailbox', body };
  }

  private async open({ request, reply, id: token }: Visit) {
    const opened = await this.portals.open(token, addressOf(request));
    if (!opened) return { title: 'This link is not valid', body: NOT_VALID, status: 410 };
    if (opened === 'disabled') return { title: 'The client is disabled', body: DISABLED, status: 403 };
    await this.begin(request, reply, opened);
    const { client, secret, showsSecret } = opened;
    if (!showsSecret) return OVERVIEW_PATH;
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
const DISABLED = html`<p>Ask your operator to enable the client, and for a new link.</p>`;
const NOT_VALID = html`<p>It was opened before or withdrawn, or it has expired.</p>
  <p><a class="button" href="${PORTAL_PATH}">Ask for another one</a></p>`;
