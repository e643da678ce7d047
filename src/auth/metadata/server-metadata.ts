const AUTH_METHODS = ['client_secret_basic'];

/** Where the metadata of a base URL, or of its path alone, is. The path goes behind the well-known one (RFC 8414 §3.1). */
export function metadataPath(base: string): string {
  const path = new URL(base, 'http://localhost').pathname;
  return `/.well-known/oauth-authorization-server${path === '/' ? '' : path}`;
}

/**
 * RFC 8414 §2. `refresh_endpoint` is our extension: refreshing also has its own endpoint (specification 4.2). `issuer` is the
 * base URL of the authentication endpoints, without a trailing slash. `hasCodes`: the authorization-code grant is available.
 */
export function serverMetadata(issuer: string, hasCodes: boolean) {
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

export type ServerMetadata = ReturnType<typeof serverMetadata>;
