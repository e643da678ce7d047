import { type Html, html } from '../../../http/html.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import type { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { ratio, shownQuantile } from '../figures/numbers.js';
import { LAST_DAY, LAST_WEEK, type Range } from '../figures/periods.js';
import { emptyState, notice, receiverLink, table, time } from '../frame/parts.js';
import { type ListedHost, MAX_HOSTS } from './receivers-data.js';

/** The ranges that a page offers, by the value in its address. */
const RANGE_NAMES: Record<string, Range> = { '24h': LAST_DAY, '7d': LAST_WEEK };

export const rangeOf = (given: unknown): Range => (given === '7d' ? LAST_WEEK : LAST_DAY);

/** Links to the other ranges of the same page. */
export const rangeLinks = (path: string, current: Range): Html =>
  html`<nav class="actions" aria-label="Range">
    ${Object.entries(RANGE_NAMES).map(([value, range]) =>
      range === current
        ? html`<strong aria-current="true">${range.name}</strong>`
        : html`<a href="${path}?range=${value}">${range.name}</a>`,
    )}
  </nav>`;

const COLUMNS = ['Receiver', 'Clients', 'Attempts', 'Failed', 'Succeeded', 'p50', 'p95', 'Failing since', 'Why'].map(
  (name, index) => ({ name, isNumber: index > 0 && index < 7 }),
);

/** `hosts` is null while the database does not answer. */
export function receiversPage(hosts: ListedHost[] | null, range: Range): Html {
  if (hosts === null) return notice('bad', 'The database does not answer.');
  return html`${rangeLinks('/ops/receivers', range)}
    <p class="dim">
      The hosts of Notify URLs, those with the most failed attempts first. p50 and p95 are of the time of an attempt.
    </p>
    ${hosts.length === 0 ? noAttempts(range) : table(COLUMNS, hosts.map(hostRow))}
    ${hosts.length === MAX_HOSTS ? html`<p class="dim">Only ${MAX_HOSTS} receivers are shown.</p>` : null}`;
}

export const noAttempts = ({ name }: Range): Html =>
  emptyState(`No attempts in the ${name.toLowerCase()}. Each host that notifications are sent to is shown here.`);

function hostRow({ host, clients, figures, failing }: ListedHost): Html[] {
  const { attempts, failures, successRate, duration } = figures;
  return [
    receiverLink(host),
    html`${clients}`,
    html`${attempts}`,
    html`${failures}`,
    html`${ratio(successRate)}`,
    html`${shownQuantile(duration.p50)}`,
    html`${shownQuantile(duration.p95)}`,
    time(failing?.failingSince ?? null),
    html`${failing === null ? '–' : reasonOf(failing)}`,
  ];
}

/** Why a host fails, in words. */
export const reasonOf = ({ lastDiagnosis, lastError }: FailingHost): string =>
  lastDiagnosis === null ? lastError : DIAGNOSES[lastDiagnosis].meaning;
