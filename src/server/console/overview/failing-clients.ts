import { html } from '../../../http/html.js';
import type { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { diagnosisOf } from '../../../webhooks/transport/diagnosis.js';
import { type Range, withChange } from '../figures/figures.js';
import type { Visit } from '../../../http/pages/site.js';
import { notice, statusBadge, table, time } from '../../../http/pages/parts.js';
import { clientLink, receiverLink } from '../frame/links.js';
import { listHref } from '../notifications/notification-list.js';
import { type FailingClient, isAlarming, type Losses, type NamedClient } from './overview-data.js';

const MAX_SHOWN = 50;

export const reasonOf = ({ lastDiagnosis, lastError }: FailingHost): string =>
  (lastDiagnosis && diagnosisOf(lastDiagnosis).meaning) ?? `${lastError}.`;

/** Which host fails, since when and why, and what to do or who has acknowledged it. */
function failure(failing: FailingHost, client?: NamedClient) {
  const { host, failingSince, lastDiagnosis, alarmEndedAt, acknowledgedBy, acknowledgement } = failing;
  const known =
    acknowledgedBy &&
    html`<strong>Acknowledged by ${acknowledgedBy} ${time(alarmEndedAt)}: ${acknowledgement}</strong>`;
  return html`${receiverLink(host)}${client && html` of ${clientLink(client)}`} has failed since ${time(failingSince)}.
  ${reasonOf(failing)} ${known ?? (lastDiagnosis && diagnosisOf(lastDiagnosis).remedy)}`;
}

export const failureNotice = (failing: FailingHost, client?: NamedClient) =>
  notice(isAlarming(failing) ? 'bad' : 'warning', failure(failing, client));

export const atLeast = (count: number, isCapped: boolean): string =>
  `${count.toLocaleString('en')}${isCapped ? ' or more' : ''}`;

/** What each client has lost, and what can be done about it. The client that has lost the most is first. */
export function failingTable(visit: Visit, range: Range, { clients, since, until }: Losses) {
  const from = new Date(since).toISOString();
  const listOf = ({ id: client }: NamedClient) => listHref({ client, status: 'UNRESOLVED', since: from });
  return table(
    {
      Client: ({ client, isPaused }) => html`${clientLink(client)} ${isPaused && statusBadge('paused')}`,
      'Not delivered': {
        number: ({ client, lost, isCapped }) => html`<a href="${listOf(client)}">${atLeast(lost, isCapped)}</a>`,
      },
      'Ended FAILED, a week before': { number: ({ ended, before }) => withChange(ended, before, String) },
      Receivers: ({ hosts }) => html`${hosts.map((host) => html`<div>${failure(host)}</div>`)}`,
      Actions: (row) => actions(visit, { ...row, range: range.key, since: `${since}`, until: `${until}` }),
    },
    clients.slice(0, MAX_SHOWN),
  );
}

/** A client in the table, and the range that was looked at. */
export type LossRow = FailingClient & { range: string; since: string; until: string };

export const alarming = ({ hosts }: FailingClient): string[] => hosts.filter(isAlarming).map(({ host }) => host);

/** Each opens its form, except for the one that resumes. */
function actions(visit: Visit, row: LossRow) {
  if (!visit.mayChange) return null;
  const form = (name: string, summary: string) =>
    html`<details>
      <summary>${summary}</summary>
      ${visit.form(name, row)}
    </details>`;
  return html`${row.lost > 0 && form('resend', 'Send again')}
  ${alarming(row).length > 0 && form('acknowledge', 'Acknowledge')}
  ${row.isPaused ? visit.form('resume', row) : form('pause', 'Pause')}`;
}
