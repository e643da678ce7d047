import { type DynamicModule, Module } from '@nestjs/common';
import type { Rate } from './values/duration.js';
import type { Environment } from './values/identifier.js';
import type { RetryPolicy } from './values/retry-schedule.js';

/** The database: an embedded Postgres in a folder, or a server. */
export type DatabaseLocation = { kind: 'embedded'; folder: string } | { kind: 'mysql' | 'postgres'; url: URL };
/** The job queue: in the embedded database, or on a server. */
export type QueueLocation = { kind: 'embedded' } | { kind: 'redis' | 'postgres'; url: URL };

/** User and password for HTTP Basic. */
export interface Credentials {
  user: string;
  password: string;
}

/** The validated options of all modules. Times are in milliseconds unless the name says seconds. */
export interface ResolvedOptions {
  environment: Environment;
  /** The public base URL, `{auth_url}` in the specification. */
  authUrl: string | null;
  database: DatabaseLocation;
  queue: QueueLocation;
  databasePool: number;
  queuePrefix: string;
  /** `id:base64[,id:base64…]`; the first key encrypts, all keys decrypt. Null: a key file in the embedded database's folder. */
  masterKeys: string | null;
  /** The credentials for completing orders from another process. Null: not possible. */
  internal: Credentials | null;
  /** True: this process delivers notifications. False: it only records them. */
  deliver: boolean;
  retry: RetryPolicy;
  webhookConcurrency: number;
  /** How long finished orders, bodies and attempts are kept. */
  retentionMs: number;
  allowPrivateHosts: boolean;
  /** The HTTP proxy for deliveries, with its credentials. Null: no proxy. */
  webhookProxy: URL | null;
  accessTokenSeconds: number;
  refreshTokenSeconds: number;
  /** Failed client authentications per client id and address. Cannot be off, because imported secrets may be short. */
  authFailureLimit: Rate;
  /** Token requests per client, issued and refreshed. Null: unlimited, for example because a gateway limits them. */
  tokenRateLimit: Rate | null;
}

/** Injects the {@link ResolvedOptions}. */
export const USHER_OPTIONS = Symbol('UsherOptions');

@Module({})
export class UsherOptionsModule {
  static forRoot(options: ResolvedOptions): DynamicModule {
    return {
      module: UsherOptionsModule,
      global: true,
      providers: [{ provide: USHER_OPTIONS, useValue: options }],
      exports: [USHER_OPTIONS],
    };
  }
}
