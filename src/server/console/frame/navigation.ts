import { Html, html } from '../../../http/html.js';

export type Section =
  'overview' | 'notifications' | 'receivers' | 'clients' | 'members' | 'audit' | 'health' | 'queues' | 'operators';

const SECTIONS: Record<Section, { name: string; path: string }> = {
  overview: { name: 'Overview', path: '/ops' },
  notifications: { name: 'Notifications', path: '/ops/notifications' },
  receivers: { name: 'Receivers', path: '/ops/receivers' },
  clients: { name: 'Clients', path: '/ops/clients' },
  members: { name: 'Members', path: '/ops/members' },
  audit: { name: 'Audit', path: '/ops/audit' },
  health: { name: 'Health', path: '/ops/health' },
  queues: { name: 'Queues', path: '/ops/queues' },
  operators: { name: 'Operators', path: '/ops/operators' },
};

/** The links to all sections; the current one is marked. */
export const sectionLinks = (current: Section | null): Html =>
  html`<ul>
    ${Object.entries(SECTIONS).map(
      ([section, { name, path }]) =>
        html`<li>
          <a href="${path}" ${section === current ? new Html(' aria-current="page"') : null}>${name}</a>
        </li>`,
    )}
  </ul>`;

/** The mark and the name, which lead to the overview. */
export const brand = (): Html =>
  html`<a class="u-brand" href="/ops">
    <svg viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2.4">
      <path d="M4 3v7a6 6 0 0 0 12 0V3" stroke-linecap="round" />
      <circle cx="10" cy="9" r="1.6" fill="currentColor" stroke="none" />
    </svg>
    Usher
  </a>`;
