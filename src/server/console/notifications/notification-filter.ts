import type { Client } from '../../../clients/client.entity.js';
import { ID } from '../../../values/identifier.js';
import { parseUrl } from '../../../values/urls/notify-url.js';
import { ANY_WEBHOOK, type WebhookCriteria } from '../../../webhooks/search/webhook-criteria.js';
import { type DiagnosisCode, DIAGNOSES } from '../../../webhooks/transport/diagnosis.js';
import { ReferenceId } from '../../../webhooks/webhook-view.js';
import type { ClientDirectory } from '../clients/client-directory.js';
import {
  choice,
  type Filter,
  type FilterFields,
  hasFault,
  hrefOf,
  moment,
  readFilter,
  type Texts,
} from '../../../http/pages/fields.js';

const statusFilter = (
  name: string,
  status: WebhookCriteria['status'] = null,
  isSentAgain: WebhookCriteria['isSentAgain'] = null,
) => ({ name, status, isSentAgain });

/** The values of the field `status`, with what they mean. */
export const STATUS_FILTERS = new Map(
  Object.entries({
    '': statusFilter('All'),
    PENDING: statusFilter('Pending', 'PENDING'),
    SUCCESS: statusFilter('Delivered', 'SUCCESS'),
    FAILED: statusFilter('Failed', 'FAILED'),
    UNRESOLVED: statusFilter('Failed, not sent again', 'FAILED', false),
    RESENT: statusFilter('Failed, sent again', 'FAILED', true),
  }),
);

const REASONS = Object.fromEntries(
  Object.entries(DIAGNOSES).map(([code, { meaning }]) => [code, `${code}: ${meaning}`]),
);

interface FilterValues {
  status: ReturnType<typeof statusFilter>;
  client: string;
  host: string;
  reason: DiagnosisCode;
  since: number;
  until: number;
  endedSince: number;
  order: string;
  resend: string;
}

export const FILTER_FIELDS: FilterFields<FilterValues> = {
  status: {
    label: null,
    read: (text) => STATUS_FILTERS.get(text) ?? null,
    fault: 'Choose one from the list.',
  },
  client: { label: 'Client, by name or id', read: (text) => text, fault: 'No client has this id or name.' },
  host: { label: 'Receiver', read: hostIn, fault: 'Give the host of a Notify URL, such as api.example.com.' },
  reason: choice('Reason', REASONS as Record<DiagnosisCode, string>),
  since: moment('Created since'),
  until: moment('Created before'),
  endedSince: moment('Ended since'),
  order: {
    label: 'Order key',
    read: (text) => (ReferenceId.safeParse(text).success ? text : null),
    fault: 'An order key has no spaces.',
  },
  resend: { label: null, read: (text) => (ID.test(text) ? text : null), fault: 'There is no such request.' },
};

export interface NotificationFilter extends Filter<FilterValues> {
  /** Null if a field has a fault. */
  criteria: WebhookCriteria | null;
  clients: Client[];
}

const MAX_CHOICES = 10;

/** Reads the filter from an address or a form. `ofClient`: only the notifications of this client. */
export async function readNotificationFilter(
  directory: ClientDirectory,
  input: Texts,
  ofClient: string | null = null,
): Promise<NotificationFilter> {
  const filter = readFilter(FILTER_FIELDS, input, Date.now());
  const { status: state, client: name, order: referenceId, resend: resendId, ...others } = filter.values;
  const clients = name === null || ofClient !== null ? [] : await directory.search(name, MAX_CHOICES);
  const [client, another] = clients;
  if (another) filter.faults.client = 'Several clients match; choose one below.';
  else if (name !== null && !client && ofClient === null) filter.faults.client = FILTER_FIELDS.client.fault;
  const { status, isSentAgain } = state ?? ANY_WEBHOOK;
  const criteria = { ...others, status, isSentAgain, clientId: ofClient ?? client?.id ?? null, referenceId, resendId };
  return { ...filter, criteria: hasFault(filter) ? null : criteria, clients };
}

export const listHref = (given: Texts, home = '/ops'): string => hrefOf(`${home}/notifications`, given);

/** The host in what somebody may paste: a host, or a whole URL. Null if there is none. */
function hostIn(text: string): string | null {
  const url = text.includes('//') ? text : `https://${text}`;
  const host = parseUrl(url)?.host ?? '';
  return host === '' || host.length > 260 ? null : host;
}
