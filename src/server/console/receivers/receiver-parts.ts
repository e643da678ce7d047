import { type Html, html } from '../../../http/html.js';
import type { TestResult } from '../../../webhooks/api/test-notifications.js';
import type { Certification } from '../../../../packages/receiver/dist/tools.js';
import type { WebhookHealth } from '../../../webhooks/webhook-health.js';
import type { DeliveryPauses } from '../../../webhooks/delivery-pauses.js';
import type { Action, Visit } from '../../../http/pages/site.js';
import { receiverLink } from '../frame/links.js';
import type { FormPart } from '../../../http/pages/fields.js';
import { shownMs } from '../figures/figures.js';
import { facts, notice, table, time } from '../../../http/pages/parts.js';

/**
 * Pause and resume deliveries to the client or host of the page, or to the client that the form names. `after` runs
 * after a change. `named`: the fields that name the client.
 */
export const pauseActions = <Row>(
  kind: 'client' | 'host',
  pauses: DeliveryPauses,
  after?: () => Promise<void>,
  named: (row: Row) => FormPart[] = () => [],
): Record<string, Action<Row>> => ({
  pause: {
    button: 'Pause deliveries',
    fields: (row) => [...named(row), { name: 'reason', label: REASONS[kind], isRequired: true }],
    kind: 'danger',
    done: 'Deliveries are paused: notifications wait, and use up no attempt.',
    run: ({ reason = '', client }, { id, actor }) => pauses.pause(`${kind}:${client ?? id}`, reason, actor).then(after),
  },
  resume: {
    button: 'Resume deliveries',
    fields: named,
    done: 'Deliveries are resumed. From the next retry run on, the waiting notifications are sent, 100 a second.',
    run: ({ client }, { id, actor }) => pauses.resume(`${kind}:${client ?? id}`, actor).then(after),
  },
});

const REASONS = { client: 'Reason, which the client can read', host: 'Reason' };

/** Says whether deliveries are paused, with the form that changes it. `whose`: what a pause holds back. */
export const pausing = (visit: Visit, paused: { since: number | string; reason: string } | null, whose: Html) =>
  html`<h2>Pause</h2>
    ${paused && notice('warning', html`Deliveries have been paused since ${time(paused.since)}: ${paused.reason}`)}
    <p>${whose}</p>
    ${visit.form(paused ? 'resume' : 'pause')}`;

export function testOutcome(test: TestResult) {
  const { notifyUrl, outcome, responseStatus, durationMs, error, diagnosis, responseSnippet, address } = test;
  return html`${outcome === 'delivered' ? notice('good', 'The test was accepted.') : notice('bad', html`<strong>The test failed: ${error}.</strong> ${diagnosis?.meaning} ${diagnosis?.remedy}`)}
  ${facts({
    'sent to': notifyUrl,
    status: responseStatus,
    took: shownMs(durationMs),
    address,
    answer: responseSnippet && html`<pre>${responseSnippet}</pre>`,
  })}`;
}

export const healthTable = ({ clientId }: Visit, { hosts }: WebhookHealth) =>
  table(
    {
      Receiver: ({ host }) => receiverLink(host, clientId),
      'Failures in a row': { number: 'failuresInARow' },
      'Last success': { time: 'lastSuccessAt' },
      'Last failure': { time: 'lastFailureAt' },
      Why: ({ lastDiagnosis: why }) => why && `${why.meaning} ${why.remedy}`,
      'Oldest pending': { time: 'oldestPendingAt' },
      'Host paused since': { time: 'pausedSince' },
      Median: { number: ({ answerTimes: times }) => times && `${times.medianMs} ms` },
      p95: { number: ({ answerTimes: times }) => times && `${times.p95Ms} ms` },
    },
    hosts,
    'Once something was sent to its receivers, their answers will be summed up here.',
  );

export const certified = ({ passed, checks }: Certification) =>
  html`${passed ? notice('good', 'The receiver passed.') : notice('bad', 'The receiver did not pass.')}
  ${table(
    {
      Sent: ({ sent }) => `a notification ${sent}`,
      Passed: ({ passed }) => (passed ? 'yes' : 'no'),
      Why: ({ reason, remedy }) => `${reason} ${remedy ?? ''}`,
    },
    checks,
  )}`;
