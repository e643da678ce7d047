import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In, IsNull, MoreThan, Not } from 'typeorm';
import { Client } from '../../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { databaseNow } from '../../../database/sql.js';
import { ACKNOWLEDGED, ALARMING, FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { hostOf } from '../../../values/urls/notify-url.js';
import { DeliveryFigures, type HostFigures } from '../../../webhooks/figures/delivery-figures.js';
import { Webhook, WebhookAttempt } from '../../../webhooks/webhook.entity.js';
import { CachedQuery } from '../../health/cached-query.js';
import { beginOf, figuresOfPoints, inHours, pointsOf, type Range, RANGES } from '../figures/figures.js';
import { withClients } from '../overview/overview-data.js';

/** `before`: its figures in the time before. */
export type ListedHost = HostFigures & { failing: FailingHost | null; before: HostFigures['figures'] | undefined };

/** What was sent to a host. */
export type Receiver = Awaited<ReturnType<ReceiversData['of']>>;
/** The deliveries to a host for one client. */
export type HostClient = Receiver['clients'][number];

/** The attempts at one Notify URL. */
export type UrlAnswers = ReturnType<typeof byUrl>[number];

export const MAX_HOSTS = 200;
export const MAX_CLIENTS = 50;
/** The clients with the most attempts, and the newest notifications of each, among which answers are looked for. */
const ANSWERING_CLIENTS = 10;
const NEWEST = 100;
/** The attempts of so many notifications are read. */
export const MAX_NOTIFICATIONS = 100;
const MAX_ANSWERS = 25;
const MAX_URLS = 50;

@Injectable()
export class ReceiversData {
  private readonly lists = new Map(RANGES.map((range) => [range, new CachedQuery(() => this.readList(range))]));

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly figures: DeliveryFigures,
  ) {}

  /** Those with the most failures first. Null while the database does not answer. */
  async list(range: Range): Promise<ListedHost[] | null> {
    return (await this.lists.get(range)?.get()) ?? null;
  }

  private async readList(range: Range): Promise<ListedHost[]> {
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const since = beginOf(inHours(range), now);
    const hosts = await this.figures.hosts(since, now, MAX_HOSTS);
    const earlier = await this.figures.hosts(beginOf(inHours(range), since - 1), since, MAX_HOSTS);
    const before = new Map(earlier.map(({ host, figures }) => [host, figures]));
    const failing = await manager.find(FailingHost, {
      where: { ...ALARMING, lastFailedAt: MoreThan(since) },
      order: { failingSince: 'DESC' },
      take: 1_000,
    });
    // Of several clients at a host, the failure that began first remains.
    const byHost = new Map(failing.map((row) => [row.host, row]));
    return hosts.map((one) => ({ ...one, failing: byHost.get(one.host) ?? null, before: before.get(one.host) }));
  }

  async of(host: string, shown: Range) {
    const range = inHours(shown);
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const since = beginOf(range, now);
    const sums = await this.figures.ofHost(host, beginOf(range, since - 1), range.periodMs);
    const found = await this.figures.clientsOf(host, since, MAX_CLIENTS);
    const ids = found.map(({ clientId }) => clientId);
    const newest = await this.newestAt(host, ids.slice(0, ANSWERING_CLIENTS));
    const [clients, urls, failing, answers] = await Promise.all([
      withClients(manager, found),
      this.registeredUrls(host, ids),
      manager.find(FailingHost, {
        where: [ALARMING, ACKNOWLEDGED].map((which) => ({ ...which, clientId: In(ids), host })),
      }),
      answersTo(manager, newest),
    ]);
    return {
      points: pointsOf(range, now, sums),
      before: figuresOfPoints(pointsOf(range, since - 1, sums)),
      clients: clients.map((one) => ({
        ...one,
        /** Where its notifications to this host go: the registered one, or that of its newest notification. Null: not known. */
        notifyUrl:
          urls.get(one.clientId) ?? newest.find(({ clientId }) => clientId === one.clientId)?.notifyUrl ?? null,
        failing: failing.find(({ clientId }) => clientId === one.clientId) ?? null,
      })),
      answers,
    };
  }

  /** Where a test for a client at this host goes. Null if it has no Notify URL there. */
  async notifyUrlAt(host: string, clientId: string): Promise<string | null> {
    const registered = await this.registeredUrls(host, [clientId]);
    return registered.get(clientId) ?? (await this.newestAt(host, [clientId]))[0]?.notifyUrl ?? null;
  }

  /** The registered Notify URLs of clients at this host. */
  private async registeredUrls(host: string, ids: string[]): Promise<Map<string, string>> {
    const select = { id: true, notifyUrl: true };
    const rows = await this.dataSource.manager.find(Client, { select, where: { id: In(ids) } });
    return new Map(
      rows.flatMap(({ id, notifyUrl }) => (notifyUrl !== null && hostOf(notifyUrl) === host ? [[id, notifyUrl]] : [])),
    );
  }

  /** The newest notifications of these clients to this host, without their bodies. */
  private async newestAt(host: string, clientIds: string[]): Promise<Webhook[]> {
    const select = { id: true, clientId: true, notifyUrl: true };
    const found = await Promise.all(
      clientIds.map((clientId) =>
        this.dataSource.manager.find(Webhook, { select, where: { clientId }, order: { id: 'DESC' }, take: NEWEST }),
      ),
    );
    return found.flat().filter(({ notifyUrl }) => notifyUrl !== '' && hostOf(notifyUrl) === host);
  }
}

/** The answers to the newest of these webhooks: the last ones, and those of each Notify URL, the most failures first. */
async function answersTo(manager: EntityManager, webhooks: Webhook[]) {
  // Ids begin with their time, so these are the newest of all clients.
  const newest = webhooks.toSorted((one, other) => (one.id < other.id ? 1 : -1)).slice(0, MAX_NOTIFICATIONS);
  const byId = new Map((await withClients(manager, newest)).map((webhook) => [webhook.id, webhook]));
  const attempts = await manager.find(WebhookAttempt, {
    where: { webhookId: In([...byId.keys()]), durationMs: Not(IsNull()) },
    order: { startedAt: 'DESC' },
  });
  const ended = attempts.flatMap((attempt) => {
    const webhook = byId.get(attempt.webhookId);
    return webhook ? [{ attempt, client: webhook.client, notifyUrl: webhook.notifyUrl }] : [];
  });
  return { last: ended.slice(0, MAX_ANSWERS), urls: byUrl(ended) };
}

/** `ended` has the newest first. */
function byUrl(ended: { notifyUrl: string; attempt: WebhookAttempt }[]) {
  const groups = new Map<string, [WebhookAttempt, ...WebhookAttempt[]]>();
  for (const { notifyUrl, attempt } of ended) {
    const group = groups.get(notifyUrl);
    if (group) group.push(attempt);
    else groups.set(notifyUrl, [attempt]);
  }
  return [...groups]
    .map(([notifyUrl, attempts]) => ({
      notifyUrl,
      attempts: attempts.length,
      failures: attempts.filter(({ error }) => error !== null).length,
      /** The median of their durations. */
      medianMs: median(attempts.map(({ durationMs }) => durationMs ?? 0)),
      last: attempts[0],
    }))
    .sort((one, other) => other.failures - one.failures || other.attempts - one.attempts)
    .slice(0, MAX_URLS);
}

function median(values: number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
