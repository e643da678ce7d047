import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In, IsNull } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { Client } from '../clients/client.entity.js';
import { unknownClient } from '../clients/clients.service.js';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../database/data-source.js';
import { databaseNow, inTransaction } from '../database/sql.js';
import { runSql } from '../database/statements/statement.js';
import { conflict, unprocessable } from '../http/problem.js';
import type { Actor } from '../values/actor.js';
import { hostOf, parseUrl } from '../values/urls/notify-url.js';
import { DeliveryFigure } from './figures/delivery-figure.entity.js';
import { DeliveryPause, type PauseSubject, Webhook } from './webhook.entity.js';

const REASON = /^(?=.*\S)[^\p{Cc}\p{Bidi_Control}]{1,500}$/u;

/** Pauses and resumes the deliveries of a client, `client:ID`, or to a host, `host:example.com:8443`. */
@Injectable()
export class DeliveryPauses {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly audit: AuditLog,
  ) {}

  /**
   * From its commit on, no attempt begins; one that runs is finished. Notifications wait as PENDING and use up no attempt. Every
   * client that waits can read `reason`. 404 for an unknown client, 409 if it is paused already, 422 for a faulty host or reason.
   */
  async pause(subject: PauseSubject, reason: string, actor?: Actor): Promise<void> {
    if (!REASON.test(reason)) throw unprocessable('the reason must have 1 to 500 characters in one line');
    const id = subject.slice(subject.indexOf(':') + 1);
    if (subject.startsWith('host:')) {
      if (!isHost(id)) throw unprocessable('the host must be that of a Notify URL, such as example.com:8443');
    } else if (!(await this.dataSource.manager.existsBy(Client, { id }))) throw unknownClient(id);
    await inTransaction(this.dataSource, async (manager) => {
      const found = await manager.findOneBy(DeliveryPause, { subject });
      if (found?.resumedAt === null) throw conflict(`deliveries of ${subject} are paused already`);
      // A resumed one may still hold notifications, which its beginning identifies.
      const since = found?.since ?? (await databaseNow(manager));
      await manager.upsert(DeliveryPause, { subject, since, reason, resumedAt: null }, ['subject']);
      await this.audit.record({ action: 'delivery.paused', subject, actor, detail: { reason } }, manager);
    });
  }

  /**
   * New notifications are sent at once. Those that waited become due from the next retry run on, 100 a second. 409 if it is not
   * paused.
   */
  async resume(subject: PauseSubject, actor?: Actor): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      const resumedAt = await databaseNow(manager);
      const { affected } = await manager.update(DeliveryPause, { subject, resumedAt: IsNull() }, { resumedAt });
      if (affected === 0) throw conflict(`deliveries of ${subject} are not paused`);
      await this.audit.record({ action: 'delivery.resumed', subject, actor }, manager);
    });
  }

  /** The pause of this subject; null if it is not paused. */
  async find(subject: PauseSubject): Promise<DeliveryPause | null> {
    return (await findPauses(this.dataSource.manager, [subject]))[0] ?? null;
  }

  /**
   * The clients that a pause of this host concerns: with a registered Notify URL there, with attempts there in the retained
   * figures, or among the 10,000 pending notifications that are due first.
   */
  async clientsAt(host: string): Promise<Pick<Client, 'id' | 'name'>[]> {
    const { authorityOf } = dialectOf(this.dataSource);
    const { rows } = await runSql(
      this.dataSource,
      (parameter) => `
        SELECT c.id, c.name, c.notify_url, c.id IN (
          SELECT f.client_id FROM ${tableOf(this.dataSource, DeliveryFigure)} f WHERE f.host = ${parameter(host)}
          UNION ALL SELECT w.client_id FROM (
            SELECT client_id, notify_url FROM ${tableOf(this.dataSource, Webhook)}
            WHERE status = 'PENDING' ORDER BY next_attempt_at LIMIT 10000) w
          WHERE ${authorityOf('w.notify_url')} = ${parameter(host)}) AS is_sent_to
        FROM ${tableOf(this.dataSource, Client)} c ORDER BY c.name, c.id`,
    );
    return rows
      .filter(({ notify_url: url, is_sent_to: isSentTo }) => isSentTo || (url !== null && hostOf(String(url)) === host))
      .map(({ id, name }) => ({ id: String(id), name: String(name) }));
  }
}

/** Those of these subjects that are paused. */
export const findPauses = (manager: EntityManager, subjects: PauseSubject[]): Promise<DeliveryPause[]> =>
  manager.findBy(DeliveryPause, { subject: In(subjects), resumedAt: IsNull() });

const isHost = (text: string): boolean => parseUrl(`https://${text}/`)?.host === text;
