import { html } from '../../http/html.js';
import { type BrowserPage, link } from '../../http/pages/page.js';
import { filled } from '../../values/member-texts.js';
import type { AuthorizationSite } from './authorization-site.js';
import type { AuthorizationTarget } from './authorizations.js';
import type { ConnectedApplication } from './connected-applications.js';

export const CONNECTIONS = '/auth/connections';

interface ConsentView {
  target: AuthorizationTarget;
  account: string;
  form: string;
  otherAccountUrl: string;
}

/** Asks for everything or nothing, because there are no scopes. */
export function consentPage(
  site: AuthorizationSite,
  { target, account, form, otherAccountUrl }: ConsentView,
): BrowserPage {
  const { memberTexts: texts, brandName: owner } = site.brand;
  const { host } = new URL(target.redirectUri);
  const application = target.client.name;
  return {
    title: filled(texts.consentTitle, { application, owner }),
    leadsAway: true,
    body: html`<p>${filled(texts.account, { account })} ${link(otherAccountUrl, texts.otherAccount)}</p>
      <p>${filled(texts.consent, { application })}</p>
      <ul>
        <li>${texts.consentToOrder}</li>
        <li>${texts.consentToSee}</li>
      </ul>
      <p>${texts.consentLimits}</p>
      <form method="post" action="${site.url('/auth/consent')}">
        <input type="hidden" name="form" value="${form}" />
        <p class="buttons">
          <button class="main" name="decision" value="allow">${texts.allow}</button>
          <button name="decision" value="decline">${texts.cancel}</button>
        </p>
      </form>
      <p class="dim">${filled(texts.consentEnd, { host })} ${link(site.url(CONNECTIONS), texts.connectionsTitle)}</p>`,
  };
}

interface ConnectionsView {
  account: string;
  applications: ConnectedApplication[];
  form: string;
}

export function connectionsPage(
  site: AuthorizationSite,
  { account, applications, form }: ConnectionsView,
): BrowserPage {
  const { memberTexts: texts, brandName: owner } = site.brand;
  // Days are those of the process's time zone.
  const days = new Intl.DateTimeFormat(texts.language, { dateStyle: 'long' });
  const connection = ({ clientId, name: application, givenAt }: ConnectedApplication) =>
    html`<section>
      <h2>${application}</h2>
      <p>${filled(texts.connectedOn, { date: days.format(givenAt) })}</p>
      <form method="post" action="${site.url(CONNECTIONS)}">
        <input type="hidden" name="form" value="${form}" />
        <input type="hidden" name="client_id" value="${clientId}" />
        <button aria-label="${filled(texts.removeAccessOf, { application })}">${texts.removeAccess}</button>
      </form>
    </section>`;
  return {
    title: texts.connectionsTitle,
    body: html`<p>${filled(texts.account, { account })} ${link(site.signOutUrl, texts.signOut)}</p>
      <p>${filled(applications.length === 0 ? texts.noConnections : texts.connections, { owner })}</p>
      ${applications.map(connection)}`,
  };
}
