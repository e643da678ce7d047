import { Inject } from '@nestjs/common';
import { type DataSource, type EntityManager, MoreThan } from 'typeorm';
import { AuditLog, FailureCounts } from '../../audit/audit.module.js';
import { KeyRing } from '../../clients/secrets/vault.js';
import type { Session } from '../../database/browser-session.entity.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { isSealed, newToken, seal } from '../../http/pages/form-tokens.js';
import type { Actor } from '../../values/actor.js';
import { ENGLISH, filled } from '../../values/member-texts.js';
import type { MasterKey } from '../../values/master-key.js';
import { digestToken } from '../tokens/token.js';
import type { Account } from './account.entity.js';
import type { Accounts } from './accounts.js';

/** A session ends this long after the sign-in in any case. */
export const ABSOLUTE_MS = 43_200_000;
/** A request extends the session only if that moves its end by so much. */
const EXTEND_BY_MS = 60_000;

/** How long after a sign-in an account knows the browser. */
export const KNOWN_MS = 15_552_000_000;
/** So many failures are probably the owner's own typing errors, and are not shown. */
const TYPING_ERRORS = 2;
/** Each counts the failures from one address in a minute. */
const MAX_FAILURE_ROWS = 10_000;

interface Holder {
  /** How the audit names the account. */
  subject: string;
  /** The hash of the password, or that of the settings: with another one the account knows no browser. */
  secret: string;
}

export interface BegunSession {
  token: string;
  /** The cookie by which the account knows the browser. */
  known: string;
  /** Tries to sign in to the account that failed or were refused since its last sign-in; 0 for very few. */
  failures: number;
}

/** The sessions of one kind of people. The browser holds a token; the table only its digest. */
export abstract class Sessions<T extends Session, Owner> {
  /** A session ends `idleMs` after its last request, and `absoluteMs` after the sign-in in any case. */
  constructor(
    protected readonly dataSource: DataSource,
    private readonly entity: new () => T,
    private readonly idleMs: number,
    private readonly absoluteMs = ABSOLUTE_MS,
  ) {}

  /** The owner of this session; null if it does not exist or has ended. `isUse`: the session is extended. */
  async find(token: string, isUse = true): Promise<Owner | null> {
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const where = { digest: digestToken(token), expiresAt: MoreThan(now) };
    const session = (await manager.findOneBy<Session>(this.entity, where)) as T | null;
    const owner = session && (await this.ownerOf(session, token));
    if (session && owner && isUse) await this.extend(session, now);
    return owner;
  }

  async end(token: string): Promise<void> {
    await this.dataSource.manager.delete<Session>(this.entity, { digest: digestToken(token) });
  }

  /** Begins a session in the caller's transaction, and returns its token. `complete` adds the columns of the kind. */
  protected async start(manager: EntityManager, complete: (session: Session, token: string) => T): Promise<string> {
    const token = newToken();
    const createdAt = await databaseNow(manager);
    const session = { digest: digestToken(token), createdAt, expiresAt: createdAt + this.idleMs };
    await manager.insert<Session>(this.entity, complete(session, token));
    return token;
  }

  protected abstract ownerOf(session: T, token: string): Promise<Owner | null>;

  private async extend({ digest, createdAt, expiresAt }: Session, now: number): Promise<void> {
    const end = Math.min(now + this.idleMs, createdAt + this.absoluteMs);
    if (end - expiresAt < EXTEND_BY_MS) return;
    await this.dataSource.manager.update<Session>(this.entity, { digest }, { expiresAt: end });
  }
}

/** The sessions of members or of operators, who have a password. */
export abstract class AccountSessions<T extends Session, Owner> extends Sessions<T, Owner> {
  protected abstract readonly accounts: Accounts<Account>;
  protected abstract readonly kind: 'member' | 'operator';

  @Inject(KeyRing) private readonly keys: KeyRing;
  @Inject(FailureCounts) private readonly counts: FailureCounts;

  constructor(
    dataSource: DataSource,
    private readonly audit: AuditLog,
    entity: new () => T,
    idleMs: number,
  ) {
    super(dataSource, entity, idleMs);
  }

  /**
   * `account` is null if it has no row. Returns null if the account was disabled or got another password meanwhile.
   * `complete` adds the columns of the kind.
   */
  protected async begin(
    account: Account | null,
    holder: Holder,
    complete: (session: Session, token: string) => T,
    actor: Actor,
  ): Promise<BegunSession | null> {
    const { subject } = holder;
    const failures = await this.failuresOf(subject);
    const token = await inTransaction(this.dataSource, async (manager) => {
      if (account && !(await this.accounts.lockUnchanged(manager, account))) return null;
      const begun = await this.start(manager, complete);
      await this.audit.record({ action: `${this.kind}.signed-in`, subject, actor }, manager);
      return begun;
    });
    const known = seal(keyOf(this.keys.encryptionKey()), purposeOf(holder));
    return token === null ? null : { token, known, failures };
  }

  /** The cookie, if the account knows the browser by it. */
  protected knownBy(cookie: string | null, holder: Holder): string | null {
    if (cookie === null) return null;
    const isOf = (key: MasterKey) => isSealed(keyOf(key), purposeOf(holder), cookie, KNOWN_MS);
    return this.keys.ids.some((id) => isOf(this.keys.find(id) as MasterKey)) ? cookie : null;
  }

  private async failuresOf(subject: string): Promise<number> {
    await this.counts.flush(subject);
    const [last] = await this.audit.list({ subject, action: `${this.kind}.signed-in`, limit: 1 });
    const action = `${this.kind}.authentication-failed` as const;
    const rows = await this.audit.list({ subject, action, since: last && last.createdAt + 1, limit: MAX_FAILURE_ROWS });
    const failures = rows.reduce((sum, { detail }) => sum + Number(detail.failed) + Number(detail.blocked), 0);
    return failures > TYPING_ERRORS ? failures : 0;
  }
}

/** The English text for `failures` of a {@link BegunSession}. */
export const failuresText = (count: number): string => filled(ENGLISH.failures, { count });

const keyOf = ({ digestKey }: MasterKey): string => digestKey.toString('base64');

const purposeOf = ({ subject, secret }: Holder): string => `known browser\n${subject}\n${secret}`;
