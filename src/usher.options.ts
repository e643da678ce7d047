import type { DataSource, EntityManager } from 'typeorm';
import type { DatabaseAddress } from './options/url-kinds.js';
import type { LibraryValues } from './options/option-table.js';
import type { Actor } from './values/actor.js';
import type { ContactMessenger } from './values/contact-messenger.js';
import type { Environment } from './values/identifier.js';
import type { MemberTexts } from './values/member-texts.js';
import type { ResourceOwnerAuthenticator } from './values/resource-owner.js';
import type { RetryPolicy } from './values/retry-schedule.js';

/** A user and a password of HTTP Basic. */
export interface Credentials {
  user: string;
  password: string;
}

/** A mail server and the sender of its messages. */
export interface SmtpServer {
  /** `smtp:` (STARTTLS where the server offers it, and required where the URL has a password) or `smtps:`. */
  url: URL;
  /** An e-mail address, or `Name <address>`. */
  from: string;
}

/**
 * What an application tells `UsherModule.forRoot()` or `forRootAsync()`. Everything that is left out has a safe default. All
 * durations are in milliseconds. docs/configuration.md lists the valid values.
 */
export interface UsherOptions {
  /** Tokens and ids of one environment are invalid in the other. Required. */
  environment: Environment;
  /**
   * `id:base64[,id:base64…]` with 32 bytes a key; the first encrypts, all decrypt. Required, except with an `embedded:`
   * database, which keeps a key file in its folder.
   */
  masterKeys?: string;
  /** The application's own `DataSource`, which Usher neither changes nor migrates; or the address of one that Usher opens. */
  database:
    | { dataSource: DataSource }
    | {
        /** `mysql://…`, `postgres://…` or `embedded:FOLDER`. */
        url: string;
        /** Connections of this process; default 10. */
        pool?: number;
        /** The table that records Usher's migrations; default usher_migration. */
        migrationTable?: string;
        /** How long a statement of this process may take; default 10000. */
        timeoutMs?: number;
        /** Whether to use the process that already runs the embedded database, if there is one; default false. */
        join?: boolean;
      };
  /**
   * The manager of the transaction in which the caller runs, for `create()`, `complete()` and `notify()` without a manager; with
   * nestjs-cls `() => txHost.tx`. One without an open transaction is ignored. It needs `database.dataSource`. Default:
   * `dataSource.manager`, which typeorm-transactional sets.
   */
  currentManager?: () => EntityManager | undefined;
  /** Where BullMQ keeps its jobs. */
  queue?: {
    /** `redis://`, `rediss://`, `redis+sentinel://` or `postgres://`; default: the database, where that is Postgres. */
    url?: string;
    /** Prefix of the keys in Redis, or the schema in Postgres; default: `usher-` and the environment. */
    prefix?: string;
  };
  /** Whether this process delivers notifications; default true. With false it only records them. */
  deliver?: boolean;
  /** Where clients reach this application, with its prefix: `https://api.example/v1`. Published in the metadata. */
  publicUrl?: string;
  /** Where the integrators' guides are served: `https://usher.example/docs` of a server. Errors link them; default: none do. */
  guidesUrl?: string;
  /** Who the resource owners of the authorisation-code grant are; default: the built-in members (`usher member create`). */
  resourceOwners?: ResourceOwnerAuthenticator;
  /** The owner of the members' pages. */
  brand?: {
    /** What the pages call the cinema; default Usher. */
    name?: string;
    /** The path of a PNG or SVG file of at most 64 kB; default: the name is shown. */
    logo?: string;
    /** The colour of the main buttons, whose text is white; default #1f6f3d. */
    color?: string;
    /** A link below each page. */
    helpUrl?: string;
    /** A link below each page. */
    privacyUrl?: string;
    /** A link where members get a new password. */
    forgottenPasswordUrl?: string;
    /** The texts in another language; default: English. */
    texts?: Partial<MemberTexts> & Pick<MemberTexts, 'language'>;
  };
  /** Who may complete orders and introspect every token over REST from another process; default: nobody. */
  internal?: Credentials;
  /** Default: the specified 30 s, 2 min, 30 s and 5 attempts. Production accepts no other values. */
  retry?: Partial<RetryPolicy>;
  /** Deliveries that run at the same time in this process; default 256. */
  concurrency?: number;
  /** How long finished orders, bodies and attempts are kept; default 7776000000 (90 days), at least one day. */
  retentionMs?: number;
  /** How long audit events are kept; default 31536000000 (365 days), at least one day. */
  auditRetentionMs?: number;
  notifyUrls?: {
    /** Whether Notify URLs may lead to private addresses; default false, never true in production. */
    allowPrivate?: boolean;
  };
  /** The proxy that deliveries go through: `http://user:password@proxy.example:3128`; default: none. */
  proxy?: string;
  /**
   * How the contacts of clients are told that a Notify URL fails or has recovered, and of changes, and get links to the portal:
   * a sender of the application, or a mail server. Default: in the sandbox a file that the log names, in production nothing is sent.
   */
  contactMessages?:
    | ContactMessenger
    | {
        /** `smtp://user:password@mail.example:587` or `smtps://…`; it needs the package `nodemailer`. */
        smtpUrl: string;
        /** An e-mail address, or `Name <address>`. */
        from: string;
      };
  /** Whether a notification carries the `traceparent` of its trace to the receiver; default false. */
  traceReceivers?: boolean;
  lifetimes?: {
    /** Lifetime of an access token; default 5184000000 (60 days). */
    accessTokenMs?: number;
    /** Lifetime of a refresh token, which starts again at every refresh; default 31536000000 (365 days). */
    refreshTokenMs?: number;
    /** How long after its last request a session in the portal ends; default 900000 (15 minutes). */
    portalIdleMs?: number;
    /** How long after the sign-in it ends in any case; default 28800000 (8 hours). */
    portalSessionMs?: number;
  };
  /** Rates are written like `600/m`. */
  limits?: {
    /** Failed authentications per client id and address; default 20/m. */
    authFailures?: string;
    /** Token requests of one client, or `off`; default 600/m. */
    tokens?: string;
    /** Orders that one client creates over REST, or `off`; default 600/m. */
    orders?: string;
    /** The number of pending notifications at which a client gets no new order, resend or test over REST, or `off`; default 10000. */
    pendingWebhooks?: number | 'off';
  };
}

/** Where the tables are: the application's own data source, or a database of Usher's own. */
export type DatabaseLocation = { kind: 'host'; dataSource: DataSource } | DatabaseAddress;

/** Where the jobs are: in the database, or on a server. `none`: this process adds no jobs and connects to no queue. */
export type QueueLocation = { kind: 'none' | 'database' } | { kind: 'redis' | 'postgres'; url: URL };

/** How contacts are told. Null: not at all. */
type ContactChannel = { kind: 'file' } | ({ kind: 'smtp' } & SmtpServer) | ContactMessenger | null;

/** The values that {@link ResolvedOptions} has in another form. */
type Combined =
  | 'dataSource'
  | 'databaseUrl'
  | 'joinDatabase'
  | 'queueUrl'
  | 'internalUser'
  | 'internalPassword'
  | 'smtpUrl'
  | 'smtpFrom'
  | 'accessTokenMs'
  | 'refreshTokenMs'
  | keyof RetryPolicy;

/** The {@link UsherOptions}, checked and with every default in place. Times in milliseconds unless the name says seconds. */
export interface ResolvedOptions extends Omit<LibraryValues, Combined> {
  /** The names of these options in messages. */
  names: Record<keyof LibraryValues, string>;
  /** The actor of changes that name no other. */
  actor: Actor;
  /** The role of this process in the list of processes; null: a command, which ends by itself and is not listed. */
  role: 'all' | 'api' | 'worker' | null;
  database: DatabaseLocation;
  queue: QueueLocation;
  queuePrefix: string;
  internal: Credentials | null;
  retry: RetryPolicy;
  contactMessages: ContactChannel;
  accessTokenSeconds: number;
  refreshTokenSeconds: number;
}

/** Injects the {@link ResolvedOptions}. Nest prints the description where the module is missing. */
export const USHER_OPTIONS = Symbol(
  'options of Usher: import UsherModule.forRoot() or forRootAsync() in the root module',
);
