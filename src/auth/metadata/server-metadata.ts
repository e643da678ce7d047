/** RFC 8414 §2. `refresh_endpoint` is our extension: refreshing has its own endpoint (specification 4.2). */
export interface ServerMetadata {
  issuer: string;
  token_endpoint: string;
  refresh_endpoint: string;
  revocation_endpoint: string;
  introspection_endpoint: string;
  grant_types_supported: string[];
  response_types_supported: string[];
  token_endpoint_auth_methods_supported: string[];
  revocation_endpoint_auth_methods_supported: string[];
  introspection_endpoint_auth_methods_supported: string[];
  service_documentation: string;
}

const AUTH_METHODS = ['client_secret_basic'];

/** `issuer` is the base URL of the authentication endpoints, without a trailing slash. */
export function serverMetadata(issuer: string): ServerMetadata {
  return {
    issuer,
    token_endpoint: `${issuer}/auth/token`,
    refresh_endpoint: `${issuer}/auth/refresh`,
    revocation_endpoint: `${issuer}/auth/revoke`,
    introspection_endpoint: `${issuer}/auth/introspect`,
    grant_types_supported: ['client_credentials', 'refresh_token'],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: AUTH_METHODS,
    revocation_endpoint_auth_methods_supported: AUTH_METHODS,
    introspection_endpoint_auth_methods_supported: AUTH_METHODS,
    service_documentation: `${issuer}/docs`,
  };
}
