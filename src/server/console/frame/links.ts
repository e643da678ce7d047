import { html } from '../../../http/html.js';
import { copyButton, shortened } from '../../../http/pages/parts.js';

/** Without a name, such as that of an erased client, the link shows the end of its id. */
export const clientLink = ({ id, name }: { id: string; name?: string | null | undefined }) =>
  html`<a href="${clientPath(id)}" title="${id}">${name || shortened(id)}</a>`;

export const clientPath = (id: string) => `/ops/clients/${encodeURIComponent(id)}`;

export const webhookLink = (id: string) =>
  html`<span class="id"
    ><a href="~/webhooks/${encodeURIComponent(id)}" title="${id}">${shortened(id)}</a>${copyButton(id)}</span
  >`;

/** `host` is the host of a Notify URL, with its port if it has one. Only the console has a page about it. */
export const receiverLink = (host: string, clientId: string | null = null) =>
  clientId === null ? html`<a href="${receiverPath(host)}">${host}</a>` : html`${host}`;

export const receiverPath = (host: string) => `/ops/receivers/${encodeURIComponent(host)}`;

export const orderLink = (referenceId: string) =>
  html`<span class="id"
    ><a href="~/notifications?order=${encodeURIComponent(referenceId)}" title="${referenceId}"
      >${shortened(referenceId)}</a
    >${copyButton(referenceId)}</span
  >`;

export const memberLink = ({ id, name }: { id: string; name: string }) =>
  html`<a href="/ops/members/${encodeURIComponent(id)}">${name}</a>`;

export const operatorLink = (name: string) => html`<a href="/ops/operators/${encodeURIComponent(name)}">${name}</a>`;
