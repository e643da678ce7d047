import { errors } from 'undici';
import type { Phase } from './outcome.js';

const REASONS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'host not found',
  ENODATA: 'host not found',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  ECONNABORTED: 'connection reset',
  EPIPE: 'connection closed while sending',
  ETIMEDOUT: 'connection timed out',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  EADDRNOTAVAIL: 'network unreachable',
  UND_ERR_SOCKET: 'connection closed before an answer',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'invalid HTTP response',
  UND_ERR_HEADERS_OVERFLOW: 'response headers too large',
  CERT_HAS_EXPIRED: 'certificate has expired',
  CERT_NOT_YET_VALID: 'certificate is not valid yet',
  CERT_REVOKED: 'certificate is revoked',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'certificate authority is not trusted',
  UNABLE_TO_GET_ISSUER_CERT: 'certificate chain is incomplete',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'certificate chain is incomplete',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'certificate chain is incomplete',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate is for another host',
  ERR_SSL_WRONG_VERSION_NUMBER: 'no TLS on this port',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'no TLS on this port',
};

const UNDICI_MESSAGES: Readonly<Record<string, string>> = {
  'bad response': 'invalid HTTP response',
  'bad upgrade': 'answered 101 Switching Protocols, which was not requested',
};

// This machine ran out of a resource before a connection was made.
const RESOURCE_ERRORS = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']);
const PROGRAMMING_ERRORS = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
]);

/** True for an error of this process or machine. It does not count as an attempt. */
export function isLocalFault(error: Error): boolean {
  return RESOURCE_ERRORS.has(codeOf(error)) || PROGRAMMING_ERRORS.has(codeOf(error));
}

export function unreachableReason(error: Error, phase: Phase): string {
  const code = codeOf(error);
  const known = UNDICI_MESSAGES[error.message] ?? REASONS[code];
  if (phase === 'tls') return tlsReason(code, known);
  if (known !== undefined) return known;
  if (phase === 'dns') return 'host name could not be resolved';
  if (error instanceof errors.HTTPParserError) return 'invalid HTTP response';
  return code === '' ? 'network error' : `network error (${code})`;
}

function tlsReason(code: string, known: string | undefined): string {
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'connection closed during the TLS handshake';
  return known ?? `TLS handshake failed (${code})`;
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}
