import { type HttpRequest, originOf } from '../../../http/exchange.js';
import { html } from '../../../http/html.js';
import { checkField, hiddenField } from '../../../http/pages/fields.js';
import { postForm } from '../../../http/pages/form.js';
import { copiedId, notice } from '../../../http/pages/parts.js';
import type { Action } from '../../../http/pages/site.js';
import type { PortalLinks } from '../../../portal/portal.js';
import { parseDuration } from '../../../values/duration.js';
import { clientPath } from '../frame/links.js';

const MAKE = { button: 'Make a link', kind: 'primary' } as const;
const MAY_CHANGE = 'Whoever opens it may also change the Notify URL, the contact and the secret';
const VALID = { name: 'valid', label: 'Valid for', options: { '7d': '7 days', '24h': '24 hours', '1h': '1 hour' } };

export const portalActions = (links: PortalLinks): Record<string, Action> => ({
  'portal-link': {
    ...MAKE,
    fields: () => [checkField('mayChange', MAY_CHANGE, false), VALID],
    // The link is not stored, so only this answer shows it.
    answer: async ({ mayChange, secret, valid = '' }, { id: clientId, actor, request }) => {
      const showsSecret = secret === 'yes';
      const { url } = await links.create(clientId, {
        mayChange: mayChange === 'yes',
        showsSecret,
        validMs: parseDuration(valid) ?? 0,
        actor,
      });
      const { href } = new URL(url, originOf(request));
      const body = html`${notice('warning', 'Copy the link now. It is not shown again.')}
        <p>${copiedId(href)}</p>
        <p>The first person who opens it is signed in${showsSecret && ' and sees the secret, once'}.</p>
        <p><a class="button" href="${clientPath(clientId)}#portal">To the client</a></p>`;
      return { title: 'Link to the portal', body };
    },
  },
  'withdraw-link': {
    button: 'Withdraw',
    kind: 'danger',
    fields: (id) => [hiddenField('link', id as string)],
    done: 'The link is withdrawn, and the session that it opened has ended.',
    run: ({ link = '' }, { id, actor }) => links.withdraw(id, link, actor),
  },
});

/** The form beside a secret that was issued just now. */
export const handOver = (request: HttpRequest, clientId: string) =>
  html`<h2>Hand over the secret by a link, which shows it once</h2>
    ${postForm(request, `${clientPath(clientId)}/portal-link`, MAKE, [
      hiddenField('secret', 'yes'),
      checkField('mayChange', MAY_CHANGE, true),
      VALID,
    ])}`;
