import { digestToken, generateToken } from '../../src/auth/tokens/token.js';
import { newId } from '../../src/values/identifier.js';
import { Booth } from './booth.js';
import type { Changes } from './bulk-rows.js';
import { openServices } from './library.js';
import { PendingNotifications } from './pending-notifications.js';
import { progress } from '../harness/progress.js';
import type { Effort } from '../harness/row.js';

const DAY_MS = 86_400_000;
/** Usher keeps a notification for 90 days. */
const RECENT_MS = 80 * DAY_MS;
const EXPIRED_MS = 100 * DAY_MS;
/** How many of the many rows the look-ups use. */
const LOOKED_UP = 10_000;

/** A database with many rows of each kind, inserted in bulk, and Usher's services on it. */
export class GrownDatabase {
  /** Valid access tokens, spread over the rows. */
  readonly tokens: string[] = [];
  /** Of delivered notifications, spread over the rows. */
  readonly references: string[] = [];

  private constructor(
    readonly size: number,
    readonly clientId: string,
    readonly services: Awaited<ReturnType<typeof openServices>>,
    private readonly pending: PendingNotifications,
    /** The digest of an access token that Usher issued. */
    private readonly issued: string,
  ) {}

  static async grow(size: number, effort: Effort): Promise<GrownDatabase> {
    const booth = await Booth.open('MariaDB + Redis', effort);
    const pending = await PendingNotifications.prepare(booth);
    const { access_token } = await booth.refresh((await booth.token()).refresh_token);
    await booth.server.stop();
    const { clientId, settings } = booth.usher;
    const services = await openServices(settings);
    const database = new GrownDatabase(size, clientId, services, pending, digestToken(access_token));
    await database.insertTokens();
    await database.insertNotifications();
    return database;
  }

  /** Adds notifications without jobs, due now or earlier. Returns their ids. */
  async addDue(count: number, lateMs = 0): Promise<string[]> {
    return (await this.pending.addRows(count, Date.now() - lateMs)).map(({ id }) => id);
  }

  /** Adds access tokens and delivered notifications that the next purge deletes. */
  async addExpired(count: number): Promise<void> {
    const past = Date.now() - EXPIRED_MS;
    await this.copyTokens(many(count, () => ({ digest: newDigest('access'), expires_at: past })));
    await this.pending.copy(many(count, () => delivered(past)));
  }

  private async insertTokens(): Promise<void> {
    this.says('tokens');
    const [row] = await this.pending.rows.query('SELECT grant_id FROM usher_access_token WHERE digest = ?', [
      this.issued,
    ]);
    const grants = many(this.size, () => ({
      id: newId('sandbox', Date.now()),
      refresh_digest: newDigest('refresh'),
      access_digest: null,
    }));
    await this.pending.rows.copy('usher_grant', 'id', String(row?.grant_id), grants);
    const every = Math.ceil(this.size / LOOKED_UP);
    await this.copyTokens(
      many(this.size, (n) => {
        const token = generateToken('access', 'sandbox');
        if (n % every === 0) this.tokens.push(token);
        return { digest: digestToken(token) };
      }),
    );
  }

  private copyTokens(changes: Iterable<Changes>): Promise<void> {
    return this.pending.rows.copy('usher_access_token', 'digest', this.issued, changes);
  }

  /** Delivered ones with their attempts, and as many of which only the reference is left. */
  private async insertNotifications(): Promise<void> {
    this.says('notifications');
    const { rows } = this.pending;
    const every = Math.ceil(this.size / LOOKED_UP);
    const now = Date.now();
    const ids: string[] = [];
    await this.pending.copy(
      many(this.size, (n) => {
        const changes = delivered(now - Math.floor((n / this.size) * RECENT_MS));
        ids.push(changes.id);
        if (n % every === 0) this.references.push(changes.reference_id);
        return changes;
      }),
    );
    this.says('attempts');
    const [claimed = ''] = await this.addDue(1);
    await this.services.claims.claim([claimed]);
    await rows.copy(
      'usher_webhook_attempt',
      'webhook_id',
      claimed,
      many(this.size, (n) => ({ webhook_id: ids[n]! })),
    );
    this.says('references of deleted notifications');
    await this.addExpired(1);
    await this.services.purge.run();
    const [kept] = await rows.query('SELECT webhook_id FROM usher_delivered_reference');
    const references = many(this.size, () => ({
      webhook_id: newId('sandbox', now),
      reference_id: newId('sandbox', now),
    }));
    await rows.copy('usher_delivered_reference', 'webhook_id', String(kept?.webhook_id), references);
  }

  private says(kind: string): void {
    progress(`inserting ${this.size.toLocaleString('en')} ${kind}`);
  }
}

/** What makes a pending notification a delivered one. */
function delivered(finishedAt: number) {
  const id = newId('sandbox', finishedAt);
  const ended = { status: 'SUCCESS', attempts: 1, next_attempt_at: null, finished_at: finishedAt };
  return { id, reference_id: id, live_key: `NOTIFY_ORDER_COMPLETION:${id}`, ...ended };
}

const newDigest = (kind: 'access' | 'refresh'): string => digestToken(generateToken(kind, 'sandbox'));

function* many<T>(count: number, make: (n: number) => T): Generator<T> {
  for (let n = 0; n < count; n += 1) yield make(n);
}
