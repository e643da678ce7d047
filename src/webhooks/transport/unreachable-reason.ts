import { errors } from 'undici';
import type { DiagnosisCode } from './diagnosis.js';
import type { Phase } from './outcome.js';

/** Why there was no response: for programs, and as a short text for people. */
export type UnreachableReason = readonly [code: DiagnosisCode, reason: string];

const NOT_HTTP: UnreachableReason = ['answer-not-http', 'invalid HTTP response'];

/** By the code of an error of Node or undici. */
export const REASONS: Readonly<Record<string, UnreachableReason>> = {
  ENOTFOUND: ['dns-not-found', 'host not found'],
  ENODATA: ['dns-not-found', 'host not found'],
  ECONNREFUSED: ['connection-refused', 'connection refused'],
  ECONNRESET: ['connection-reset', 'connection reset'],
  ECONNABORTED: ['connection-reset', 'connection reset'],
  EPIPE: ['connection-closed', 'connection closed while sending'],
  ETIMEDOUT: ['connection-timed-out', 'connection timed out'],
  EHOSTUNREACH: ['host-unreachable', 'host unreachable'],
  ENETUNREACH: ['host-unreachable', 'network unreachable'],
  EADDRNOTAVAIL: ['host-unreachable', 'network unreachable'],
  UND_ERR_SOCKET: ['connection-closed', 'connection closed before an answer'],
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: NOT_HTTP,
  // Undici's, about a status below 100.
  ERR_ASSERTION: NOT_HTTP,
  UND_ERR_HEADERS_OVERFLOW: ['answer-headers-too-large', 'response headers too large'],
  CERT_HAS_EXPIRED: ['tls-expired', 'certificate has expired'],
  CERT_NOT_YET_VALID: ['tls-not-yet-valid', 'certificate is not valid yet'],
  CERT_REVOKED: ['tls-revoked', 'certificate is revoked'],
  DEPTH_ZERO_SELF_SIGNED_CERT: ['tls-self-signed', 'certificate is self-signed'],
  SELF_SIGNED_CERT_IN_CHAIN: ['tls-unknown-authority', 'certificate authority is not trusted'],
  UNABLE_TO_GET_ISSUER_CERT: ['tls-incomplete-chain', 'certificate chain is incomplete'],
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ['tls-incomplete-chain', 'certificate chain is incomplete'],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ['tls-incomplete-chain', 'certificate chain is incomplete'],
  ERR_TLS_CERT_ALTNAME_INVALID: ['tls-wrong-name', 'certificate is for another host'],
  ERR_SSL_WRONG_VERSION_NUMBER: ['tls-not-spoken', 'no TLS on this port'],
  ERR_SSL_PACKET_LENGTH_TOO_LONG: ['tls-not-spoken', 'no TLS on this port'],
};

const UNDICI_MESSAGES: Readonly<Record<string, UnreachableReason>> = {
  'bad response': NOT_HTTP,
  'bad upgrade': ['answer-not-http', 'answered 101 Switching Protocols, which was not requested'],
};

const LOCAL_FAULTS = new Set([
  // This machine ran out of a resource before a connection was made.
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'UND_ERR_INVALID_ARG',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
]);

/** True for an error of this process or machine. It does not count as an attempt. */
export const isLocalFault = (error: Error): boolean => LOCAL_FAULTS.has(codeOf(error));

export function unreachableReason(error: Error, phase: Phase): UnreachableReason {
  const code = codeOf(error);
  const known = UNDICI_MESSAGES[error.message] ?? REASONS[code];
  if (phase === 'tls') return tlsReason(code, known);
  if (known !== undefined) return known;
  if (phase === 'dns') return ['dns-failed', 'host name could not be resolved'];
  // A TLS alert (RFC 8446 section 6) instead of an answer.
  if (error instanceof errors.HTTPParserError)
    return (error as { data?: string }).data?.startsWith('\x15\x03')
      ? ['https-needed', 'the port speaks TLS']
      : NOT_HTTP;
  return ['network-failed', code === '' ? 'network error' : `network error (${code})`];
}

function tlsReason(code: string, known: UnreachableReason | undefined): UnreachableReason {
  if (code === 'ECONNRESET' || code === 'EPIPE') return ['tls-closed', 'connection closed during the TLS handshake'];
  return known ?? ['tls-failed', `TLS handshake failed (${code})`];
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}
