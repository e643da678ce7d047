import { html } from '../../../http/html.js';
import type { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { diagnosisOf } from '../../../webhooks/transport/diagnosis.js';
import { notice, time } from '../../../http/pages/parts.js';
import { clientLink, receiverLink } from '../frame/links.js';
import { isAlarming, type NamedClient } from './overview-data.js';

export const reasonOf = ({ lastDiagnosis, lastError }: FailingHost) =>
  (lastDiagnosis && diagnosisOf(lastDiagnosis).meaning) ?? `${lastError}.`;

/** Which host fails, since when and why, and what to do or who has acknowledged it. */
export function failure(failing: FailingHost, client?: NamedClient) {
  const { host, failingSince, lastDiagnosis, alarmEndedAt, acknowledgedBy, acknowledgement } = failing;
  const known =
    acknowledgedBy &&
    html`<strong>Acknowledged by ${acknowledgedBy} ${time(alarmEndedAt)}: ${acknowledgement}</strong>`;
  return html`${receiverLink(host)}${client && html` of ${clientLink(client)}`} has failed since ${time(failingSince)}.
  ${reasonOf(failing)} ${known ?? (lastDiagnosis && diagnosisOf(lastDiagnosis).remedy)}`;
}

export const failureNotice = (failing: FailingHost, client?: NamedClient) =>
  notice(isAlarming(failing) ? 'bad' : 'warning', failure(failing, client));
