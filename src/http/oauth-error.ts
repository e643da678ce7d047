/** The error codes of RFC 6749 §5.2, plus `temporarily_unavailable` (503) and `slow_down` (429). */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'slow_down'
  | 'temporarily_unavailable';

/** An error response of the token endpoints (RFC 6749 §5.2). `description` must be ASCII; integrators read it. */
export class OAuthError extends Error {
  constructor(
    readonly code: OAuthErrorCode,
    readonly description: string,
    readonly status = code === 'invalid_client' ? 401 : 400,
    /** Value of the Retry-After header, in seconds. */
    readonly retryAfter?: number,
  ) {
    super(`${code}: ${description}`);
  }
}
