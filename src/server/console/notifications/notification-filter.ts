import { Injectable } from '@nestjs/common';
import type { Client } from '../../../clients/client.entity.js';
import type { DiagnosisCode } from '../../../webhooks/transport/diagnosis.js';
import { DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import { ANY_WEBHOOK, type WebhookCriteria } from '../../../webhooks/search/webhook-criteria.js';
import { ReferenceId } from '../../../webhooks/webhook-view.js';
import { ClientDirectory } from '../clients/client-directory.js';
import { type Given, givenFields, hrefOf, momentOf, MOMENT_HINT } from '../fields/fields.js';
import { parseUrl } from '../../../values/urls/notify-url.js';

export const FILTER_FIELDS = ['status', 'client', 'host', 'reason', 'since', 'until', 'order'] as const;
export type FilterField = (typeof FILTER_FIELDS)[number];

export const NOTIFICATIONS_PATH = '/ops/notifications';

/** The values of the field `status`, with what they mean. */
export const STATUS_FILTERS: Record<string, { name: string } & Pick<WebhookCriteria, 'status' | 'isSentAgain'>> = {
  '': { name: 'All', status: null, isSentAgain: null },
  PENDING: { name: 'Pending', status: 'PENDING', isSentAgain: null },
  SUCCESS: { name: 'Delivered', status: 'SUCCESS', isSentAgain: null },
  FAILED: { name: 'Failed', status: 'FAILED', isSentAgain: null },
  UNRESOLVED: { name: 'Failed, not sent again', status: 'FAILED', isSentAgain: false },
  RESENT: { name: 'Failed, sent again', status: 'FAILED', isSentAgain: true },
};

/** The filter of a list of notifications: as it was given, and what it means. */
export interface NotificationFilter {
  given: Given<FilterField>;
  /** Null if a field has a fault. */
  criteria: WebhookCriteria | null;
  faults: Partial<Record<FilterField, string>>;
  /** The client that is meant, if it is one. */
  client: Client | null;
  /** The clients that may be meant, if they are several. */
  choices: Client[];
}

const MAX_CHOICES = 10;

/** Reads the filter of notifications from an address or a form. */
@Injectable()
export class NotificationFilters {
  constructor(private readonly directory: ClientDirectory) {}

  async read(input: unknown, now: number): Promise<NotificationFilter> {
    const given = givenFields(FILTER_FIELDS, input);
    const choices = given.client === '' ? [] : await this.directory.search(given.client, MAX_CHOICES);
    const client = choices.length === 1 ? (choices[0] ?? null) : null;
    const criteria = criteriaOf(given, client, now);
    const faults = faultsOf(given, criteria, choices);
    const isFaulty = Object.keys(faults).length > 0;
    return { given, criteria: isFaulty ? null : criteria, faults, client, choices: client ? [] : choices };
  }
}

/** The address of the list with this filter, and some fields changed. */
export const listHref = (given: Partial<Given<FilterField>>, changed: Record<string, string> = {}): string =>
  hrefOf(NOTIFICATIONS_PATH, { ...given, ...changed });

function criteriaOf(given: Given<FilterField>, client: Client | null, now: number): WebhookCriteria {
  const { status, isSentAgain } = statusFilter(given.status) ?? ANY_WEBHOOK;
  const moment = (text: string): number | null => (text === '' ? null : momentOf(text, now));
  return {
    status,
    isSentAgain,
    clientId: client?.id ?? null,
    referenceId: given.order === '' ? null : given.order,
    host: given.host === '' ? null : hostIn(given.host),
    reason: isDiagnosis(given.reason) ? given.reason : null,
    since: moment(given.since),
    until: moment(given.until),
  };
}

function faultsOf(given: Given<FilterField>, criteria: WebhookCriteria, choices: Client[]) {
  const { since, until, host, reason } = criteria;
  const faults: [FilterField, boolean, string][] = [
    ['status', statusFilter(given.status) === undefined, 'Choose one of the list.'],
    ['client', given.client !== '' && choices.length === 0, 'No client has this id or name.'],
    ['client', choices.length > 1, 'Several clients fit; choose one below.'],
    ['host', given.host !== '' && host === null, 'Give the host of a Notify URL, such as api.example.com.'],
    ['reason', given.reason !== '' && reason === null, 'Choose one of the list.'],
    ['since', given.since !== '' && since === null, `Give ${MOMENT_HINT}.`],
    ['until', given.until !== '' && until === null, `Give ${MOMENT_HINT}.`],
    ['until', since !== null && until !== null && until <= since, 'Must be later than the beginning.'],
    ['order', given.order !== '' && !ReferenceId.safeParse(given.order).success, 'An order key has no spaces.'],
  ];
  const found = faults.filter(([, isFault]) => isFault).map(([field, , message]) => [field, message]);
  return Object.fromEntries(found) as NotificationFilter['faults'];
}

const statusFilter = (text: string) => (Object.hasOwn(STATUS_FILTERS, text) ? STATUS_FILTERS[text] : undefined);

const isDiagnosis = (text: string): text is DiagnosisCode => Object.hasOwn(DIAGNOSES, text);

/** The host in what somebody may paste: a host, or a whole URL. Null if there is none. */
function hostIn(text: string): string | null {
  const url = text.includes('//') ? text : `https://${text}`;
  const host = parseUrl(url)?.host ?? '';
  return host === '' || host.length > 260 ? null : host;
}
