import { Inject, Module, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { sendProblem, problemOf } from '../../http/error-response.js';
import type { HttpRequest, HttpResponse } from '../../http/exchange.js';
import { badRequest, notFound, type Problem } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { AuthorizationSite } from '../authorize/authorization-site.js';
import { AuthPaths } from './auth-paths.js';
import { metadataPath, type ServerMetadata, serverMetadata } from './server-metadata.js';
import { parseUrl } from '../../values/urls/notify-url.js';

/** A scheme, a host and an optional port, nothing else. */
const BASE_URL = /^https?:\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d*)?$/i;

type MetadataRequest = HttpRequest & { protocol: string; host?: string };

/**
 * RFC 8414: the addresses of the OAuth endpoints and what they support. The route is registered with the HTTP adapter,
 * because an application's global prefix and versions must not move it away from `/.well-known`.
 */
@Module({})
export class AuthMetadataModule implements OnModuleInit {
  constructor(
    private readonly adapterHost: HttpAdapterHost,
    private readonly site: AuthorizationSite,
    private readonly paths: AuthPaths,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  onModuleInit(): void {
    // There is none in an application context.
    const { httpAdapter } = this.adapterHost as Partial<HttpAdapterHost>;
    httpAdapter?.get(
      metadataPath(this.options.publicUrl ?? this.paths.base),
      (request: MetadataRequest, response: HttpResponse) => {
        try {
          response.send(this.metadata(request));
        } catch (error) {
          sendProblem(response, problemOf(error));
        }
      },
    );
  }

  private metadata(request: MetadataRequest): ServerMetadata {
    return serverMetadata(
      this.options.publicUrl ?? this.requestBaseUrl(request) + this.paths.base,
      this.site.isAvailable,
    );
  }

  /** Only the sandbox trusts the Host header of the request. */
  private requestBaseUrl({ protocol, host, headers }: MetadataRequest): string {
    if (this.options.environment === 'production') throw noPublicUrl();
    const text = `${protocol}://${host ?? headers.host}`;
    const url = BASE_URL.test(text) ? parseUrl(text) : null;
    if (!url) throw badRequest('the Host header is malformed');
    return url.origin;
  }
}

export const noPublicUrl = (): Problem => notFound('the public base address is not set');
