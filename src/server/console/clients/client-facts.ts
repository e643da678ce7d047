import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, In, IsNull } from 'typeorm';
import { Client } from '../../../clients/client.entity.js';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { runStatement, statementFor } from '../../../database/statements/statement.js';
import { FailingHost } from '../../../webhooks/contact/failing-host.entity.js';
import { Webhook } from '../../../webhooks/webhook.entity.js';

/** What the list of clients tells about one of them. */
export interface ClientFacts {
  lastWebhookId: string | null;
  /** Since when one of its receivers fails, in milliseconds since 1970; null if none does. */
  failingSince: number | null;
}

/** Reads what the list of clients tells about them. */
@Injectable()
export class ClientFactsReader {
  constructor(@Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource) {}

  /** By client id. */
  async of(clientIds: string[]): Promise<Map<string, ClientFacts>> {
    if (clientIds.length === 0) return new Map();
    const [lastIds, hosts] = await Promise.all([
      this.lastWebhookIds(clientIds),
      this.dataSource.manager.findBy(FailingHost, { clientId: In(clientIds), recoveredAt: IsNull() }),
    ]);
    return new Map(
      clientIds.map((id) => {
        const since = hosts.filter(({ clientId }) => clientId === id).map(({ failingSince }) => failingSince);
        const failingSince = since.length === 0 ? null : Math.min(...since);
        return [id, { lastWebhookId: lastIds.get(id) ?? null, failingSince }];
      }),
    );
  }

  /** One entry of the index on client and id for each client. */
  private async lastWebhookIds(clientIds: string[]): Promise<Map<string, string | null>> {
    const byClient = dialectOf(this.dataSource).byIndex('usher_webhook_client');
    const statement = statementFor(
      this.dataSource,
      (parameter) => `
        SELECT c.id, (
          SELECT w.id FROM ${tableOf(this.dataSource, Webhook)} w ${byClient}
          WHERE w.client_id = c.id ORDER BY w.client_id DESC, w.id DESC LIMIT 1) AS last_id
        FROM ${tableOf(this.dataSource, Client)} c WHERE c.id IN (${clientIds.map(parameter).join(', ')})`,
    );
    const { rows } = await runStatement(this.dataSource, statement);
    return new Map(rows.map(({ id, last_id: last }) => [String(id), last === null ? null : String(last)]));
  }
}
