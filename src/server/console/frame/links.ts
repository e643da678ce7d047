import { html } from '../../../http/html.js';
import { copyButton, shortened } from '../../../http/pages/parts.js';

/** Without a name, such as that of an erased client, the link shows the end of its id. */
export const clientLink = ({ id, name }: { id: string; name?: string | null | undefined }) =>
  html`<a href="${clientPath(id)}" title="${id}">${name || shortened(id)}</a>`;

export const clientPath = (id: string) => `/ops/clients/${encodeURIComponent(id)}`;

/** The end of an id, as a link to the address that ends with the id. */
const idLink = (address: string, id: string) =>
  html`<span class="id"
    ><a href="${address}${encodeURIComponent(id)}" title="${id}">${shortened(id)}</a>${copyButton(id)}</span
  >`;

export const webhookLink = (id: string) => idLink('~/webhooks/', id);

export const orderLink = (referenceId: string) => idLink('~/notifications?order=', referenceId);

/** `host` is the host of a Notify URL, with its port if it has one. Only the console has a page about it. */
export const receiverLink = (host: string, clientId: string | null = null) =>
  clientId === null ? html`<a href="${receiverPath(host)}">${host}</a>` : html`${host}`;

export const receiverPath = (host: string) => `/ops/receivers/${encodeURIComponent(host)}`;

export const memberLink = ({ id, name }: { id: string; name: string }) =>
  html`<a href="/ops/members/${encodeURIComponent(id)}">${name}</a>`;

export const operatorLink = (name: string) => html`<a href="/ops/operators/${encodeURIComponent(name)}">${name}</a>`;
