import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, In } from 'typeorm';
import { ClientAccount } from '../../../account/client-account.js';
import { AuditLog } from '../../../audit/audit.module.js';
import { Consent } from '../../../auth/authorize/authorization.entity.js';
import { ClientApplications } from '../../../clients/client-applications.js';
import { ClientsService } from '../../../clients/clients.service.js';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { Member } from '../../../members/member.entity.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../usher.options.js';
import { orderKey } from '../../../values/identifier.js';
import { ACKNOWLEDGED, ALARMING, FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { ANY_WEBHOOK } from '../../../webhooks/search/webhook-criteria.js';
import { WebhookList } from '../../../webhooks/search/webhook-list.js';
import { webhookHealth } from '../../../webhooks/webhook-health.js';
import { countPending, findDeliveries } from '../../../webhooks/webhook-queries.js';
import { ClientDirectory } from './client-directory.js';

const RECENT = 10;
const MAX_MEMBERS = 50;
/** How many pending notifications are counted at most where their number has no limit. */
const MAX_COUNTED = 10_000;

export type ClientDetails = Awaited<ReturnType<ClientDetailsReader['read']>>;

/** All that the page of a client shows. Each query reads a bounded part of an index. */
@Injectable()
export class ClientDetailsReader {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly clients: ClientsService,
    private readonly account: ClientAccount,
    private readonly applications: ClientApplications,
    private readonly list: WebhookList,
    private readonly directory: ClientDirectory,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Throws 404 if there is no client with this id. */
  async read(id: string) {
    const client = await this.clients.get(id);
    const failures = { subject: `client:${id}`, action: 'client.authentication-failed', limit: RECENT } as const;
    const [account, application, failing, health, { webhooks }, orders, members, urlChanges, signInFailures, pending] =
      await Promise.all([
        this.account.show(id),
        this.applications.find(id),
        this.dataSource.manager.findBy(
          FailingHost,
          [ALARMING, ACKNOWLEDGED].map((which) => ({ ...which, clientId: id })),
        ),
        webhookHealth(this.dataSource, id),
        this.list.page({ ...ANY_WEBHOOK, clientId: id }, null, RECENT),
        this.orders(id, RECENT),
        this.members(id),
        this.audit.list({ ...failures, action: 'client.notify-url-set' }),
        this.audit.list(failures),
        countPending(this.dataSource, id, this.options.pendingWebhookLimit ?? MAX_COUNTED),
      ]);
    return {
      client,
      account,
      isTrusted: application?.isTrusted ?? false,
      failing,
      health,
      webhooks,
      orders,
      members,
      urlChanges,
      signInFailures,
      pending,
      limits: this.options,
    };
  }

  /** The members with the newest consents. Members of the embedding application's own have no name here. */
  private async members(clientId: string) {
    const { manager } = this.dataSource;
    const found = await manager.find(Consent, { where: { clientId }, order: { givenAt: 'DESC' }, take: MAX_MEMBERS });
    const members = await manager.findBy(Member, { id: In(found.map(({ ownerId }) => ownerId)) });
    const names = new Map(members.map(({ id, name }) => [id, name]));
    return found.map((consent) => ({ ...consent, name: names.get(consent.ownerId) }));
  }

  /** The newest orders of a client, with the states of their notifications. */
  async orders(id: string, most: number) {
    const found = await this.directory.recentOrders(id, most);
    const orders = found.map((order) => ({ ...order, key: orderKey(order.id) }));
    const keys = orders.map(({ key }) => key);
    const deliveries = await findDeliveries(this.dataSource, id, keys);
    return orders.map((order) => ({ ...order, delivery: deliveries.get(order.key) ?? null }));
  }
}
