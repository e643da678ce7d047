import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In, IsNull, MoreThan, Not } from 'typeorm';
import { Client } from '../../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { databaseNow } from '../../../database/sql.js';
import { ACKNOWLEDGED, ALARMING, FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { hostOf } from '../../../values/urls/notify-url.js';
import { DeliveryFigures } from '../../../webhooks/figures/delivery-figures.js';
import { DeliveryPauses } from '../../../webhooks/delivery-pauses.js';
import { Webhook, WebhookAttempt } from '../../../webhooks/webhook.entity.js';
import { CachedQueries } from '../../health/cached-query.js';
import { beginOf, figuresOfPoints, inHours, pointsOf, type Range } from '../figures/figures.js';

export type HostDetails = Awaited<ReturnType<ReceiversData['of']>>;

export const MAX_HOSTS = 1_000;
const MAX_CLIENTS = 50;
/** Answers are looked for among the newest notifications of the clients with the most attempts. */
const ANSWERING_CLIENTS = 10;
const NEWEST = 100;
/** A page reads the attempts of at most this many notifications. */
export const MAX_NOTIFICATIONS = 100;
const MAX_ANSWERS = 25;
const MAX_URLS = 50;

@Injectable()
export class ReceiversData {
  /** The hosts with the most failures come first. */
  readonly lists = new CachedQueries(async (range: Range) => {
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const since = beginOf(inHours(range), now);
    const earliest = beginOf(inHours(range), since - 1);
    const [hosts, earlier, failing] = await Promise.all([
      this.figures.hosts(since, now, MAX_HOSTS),
      this.figures.isKept(earliest, now) ? this.figures.hosts(earliest, since, MAX_HOSTS, false) : [],
      manager.find(FailingHost, {
        where: { ...ALARMING, lastFailedAt: MoreThan(since) },
        order: { failingSince: 'DESC' },
        take: 1_000,
      }),
    ]);
    const before = new Map(earlier.map(({ host, figures }) => [host, figures]));
    // The map keeps the last entry of each host, which is the failure that began first.
    const byHost = new Map(failing.map((row) => [row.host, row]));
    return hosts.map((one) => ({ ...one, failing: byHost.get(one.host) ?? null, before: before.get(one.host) }));
  });

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly figures: DeliveryFigures,
    private readonly pauses: DeliveryPauses,
  ) {}

  async of(host: string, shown: Range) {
    const range = inHours(shown);
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const since = beginOf(range, now);
    const earliest = beginOf(range, since - 1);
    const [sums, found, concerned, paused] = await Promise.all([
      this.figures.ofHost(host, earliest, range.periodMs),
      this.figures.clientsOf(host, since, MAX_CLIENTS),
      this.pauses.clientsAt(host),
      this.pauses.find(`host:${host}`),
    ]);
    const ids = found.map(({ clientId }) => clientId);
    const [{ newest, urls, names }, failing] = await Promise.all([
      this.at(host, ids),
      manager.find(FailingHost, {
        where: [ALARMING, ACKNOWLEDGED].map((which) => ({ ...which, clientId: In(ids), host })),
      }),
    ]);
    const clients = found.map((one) => ({
      ...one,
      client: { id: one.clientId, name: names.get(one.clientId) },
      /** Null: not known. */
      notifyUrl: urls.get(one.clientId) ?? null,
      failing: failing.find(({ clientId }) => clientId === one.clientId) ?? null,
    }));
    return {
      host,
      range: shown,
      concerned,
      paused,
      points: pointsOf(range, now, sums),
      before: this.figures.isKept(earliest, now) ? figuresOfPoints(pointsOf(range, since - 1, sums)) : undefined,
      clients,
      answers: await answersTo(manager, newest, names),
    };
  }

  /**
   * The newest notifications of these clients to this host, without their bodies, and the URL and the name of each client.
   * The URL is its registered Notify URL if that is at this host, otherwise that of its newest notification.
   */
  async at(host: string, clientIds: string[]) {
    const { manager } = this.dataSource;
    const isHere = ({ notifyUrl }: Pick<Client, 'notifyUrl'>) => notifyUrl && hostOf(notifyUrl) === host;
    const select = { id: true, clientId: true, notifyUrl: true };
    const [clients, ...found] = await Promise.all([
      manager.findBy(Client, { id: In(clientIds) }),
      ...clientIds
        .slice(0, ANSWERING_CLIENTS)
        .map((clientId) => manager.find(Webhook, { select, where: { clientId }, order: { id: 'DESC' }, take: NEWEST })),
    ]);
    const newest = found.flat().filter(isHere);
    const urls = new Map<string, string | null>(
      newest.toReversed().map((webhook) => [webhook.clientId, webhook.notifyUrl]),
    );
    for (const { id, notifyUrl } of clients.filter(isHere)) urls.set(id, notifyUrl);
    return { newest, urls, names: new Map(clients.map(({ id, name }) => [id, name])) };
  }
}

/**
 * The last answers to the newest of these webhooks, and figures of each Notify URL. The one with the most failures is
 * first.
 */
async function answersTo(manager: EntityManager, webhooks: Webhook[], names: Map<string, string>) {
  // Ids begin with their time, so these are the newest of all clients.
  const newest = webhooks.toSorted((one, other) => (one.id < other.id ? 1 : -1)).slice(0, MAX_NOTIFICATIONS);
  const byId = new Map(newest.map((webhook) => [webhook.id, webhook]));
  const attempts = await manager.find(WebhookAttempt, {
    where: { webhookId: In([...byId.keys()]), durationMs: Not(IsNull()) },
    order: { startedAt: 'DESC' },
  });
  const ended = attempts.flatMap((attempt) => {
    const webhook = byId.get(attempt.webhookId);
    return webhook
      ? [{ ...webhook, attempt, client: { id: webhook.clientId, name: names.get(webhook.clientId) } }]
      : [];
  });
  const urls = [...new Set(ended.map(({ notifyUrl }) => notifyUrl))].map((url) => {
    const answers = ended.flatMap(({ notifyUrl, attempt }) => (notifyUrl === url ? attempt : []));
    const durations = answers.map(({ durationMs }) => durationMs ?? 0).sort((one, other) => one - other);
    return {
      notifyUrl: url,
      attempts: answers.length,
      failures: answers.filter(({ error }) => error !== null).length,
      medianMs: durations[Math.floor(durations.length / 2)] ?? 0,
      last: answers[0] ?? null,
    };
  });
  return {
    last: ended.slice(0, MAX_ANSWERS),
    urls: urls.sort((one, other) => other.failures - one.failures || other.attempts - one.attempts).slice(0, MAX_URLS),
  };
}
