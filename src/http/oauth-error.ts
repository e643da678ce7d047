import { HttpException } from '@nestjs/common';

/** The error codes of RFC 6749 §5.2, plus `temporarily_unavailable` (503) and `slow_down` (429). */
export const OAUTH_ERROR_CODES = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'slow_down',
  'temporarily_unavailable',
] as const;
/** One of {@link OAUTH_ERROR_CODES}. */
export type OAuthErrorCode = (typeof OAUTH_ERROR_CODES)[number];

/**
 * An error response of the token endpoints (RFC 6749 §5.2). `description` must be ASCII; integrators read it. It extends
 * HttpException, so that an application's own filters can handle it.
 */
export class OAuthError extends HttpException {
  constructor(
    readonly code: OAuthErrorCode,
    readonly description: string,
    status = code === 'invalid_client' ? 401 : 400,
    /** Value of the Retry-After header, in seconds. */
    readonly retryAfter?: number,
  ) {
    super({ error: code, error_description: description }, status);
    this.message = `${code}: ${description}`;
  }
}
