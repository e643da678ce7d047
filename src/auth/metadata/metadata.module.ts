import { Inject, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { sendProblem, problemOf } from '../../http/error-response.js';
import { type HttpRequest, type HttpResponse, originOf } from '../../http/exchange.js';
import { notFound, type Problem } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { AuthorizationSite } from '../authorize/authorization-site.js';
import { AuthPaths } from './auth-paths.js';
import { HOST } from '../../values/actor.js';
import { UsherNamedModule } from '../../telemetry/usher-named.js';

/**
 * RFC 8414: the addresses of the OAuth endpoints and what they support. The route is registered with the HTTP adapter,
 * because an application's global prefix and versions must not move it away from `/.well-known`.
 */
@UsherNamedModule({})
export class AuthMetadataModule implements OnModuleInit {
  constructor(
    private readonly adapterHost: HttpAdapterHost,
    private readonly site: AuthorizationSite,
    private readonly paths: AuthPaths,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  onModuleInit(): void {
    // An application context has no adapter.
    const { httpAdapter } = this.adapterHost as Partial<HttpAdapterHost>;
    httpAdapter?.get(
      metadataPath(this.options.publicUrl ?? this.paths.base),
      (request: HttpRequest, response: HttpResponse) => {
        try {
          const base = this.options.publicUrl ?? this.requestBaseUrl(request) + this.paths.base;
          response.send(serverMetadata(base, this.site.isAvailable, this.options.actor !== HOST));
        } catch (error) {
          sendProblem(response, problemOf(error), this.options.guidesUrl);
        }
      },
    );
  }

  /** Only the sandbox trusts the Host header of the request. */
  private requestBaseUrl(request: HttpRequest): string {
    if (this.options.environment === 'production') throw noPublicUrl();
    return originOf(request);
  }
}

export const noPublicUrl = (): Problem => notFound('the public base address is not set');

const AUTH_METHODS = ['client_secret_basic'];

/** The path of the metadata for a base URL or for its path, which follows the well-known one (RFC 8414 §3.1). */
export function metadataPath(base: string): string {
  const path = new URL(base, 'http://localhost').pathname;
  return `/.well-known/oauth-authorization-server${path === '/' ? '' : path}`;
}

/**
 * RFC 8414 §2. `refresh_endpoint` is our extension: refreshing also has its own endpoint (specification 4.2). `issuer` is the
 * base URL of the authentication endpoints, without a trailing slash. `hasCodes`: the authorisation-code grant is available.
 * `hasPage`: this is the server, which has a page of the API.
 */
export function serverMetadata(issuer: string, hasCodes: boolean, hasPage: boolean) {
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
    ...(hasPage && { service_documentation: `${issuer}/docs` }),
  };
}

export type ServerMetadata = ReturnType<typeof serverMetadata>;
