import { domainToUnicode } from 'node:url';
import type { DataSource } from 'typeorm';
import { z } from 'zod';
import { dialectOf, tableOf } from '../../database/data-source.js';
import type { Parameter } from '../../database/statements/statement.js';
import type { DiagnosisCode } from '../transport/diagnosis.js';
import { ResentWebhook } from '../undelivered/webhook-resend.entity.js';
import { Webhook, WebhookAttempt, type WebhookStatus } from '../webhook.entity.js';

/** Which webhooks an operator wants to see or resend: those that fit all fields. Null is any. */
export interface WebhookCriteria {
  status: WebhookStatus | null;
  clientId: string | null;
  referenceId: string | null;
  /** The host of the Notify URL, with the port unless it is the scheme's default. */
  host: string | null;
  /** Why the last attempt failed. Such a webhook is not SUCCESS. */
  reason: DiagnosisCode | null;
  /** Made at this time or later, in milliseconds since 1970. */
  since: number | null;
  /** Made before this time. */
  until: number | null;
  /** Ended at this time or later. */
  endedSince?: number | null;
  /** Only FAILED webhooks that a later webhook of the same order followed, or did not follow. */
  isSentAgain: boolean | null;
  /** Made by this request to resend many. */
  resendId?: string | null;
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

/** Only the names: a misspelt one would select the webhooks of all. */
export const CRITERIA = z.strictObject(
  Object.fromEntries(
    [...Object.keys(ANY_WEBHOOK), 'endedSince', 'resendId'].map((name) => [name, z.unknown().optional()]),
  ),
);

/** SQL conditions on the row `w` that no index supports. Each row that is read costs time. */
export function rowConditions(
  dataSource: DataSource,
  { host, reason, endedSince, isSentAgain = null, resendId, asOf }: Partial<WebhookCriteria> & { asOf?: string },
  parameter: Parameter,
): string[] {
  return [
    host && isAtHost(dataSource, 'w.notify_url', host, parameter),
    reason && failedBy(dataSource, reason, parameter),
    endedSince && `w.finished_at >= ${parameter(endedSince)}`,
    isSentAgain !== null && sentAgain(dataSource, isSentAgain, 'w', asOf && parameter(asOf)),
    resendId && madeBy(dataSource, parameter(resendId)),
  ].filter((condition) => typeof condition === 'string');
}

/** A URL may contain the default port of its scheme, and letters outside ASCII. */
function spellings(host: string): string[] {
  const [name = '', port] = host.split(/(?=:\d+$)/);
  const ports = port === undefined ? ['', ':443', ':80'] : [port];
  return [name, domainToUnicode(name) || name].flatMap((one) => ports.map((port) => one + port));
}

/** A condition: the URL in this column is at the host. */
export const isAtHost = (dataSource: DataSource, column: string, host: string, parameter: Parameter): string =>
  `${dialectOf(dataSource).authorityOf(column)} IN (${spellings(host).map(parameter).join(', ')})`;

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

/** A condition: the order of the row `of` has a later webhook, with `asOf` (SQL) one before that id. */
export const sentAgain = (dataSource: DataSource, isSentAgain: boolean, of: string, asOf?: string): string =>
  `${isSentAgain ? '' : 'NOT '}EXISTS (SELECT 1 FROM ${tableOf(dataSource, Webhook)} l
    WHERE l.reference_id = ${of}.reference_id AND l.event_type = ${of}.event_type AND l.id > ${of}.id
    ${asOf ? `AND l.id < ${asOf}` : ''})`;

const madeBy = (dataSource: DataSource, resendId: string): string => `EXISTS (
  SELECT 1 FROM ${tableOf(dataSource, ResentWebhook)} r
  WHERE r.resend_id = ${resendId} AND r.webhook_id = w.id AND r.refusal IS NULL)`;
