import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, IsNull } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { Client } from '../clients/client.entity.js';
import { getClient } from '../clients/clients.service.js';
import { tableOf, USHER_DATA_SOURCE } from '../database/data-source.js';
import { databaseNow, inTransaction } from '../database/sql.js';
import { runSql } from '../database/statements/statement.js';
import { conflict, unprocessable } from '../http/problem.js';
import type { Actor } from '../values/actor.js';
import { requiredId } from '../values/identifier.js';
import { HOST_LENGTH, parseUrl } from '../values/urls/notify-url.js';
import { DeliveryFigure } from './figures/delivery-figure.entity.js';
import { isAtHost } from './search/webhook-criteria.js';
import { DeliveryPause, type PauseSubject, Webhook } from './webhook.entity.js';

const REASON = /^(?=.*\S)\P{Cc}{1,500}$/u;

/** Pauses and resumes the deliveries of a client, `client:ID`, or to a host, `host:example.com:8443`. */
@Injectable()
export class DeliveryPauses {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly audit: AuditLog,
  ) {}

  /**
   * From now on no attempt begins; a running one is finished. Notifications stay PENDING and use up no attempt.
   * `reason`: 1 to 500 characters, which the client of `client:ID` can read. 404 for an unknown client, 409 if it is paused already, 422 for an invalid host
   * or reason.
   */
  async pause(subject: PauseSubject, reason: string, actor?: Actor): Promise<void> {
    const id = checked(subject).replace(/^\w+:/, '');
    if (typeof reason !== 'string' || !REASON.test(reason))
      throw unprocessable('the reason must have 1 to 500 characters in one line');
    if (subject.startsWith('host:')) this.checkHost(id);
    else await getClient(this.dataSource.manager, id);
    if (await this.find(subject)) throw conflict(`deliveries of ${subject} are paused already`);
    await inTransaction(this.dataSource, async (manager) => {
      await manager.insert(DeliveryPause, { subject, since: await databaseNow(manager), reason });
      await this.audit.record({ action: 'delivery.paused', subject, actor, detail: { reason } }, manager);
    });
  }

  /** 422 if this cannot be the host of a Notify URL. */
  checkHost(host: string): void {
    if (typeof host !== 'string' || host.length > HOST_LENGTH || parseUrl(`https://${host}/`)?.host !== host)
      throw unprocessable('the host must be that of a Notify URL, such as example.com:8443');
  }

  /**
   * New notifications are sent at once. Those that waited become due from the next retry run on, 100 a second. 409 if it is not
   * paused.
   */
  async resume(subject: PauseSubject, actor?: Actor): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      const resumedAt = await databaseNow(manager);
      const { affected } = await manager.update(
        DeliveryPause,
        { subject: checked(subject), resumedAt: IsNull() },
        { resumedAt },
      );
      if (affected === 0) throw conflict(`deliveries of ${subject} are not paused`);
      await this.audit.record({ action: 'delivery.resumed', subject, actor }, manager);
    });
  }

  /** The pause of this subject; null if it is not paused. */
  async find(subject: PauseSubject): Promise<DeliveryPause | null> {
    return this.dataSource.manager.findOneBy(DeliveryPause, { subject: checked(subject), resumedAt: IsNull() });
  }

  /**
   * The clients that a pause of this host concerns: with a registered Notify URL there, with attempts there in the retained
   * figures, or among the 10,000 pending notifications that are due first.
   */
  async clientsAt(host: string): Promise<Pick<Client, 'id' | 'name'>[]> {
    requiredId(host, 'the host');
    const { dataSource } = this;
    // MariaDB reads a derived table once. It would read a UNION within IN once for each client.
    const { rows } = await runSql(
      dataSource,
      (parameter) => `
        SELECT c.id, c.name FROM ${tableOf(dataSource, Client)} c
        WHERE ${isAtHost(dataSource, 'c.notify_url', host, parameter)} OR c.id IN (
          SELECT known.client_id FROM (
            SELECT f.client_id FROM ${tableOf(dataSource, DeliveryFigure)} f WHERE f.host = ${parameter(host)}
            UNION SELECT w.client_id FROM (
              SELECT client_id, notify_url FROM ${tableOf(dataSource, Webhook)}
              WHERE status = 'PENDING' ORDER BY next_attempt_at LIMIT 10000) w
            WHERE ${isAtHost(dataSource, 'w.notify_url', host, parameter)}) known) ORDER BY c.name, c.id`,
    );
    return rows as unknown as Client[];
  }
}

/** 422 for anything else: a `DataSource` can leave undefined out of a `where`, which then also finds the pauses of others. */
function checked(subject: PauseSubject): PauseSubject {
  if (typeof subject === 'string' && /^(client|host):/.test(subject)) return subject;
  throw unprocessable('the subject must be client:ID or host:example.com:8443');
}
