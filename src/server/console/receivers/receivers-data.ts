import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, In, IsNull, MoreThan } from 'typeorm';
import { Client } from '../../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { databaseNow } from '../../../database/sql.js';
import { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { hostOf } from '../../../values/urls/notify-url.js';
import { DeliveryFigures, type Figures, type HostFigures } from '../../../webhooks/figures/delivery-figures.js';
import { Webhook } from '../../../webhooks/webhook.entity.js';
import { CachedQuery } from '../../health/cached-query.js';
import { beginOf, LAST_DAY, LAST_WEEK, type Point, pointsOf, type Range } from '../figures/periods.js';
import { namedClients, type NamedClient } from '../overview/overview-data.js';
import { type Answers, answersTo } from './answers.js';

export type ListedHost = HostFigures & { failing: FailingHost | null };

/** The deliveries to a host for one client. */
export interface HostClient {
  client: NamedClient;
  /** Where its notifications to this host go: the registered one, or that of its newest notification. Null: not known. */
  notifyUrl: string | null;
  figures: Figures;
  failing: FailingHost | null;
}

export interface Receiver {
  points: Point[];
  clients: HostClient[];
  answers: Answers;
}

/** The ranges that the pages offer. */
export const RANGES = [LAST_DAY, LAST_WEEK];

export const MAX_HOSTS = 200;
export const MAX_CLIENTS = 50;
/** The clients with the most attempts, and the newest notifications of each, among which answers are looked for. */
const ANSWERING_CLIENTS = 10;
const NEWEST = 100;

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
    const since = beginOf(range, await databaseNow(manager));
    const hosts = await this.figures.hosts(since, MAX_HOSTS);
    const failing = await manager.find(FailingHost, {
      where: { lastFailedAt: MoreThan(since), recoveredAt: IsNull() },
      order: { failingSince: 'DESC' },
      take: 1_000,
    });
    // Of several clients at a host, the failure that began first remains.
    const byHost = new Map(failing.map((row) => [row.host, row]));
    return hosts.map((one) => ({ ...one, failing: byHost.get(one.host) ?? null }));
  }

  async of(host: string, range: Range): Promise<Receiver> {
    const now = await databaseNow(this.dataSource.manager);
    const since = beginOf(range, now);
    const points = pointsOf(range, now, await this.figures.ofHost(host, since, range.periodMs), range.periodMs);
    const found = await this.figures.clientsOf(host, since, MAX_CLIENTS);
    const newest = await this.newestAt(
      host,
      found.slice(0, ANSWERING_CLIENTS).map(({ clientId }) => clientId),
    );
    const clients = await this.clientsOf(host, found, newest);
    return { points, clients, answers: await answersTo(this.dataSource.manager, newest) };
  }

  /** Where a test for a client at this host goes. Null if it has no Notify URL there. */
  async notifyUrlAt(host: string, clientId: string): Promise<string | null> {
    const registered = await this.registeredUrls(host, [clientId]);
    return registered.get(clientId) ?? (await this.newestAt(host, [clientId]))[0]?.notifyUrl ?? null;
  }

  private async clientsOf(
    host: string,
    found: { clientId: string; figures: Figures }[],
    newest: Webhook[],
  ): Promise<HostClient[]> {
    const { manager } = this.dataSource;
    const ids = found.map(({ clientId }) => clientId);
    const [named, registered, failing] = await Promise.all([
      namedClients(manager, ids),
      this.registeredUrls(host, ids),
      manager.find(FailingHost, { where: { clientId: In(ids), host, recoveredAt: IsNull() } }),
    ]);
    return found.map(({ clientId, figures }) => ({
      client: named(clientId),
      notifyUrl: registered.get(clientId) ?? newest.find((one) => one.clientId === clientId)?.notifyUrl ?? null,
      figures,
      failing: failing.find((row) => row.clientId === clientId) ?? null,
    }));
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
