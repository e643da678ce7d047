import type { DataSource } from 'typeorm';
import { dialectOf, tableOf } from '../../database/data-source.js';
import type { DiagnosisCode } from '../transport/diagnosis.js';
import { Webhook, WebhookAttempt, type WebhookStatus } from '../webhook.entity.js';

/** Which webhooks an operator wants to see or resend: those that fit all fields. Null is any. */
export interface WebhookCriteria {
  status: WebhookStatus | null;
  clientId: string | null;
  referenceId: string | null;
  /** Host, and the port unless it is the scheme's own, of the Notify URL. */
  host: string | null;
  /** Why the last attempt failed. Such a webhook is not SUCCESS. */
  reason: DiagnosisCode | null;
  /** Made at this time or later, in milliseconds since 1970. */
  since: number | null;
  /** Made before this time. */
  until: number | null;
  /** Of FAILED ones: whether another webhook of the same order came later. */
  isSentAgain: boolean | null;
}

export const ANY_WEBHOOK: WebhookCriteria = {
  status: null,
  clientId: null,
  referenceId: null,
  host: null,
  reason: null,
  since: null,
  until: null,
  isSentAgain: null,
};

type Parameter = (value: unknown) => string;

/** SQL conditions on the row `w` that no index answers. Their cost is paid for each row that is looked at. */
export function rowConditions(
  dataSource: DataSource,
  { host = null, reason = null, isSentAgain = null }: Partial<WebhookCriteria>,
  parameter: Parameter,
): string[] {
  return [
    ...(host === null
      ? []
      : [`${dialectOf(dataSource).authorityOf('w.notify_url')} IN (${spellings(host).map(parameter).join(', ')})`]),
    ...(reason === null ? [] : [failedBy(dataSource, reason, parameter)]),
    ...(isSentAgain === null ? [] : [`${isSentAgain ? '' : 'NOT '}${laterOne(dataSource)}`]),
  ];
}

/** A URL may name the port that its scheme has anyway. */
const spellings = (host: string): string[] => (/:\d+$/.test(host) ? [host] : [host, `${host}:443`, `${host}:80`]);

/** By the primary key of the attempts. An attempt that a crash ended has no diagnosis. */
function failedBy(dataSource: DataSource, reason: DiagnosisCode, parameter: Parameter): string {
  const failed =
    reason === 'interrupted'
      ? `(a.diagnosis = ${parameter(reason)} OR (a.duration_ms IS NULL AND w.status = 'FAILED'))`
      : `a.diagnosis = ${parameter(reason)}`;
  return `w.status <> 'SUCCESS' AND EXISTS (
    SELECT 1 FROM ${tableOf(dataSource, WebhookAttempt)} a
    WHERE a.webhook_id = w.id AND a.number = w.attempts AND ${failed})`;
}

/** SQL condition: another webhook of the order of the row `w` came later. */
export const laterOne = (dataSource: DataSource): string => `EXISTS (
  SELECT 1 FROM ${tableOf(dataSource, Webhook)} l
  WHERE l.reference_id = w.reference_id AND l.event_type = w.event_type AND l.id > w.id)`;
