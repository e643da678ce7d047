import { expect, test } from '@jest/globals';
import { codeOfStatus, DIAGNOSES, type DiagnosisCode } from '../../../src/webhooks/transport/diagnosis.js';
import { failureOf, type Phase, type Verdict } from '../../../src/webhooks/transport/outcome.js';
import { REASONS, unreachableReason } from '../../../src/webhooks/transport/unreachable-reason.js';

const PHASES: Phase[] = ['dns', 'connect', 'tls', 'headers', 'body'];

function codeOf(verdict: Verdict, phase: Phase = 'body', awaitsProxy = false): DiagnosisCode | null {
  return failureOf({ durationMs: 1, address: null, phase, awaitsProxy, snippet: '', ...verdict })?.diagnosis ?? null;
}

const failed = (code: string): Error => Object.assign(new Error('failed'), { code });

/** Every code that an attempt can get. */
function reachable(): Set<string | null> {
  const statuses = Array.from({ length: 700 }, (_, index) => 300 + index);
  const faults = [...Object.keys(REASONS), 'EAI_AGAIN', 'EUNKNOWN'];
  return new Set([
    ...statuses.map((status) => codeOf({ kind: 'refused', status, retryAfterMs: 0 })),
    ...PHASES.map((phase) => codeOf({ kind: 'timed-out' }, phase)),
    codeOf({ kind: 'timed-out' }, 'connect', true),
    codeOf({ kind: 'blocked', address: '10.0.0.1' }),
    ...faults.flatMap((fault) => PHASES.map((phase) => unreachableReason(failed(fault), phase)[0])),
    codeOfStatus(400, 'Client sent an HTTP request to an HTTPS server.'),
    // The exchange itself says so of a proxy, and the view of an attempt without an end.
    'proxy-failed',
    'interrupted',
  ]);
}

test('every failure of an attempt has a diagnosis, and every diagnosis stands for a failure', () => {
  expect([...reachable()].sort()).toEqual(Object.keys(DIAGNOSES).sort());
});

test('an attempt that succeeded has none', () => {
  expect(codeOf({ kind: 'delivered', status: 204 })).toBeNull();
});

test.each([
  [301, 'redirected'],
  [308, 'redirected'],
  [304, 'other-refusal'],
  [400, 'body-not-accepted'],
  [401, 'signature-refused'],
  [403, 'signature-refused'],
  [404, 'not-found'],
  [405, 'method-not-allowed'],
  [408, 'other-refusal'],
  [410, 'gone'],
  [413, 'body-too-large'],
  [418, 'other-refusal'],
  [422, 'body-not-accepted'],
  [429, 'too-many-requests'],
  [500, 'receiver-failed'],
  [502, 'gateway-failed'],
  [503, 'receiver-unavailable'],
  [504, 'gateway-failed'],
  [599, 'receiver-failed'],
  [999, 'other-refusal'],
])('%i is %s', (status, code) => {
  expect(codeOfStatus(status)).toBe(code);
});

test.each([
  ['ENOTFOUND', 'dns', 'dns-not-found'],
  ['EAI_AGAIN', 'dns', 'dns-failed'],
  ['ECONNREFUSED', 'connect', 'connection-refused'],
  ['ETIMEDOUT', 'connect', 'connection-timed-out'],
  ['ECONNRESET', 'headers', 'connection-reset'],
  ['ECONNRESET', 'tls', 'tls-closed'],
  ['CERT_HAS_EXPIRED', 'tls', 'tls-expired'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls', 'tls-wrong-name'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls', 'tls-self-signed'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls', 'tls-unknown-authority'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls', 'tls-incomplete-chain'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls', 'tls-not-spoken'],
  ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'tls', 'tls-failed'],
] as const)('%s in phase %s is %s', (fault, phase, code) => {
  expect(unreachableReason(failed(fault), phase)[0]).toBe(code);
});

test('each code fits its column', () => {
  for (const code of Object.keys(DIAGNOSES)) expect(code.length).toBeLessThanOrEqual(40);
});
