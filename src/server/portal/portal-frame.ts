import type { FastifyRequest } from 'fastify';
import { type Html, html } from '../../http/html.js';
import { postForm, viewerOf } from '../../http/pages/form.js';
import type { View } from '../../http/pages/site.js';
import { OPEN_PATH, PORTAL_PATH } from '../../portal/portal-links.js';
import { brandOf, contentOf, sectionLink, Site } from '../console/frame/frame.js';

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

/** The brand of the operator belongs beside the name of the client. */
function shell(request: FastifyRequest, page: View): Html {
  return html`<div class="u-frame">
    <a class="skip" href="#content">Skip to the content</a>
    <header class="u-top">
      <div class="u-start">${brandOf(PORTAL_PATH)}</div>
      <div class="u-who">
        ${viewerOf(request)?.name} ${postForm(request, SIGN_OUT_PATH, { button: 'Sign out', isForViewers: true })}
      </div>
      <button type="button" class="u-menu" popovertarget="sections">Menu</button>
    </header>
    <nav class="u-nav" id="sections" popover aria-label="Sections">
      <ul>
        ${Object.entries(SECTIONS).map(([key, title]) => sectionLink(`${PORTAL_PATH}/${key}`, title, key === page.section))}
      </ul>
    </nav>
    <main id="content" tabindex="-1">${contentOf(page)}</main>
  </div>`;
}

export const PORTAL_SITE = new Site(PORTAL_PATH, shell);
