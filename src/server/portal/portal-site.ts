import { Inject, Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setActor } from '../../http/exchange.js';
import { type Html, html } from '../../http/html.js';
import { postForm, setViewer, viewerOf } from '../../http/pages/form.js';
import type { View } from '../../http/pages/site.js';
import { Problem } from '../../http/problem.js';
import { OPEN_PATH, PORTAL_PATH } from '../../portal/portal-links.js';
import { type PortalOwner, PortalSessions } from '../../portal/portal-sessions.js';
import { BrowserSessions, namesItsPage, SAFE_METHODS } from '../console/access/browser-sessions.js';
import { isUse } from '../console/access/operator-access.js';
import { contentOf, OPS_HEADERS, Site } from '../console/frame/frame.js';
import { brandOf, shellOf } from '../console/frame/shell.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';

export const OVERVIEW_PATH = `${PORTAL_PATH}/overview`;
export const OPEN_ROUTE = `${OPEN_PATH}/:token`;
export const SIGN_OUT_PATH = `${PORTAL_PATH}/sign-out`;

const SECTIONS = {
  overview: 'Overview',
  notifications: 'Notifications',
  missed: 'Missed',
  orders: 'Orders',
  settings: 'Settings',
  record: 'Record',
};

/** What is around a page: the name of the client, and the sections. */
const shell = (request: FastifyRequest, page: View): Html =>
  shellOf({
    brand: brandOf(PORTAL_PATH),
    bar: html`<div class="u-who">
      ${viewerOf(request)?.name} ${postForm(request, SIGN_OUT_PATH, { button: 'Sign out', isForViewers: true })}
    </div>`,
    sections: Object.entries(SECTIONS).map(([key, title]) => ({
      address: `${PORTAL_PATH}/${key}`,
      title,
      isCurrent: key === page.section,
    })),
    content: contentOf(page),
  });

export const PORTAL_SITE = new Site(PORTAL_PATH, shell);

/** The cookies of the portal, and who is signed in with them. */
@Injectable()
export class PortalBrowsers extends BrowserSessions<PortalOwner> {
  constructor(sessions: PortalSessions, @Inject(SERVER_CONFIG) { publicUrl }: Config) {
    super(sessions, 'usher-portal', publicUrl, publicUrl);
  }

  /** Checks every request of the portal. False if the browser was sent to the entry instead. Throws 403. */
  async check(request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    const { url = '' } = request.routeOptions;
    void reply.headers(OPS_HEADERS);
    if (PORTAL_SITE.assets.some(({ path }) => path === url)) return true;
    const isRead = SAFE_METHODS.includes(request.method);
    if (!isRead && (this.isCrossSite(request) || !namesItsPage(request)))
      throw forbidden('this request comes from a page of another site; use the pages at /portal');
    // Who opens a link gets a new session, whoever was signed in before.
    if (url === OPEN_ROUTE) return true;
    const session = this.read(request, 'session');
    const owner = session && (await this.owner(request, session, isUse(request)));
    if (owner) {
      const { client, mayChange } = owner;
      if (!isRead && !mayChange && url !== SIGN_OUT_PATH)
        throw forbidden('your link lets you see everything and change nothing; ask for another one');
      setViewer(request, { name: client.name, session, mayChange, clientId: client.id });
      setActor(request, 'client', client.id);
    } else if (url !== PORTAL_PATH) {
      void reply.redirect(PORTAL_PATH, 303);
      return false;
    }
    return true;
  }
}

const forbidden = (detail: string): Problem => new Problem(403, 'Forbidden', detail);
