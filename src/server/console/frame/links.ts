import { type Html, html } from '../../../http/html.js';
import { copyButton, shortened } from '../../../http/pages/parts.js';

/** Without a name, such as that of an erased client, the link shows the end of its id. */
export const clientLink = ({ id, name }: { id: string; name?: string | null | undefined }): Html =>
  html`<a href="${clientPath(id)}" title="${id}">${name || shortened(id)}</a>`;

export const clientPath = (id: string): string => `/ops/clients/${encodeURIComponent(id)}`;

export const webhookLink = (id: string): Html =>
  html`<span class="id"
    ><a href="/ops/webhooks/${encodeURIComponent(id)}" title="${id}">${shortened(id)}</a>${copyButton(id)}</span
  >`;

/** `host` is the host of a Notify URL, with its port if it has one. */
export const receiverLink = (host: string): Html =>
  html`<a href="/ops/receivers/${encodeURIComponent(host)}">${host}</a>`;

/** Leads to the notifications of the order. */
export const orderLink = (referenceId: string): Html =>
  html`<span class="id"
    ><a href="/ops/notifications?order=${encodeURIComponent(referenceId)}" title="${referenceId}"
      >${shortened(referenceId)}</a
    >${copyButton(referenceId)}</span
  >`;
