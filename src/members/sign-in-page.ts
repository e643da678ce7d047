import { type Html, html } from '../http/html.js';

export interface SignInView {
  action: string;
  form: string;
  returnTo: string;
  /** Shown again after a wrong password. */
  name: string;
  /** The application that the member comes from; null if it is none. */
  application: string | null;
  fault: string | null;
}

export const signInPage = ({ action, form, returnTo, name, application, fault }: SignInView): Html =>
  html`<h1>Sign in</h1>
    ${application === null ? null : html`<p>to continue to <strong>${application}</strong></p>`}
    ${fault === null ? null : html`<p class="note" role="alert" id="fault">${fault}</p>`}
    <form method="post" action="${action}">
      <input type="hidden" name="form" value="${form}" />
      <input type="hidden" name="return_to" value="${returnTo}" />
      <label for="name">Member name or e-mail address</label>
      <input id="name" name="name" value="${name}" autocomplete="username" autocapitalize="none" required />
      <label for="password">Password</label>
      <input id="password" name="password" type="password" autocomplete="current-password" required />
      <p class="buttons"><button class="main">Sign in</button></p>
    </form>`;

export const signOutPage = (view: { action: string; form: string; owner: string } | null): Html =>
  view === null
    ? html`<h1>You are signed out</h1>
        <p>Applications that you connected can still use your account.</p>`
    : html`<h1>Sign out</h1>
        <p>You are signed in as <strong>${view.owner}</strong>.</p>
        <form method="post" action="${view.action}">
          <input type="hidden" name="form" value="${view.form}" />
          <p class="buttons"><button class="main">Sign out</button></p>
        </form>`;
