import { type Html, html } from '../../http/html.js';
import type { ConnectedApplication } from './connected-applications.js';

/** What the consent page shows. URLs are absolute. */
interface ConsentView {
  application: string;
  owner: string;
  /** The host that the browser goes to afterwards. */
  returnHost: string;
  action: string;
  form: string;
  otherAccountUrl: string;
  connectionsUrl: string;
}

/** Asks for everything or nothing, because there are no scopes. */
export const consentPage = (view: ConsentView): Html =>
  html`<h1>Allow ${view.application} to use your account?</h1>
    <p>
      You are signed in as <strong>${view.owner}</strong>. <a href="${view.otherAccountUrl}">Use another account</a>
    </p>
    <p><strong>${view.application}</strong> will be able to:</p>
    <ul>
      <li>order cinema tickets for you,</li>
      <li>see the orders that it makes for you, and whether it was notified of them.</li>
    </ul>
    <p>It does not get your password, and does not see your other orders.</p>
    <form method="post" action="${view.action}">
      <input type="hidden" name="form" value="${view.form}" />
      <p class="buttons">
        <button class="main" name="decision" value="allow">Allow</button>
        <button name="decision" value="decline">Decline</button>
      </p>
    </form>
    <p class="dim">
      You then return to ${view.returnHost}. You can withdraw the access at any time, under
      <a href="${view.connectionsUrl}">connected applications</a>.
    </p>`;

interface ConnectionsView {
  owner: string;
  applications: ConnectedApplication[];
  action: string;
  form: string;
  signOutUrl: string | undefined;
}

export const connectionsPage = ({ owner, applications, action, form, signOutUrl }: ConnectionsView): Html =>
  html`<h1>Connected applications</h1>
    <p>You are signed in as <strong>${owner}</strong>. ${signOutUrl && html`<a href="${signOutUrl}">Sign out</a>`}</p>
    ${applications.length === 0 && html`<p>No application may use your account.</p>`}
    ${applications.map((application) => connection(application, action, form))}`;

const connection = ({ clientId, name, givenAt }: ConnectedApplication, action: string, form: string): Html =>
  html`<section>
    <h2>${name}</h2>
    <p>May order tickets for you since ${new Date(givenAt).toISOString().slice(0, 10)}.</p>
    <form method="post" action="${action}">
      <input type="hidden" name="form" value="${form}" />
      <input type="hidden" name="client_id" value="${clientId}" />
      <button aria-label="Withdraw access of ${name}">Withdraw access</button>
    </form>
  </section>`;
