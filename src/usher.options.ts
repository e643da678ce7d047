import type { DataSource } from 'typeorm';
import type { Actor } from './values/actor.js';
import type { ContactMessenger } from './values/contact-messenger.js';
import type { Rate } from './values/duration.js';
import type { Environment } from './values/identifier.js';
import type { ResourceOwnerAuthenticator } from './values/resource-owner.js';
import type { RetryPolicy } from './values/retry-schedule.js';

/** A user and a password of HTTP Basic. */
export interface Credentials {
  user: string;
  password: string;
}

/** A mail server, and whom its messages are from. */
export interface SmtpServer {
  /** `smtp:` (STARTTLS where the server offers it, and required where the URL has a password) or `smtps:`. */
  url: URL;
  /** An e-mail address, or `Name <address>`. */
  from: string;
}

/** What an application tells `UsherModule.forRoot()` or `forRootAsync()`. Everything that is left out has a safe default. */
export interface UsherOptions {
  environment: Environment;
  /**
   * `id:base64[,id:base64…]` with 32 bytes a key; the first encrypts, all decrypt. Required, except with an `embedded:`
   * database, which keeps a key file in its folder.
   */
  masterKeys?: string;
  /** The application's own `DataSource`, which Usher neither changes nor migrates; or the address of one that Usher opens. */
  database: { dataSource: DataSource } | { url: string; pool?: number; join?: boolean };
  /** Where BullMQ keeps its jobs. `url`: redis://, rediss://, redis+sentinel:// or postgres://; default: the database, where that is Postgres. */
  queue?: { url?: string; prefix?: string };
  /** Whether this process delivers notifications; default true. With false it only records them. */
  deliver?: boolean;
  /** Where clients reach this application, with its prefix: `https://api.example/v1`. Published in the metadata. */
  publicUrl?: string;
  /** Who the resource owners of the authorization-code grant are; default: the built-in members (`usher member create`). */
  resourceOwners?: ResourceOwnerAuthenticator;
  /** Who may complete orders and introspect every token over REST from another process; default: nobody. */
  internal?: Credentials;
  /** Default: the specified 30 s, 2 min, 30 s and 5 attempts. Production accepts no other values. */
  retry?: Partial<RetryPolicy>;
  /** Deliveries that run at the same time in this process; default 256. */
  concurrency?: number;
  /** How long finished orders, bodies and attempts are kept, in milliseconds; default 90 days, at least one day. */
  retentionMs?: number;
  /** How long audit events are kept, in milliseconds; default 365 days, at least one day. */
  auditRetentionMs?: number;
  /** `allowPrivate`: whether Notify URLs may lead to private addresses; default false, never true in production. */
  notifyUrls?: { allowPrivate?: boolean };
  /** The proxy that deliveries go through: `http://user:password@proxy.example:3128`; default: none. */
  proxy?: string;
  /**
   * How the contacts of clients are told that a Notify URL fails or has recovered: a sender of the application, or a mail
   * server, `smtp://user:password@mail.example:587` or `smtps://…`, which needs the package `nodemailer`. Default: in the
   * sandbox a file that the log names, in production nothing is sent.
   */
  contactMessages?: ContactMessenger | { smtpUrl: string; from: string };
  /** Whether a notification carries the `traceparent` of its trace to the receiver; default false. */
  traceReceivers?: boolean;
  /** In seconds; default 5184000 (60 days) and 31536000 (365 days). */
  lifetimes?: { accessToken?: number; refreshToken?: number };
  /**
   * Rates like `600/m`. `authFailures` per client id and address, default 20/m; `tokens` and `orders` (created over REST) per
   * client, default 600/m, or `off`. `pendingWebhooks`: a client with so many gets no new order, resend or test over REST;
   * default 10000, or `off`.
   */
  limits?: { authFailures?: string; tokens?: string; orders?: string; pendingWebhooks?: number | 'off' };
}

/** Where the tables are: the application's own data source, a folder with an embedded Postgres, or a server. */
export type DatabaseLocation =
  | { kind: 'host'; dataSource: DataSource }
  /** `join`: use the process that already runs the database in this folder, if there is one. */
  | { kind: 'embedded'; folder: string; join: boolean }
  | { kind: 'mysql' | 'postgres'; url: URL };

/** Where the jobs are: in the database, or on a server. `none`: this process adds no jobs and connects to no queue. */
export type QueueLocation = { kind: 'none' | 'database' } | { kind: 'redis' | 'postgres'; url: URL };

/** How contacts are told. Null: not at all. */
export type ContactChannel = { kind: 'file' } | ({ kind: 'smtp' } & SmtpServer) | ContactMessenger | null;

/** What the settings are called where they are made, for messages about their values. */
export interface SettingNames {
  database: string;
  queue: string;
  masterKeys: string;
  allowPrivateHosts: string;
  retry: string;
  internalPassword: string;
  publicUrl: string;
}

/** The {@link UsherOptions}, checked and with every default in place. Times in milliseconds unless the name says seconds. */
export interface ResolvedOptions {
  names: SettingNames;
  environment: Environment;
  /** Who makes the changes that name nobody else. */
  actor: Actor;
  /** The public base address, `{auth_url}` of the specification, without a slash at its end. */
  publicUrl: string | null;
  /** Null: the built-in members. */
  resourceOwners: ResourceOwnerAuthenticator | null;
  database: DatabaseLocation;
  queue: QueueLocation;
  databasePool: number;
  queuePrefix: string;
  /** Null: a key file in the embedded database's folder. */
  masterKeys: string | null;
  internal: Credentials | null;
  deliver: boolean;
  retry: RetryPolicy;
  concurrency: number;
  retentionMs: number;
  auditRetentionMs: number;
  allowPrivateHosts: boolean;
  proxy: URL | null;
  contactMessages: ContactChannel;
  traceReceivers: boolean;
  accessTokenSeconds: number;
  refreshTokenSeconds: number;
  authFailureLimit: Rate;
  /** Null: unlimited. */
  tokenRateLimit: Rate | null;
  /** Null: unlimited. */
  orderRateLimit: Rate | null;
  /** Null: unlimited. */
  pendingWebhookLimit: number | null;
}

/** Injects the {@link ResolvedOptions}. Nest prints the description where the module is missing. */
export const USHER_OPTIONS = Symbol(
  'options of Usher: import UsherModule.forRoot() or forRootAsync() in the root module',
);
