/** RFC 8414 §2. `refresh_endpoint` is our extension: refreshing also has its own endpoint (specification 4.2). */
export interface ServerMetadata {
  issuer: string;
  authorization_endpoint?: string | undefined;
  token_endpoint: string;
  refresh_endpoint: string;
  revocation_endpoint: string;
  introspection_endpoint: string;
  grant_types_supported: string[];
  response_types_supported: string[];
  response_modes_supported?: string[] | undefined;
  code_challenge_methods_supported?: string[] | undefined;
  authorization_response_iss_parameter_supported?: boolean | undefined;
  token_endpoint_auth_methods_supported: string[];
  revocation_endpoint_auth_methods_supported: string[];
  introspection_endpoint_auth_methods_supported: string[];
  service_documentation: string;
}

const AUTH_METHODS = ['client_secret_basic'];

/** Where the metadata of a base URL is. Its path goes behind the well-known one (RFC 8414 §3.1). */
export function metadataPath(publicUrl: string | null): string {
  const path = publicUrl === null ? '/' : new URL(publicUrl).pathname;
  return `/.well-known/oauth-authorization-server${path === '/' ? '' : path}`;
}

/**
 * `issuer` is the base URL of the authentication endpoints, without a trailing slash. `hasCodes`: the authorization-code grant
 * is available.
 */
export function serverMetadata(issuer: string, hasCodes: boolean): ServerMetadata {
  return {
    issuer,
    ...(hasCodes && { authorization_endpoint: `${issuer}/auth/authorize` }),
    token_endpoint: `${issuer}/auth/token`,
    refresh_endpoint: `${issuer}/auth/refresh`,
    revocation_endpoint: `${issuer}/auth/revoke`,
    introspection_endpoint: `${issuer}/auth/introspect`,
    grant_types_supported: ['client_credentials', 'refresh_token', ...(hasCodes ? ['authorization_code'] : [])],
    response_types_supported: hasCodes ? ['code'] : [],
    ...(hasCodes && {
      response_modes_supported: ['query'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    }),
    token_endpoint_auth_methods_supported: AUTH_METHODS,
    revocation_endpoint_auth_methods_supported: AUTH_METHODS,
    introspection_endpoint_auth_methods_supported: AUTH_METHODS,
    service_documentation: `${issuer}/docs`,
  };
}
