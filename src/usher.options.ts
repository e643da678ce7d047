import { type DynamicModule, Module } from '@nestjs/common';
import type { Rate } from './values/duration.js';
import type { Environment } from './values/identifier.js';
import type { RetryPolicy } from './values/retry-schedule.js';

/** Where the tables are: a folder with an embedded Postgres, or a server. */
export type DatabaseLocation = { kind: 'embedded'; folder: string } | { kind: 'mysql' | 'postgres'; url: URL };
/** Where the jobs are: in the embedded database, or on a server. */
export type QueueLocation = { kind: 'embedded' } | { kind: 'redis' | 'postgres'; url: URL };

/** A user and a password of HTTP Basic. */
export interface Credentials {
  user: string;
  password: string;
}

/** Everything the modules of Usher need to know, checked. Times in milliseconds unless the name says seconds. */
export interface ResolvedOptions {
  environment: Environment;
  /** The public base address, `{auth_url}` of the specification. */
  authUrl: string | null;
  database: DatabaseLocation;
  queue: QueueLocation;
  databasePool: number;
  queuePrefix: string;
  /** `id:base64[,id:base64…]`; the first encrypts, all decrypt. Null: a key file in the embedded database's folder. */
  masterKeys: string | null;
  /** Who may complete orders from another process; null: nobody. */
  internal: Credentials | null;
  /** Whether this process delivers notifications, or only records them. */
  deliver: boolean;
  retry: RetryPolicy;
  webhookConcurrency: number;
  /** How long finished orders, bodies and attempts are kept. */
  retentionMs: number;
  allowPrivateHosts: boolean;
  /** The proxy that deliveries go through, with its credentials; null: none. */
  webhookProxy: URL | null;
  accessTokenSeconds: number;
  refreshTokenSeconds: number;
  /** Failed client authentications per client id and address. It has no `off`, because imported secrets may be short. */
  authFailureLimit: Rate;
  /** Tokens issued and refreshed per client; null: unlimited, for a deployment whose gateway limits them. */
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
