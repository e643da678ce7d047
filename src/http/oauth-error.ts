/** RFC 6749 §5.2 error codes, and `temporarily_unavailable`, `slow_down` for the faults it has no code for. */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'slow_down'
  | 'temporarily_unavailable';

/** An answer of the token endpoints: RFC 6749 §5.2. `description` is ASCII and meant for the integrator. */
export class OAuthError extends Error {
  constructor(
    readonly code: OAuthErrorCode,
    readonly description: string,
    readonly status = code === 'invalid_client' ? 401 : 400,
    /** For the Retry-After header, in seconds. */
    readonly retryAfter?: number,
  ) {
    super(`${code}: ${description}`);
  }
}
