import { type DataSource, In } from 'typeorm';
import type { AuditLog } from '../../audit/audit.module.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { conflict, unprocessable } from '../../http/problem.js';
import { type Actor, fitting } from '../../values/actor.js';
import { ALARMING, FailingHost, MAX_NOTE_LENGTH } from './failing-host.entity.js';

/**
 * Ends the alarm of these hosts of a client until a notification to them ends FAILED again. The contact still gets its
 * messages. 422 without a note of at most {@link MAX_NOTE_LENGTH} characters, 409 if no alarm is left.
 */
export async function acknowledge(
  dataSource: DataSource,
  audit: AuditLog,
  { clientId, hosts, note, actor }: { clientId: string; hosts: string[]; note: string; actor: Actor },
): Promise<void> {
  if (note === '' || note.length > MAX_NOTE_LENGTH)
    throw unprocessable(`the note must have 1 to ${MAX_NOTE_LENGTH} characters`);
  await inTransaction(dataSource, async (manager) => {
    const { affected } = await manager.update(
      FailingHost,
      { ...ALARMING, clientId, host: In(hosts) },
      { alarmEndedAt: await databaseNow(manager), acknowledgedBy: fitting(actor).name, acknowledgement: note },
    );
    if (affected === 0) throw conflict('this alarm has ended meanwhile');
    const change = { action: 'alarm.acknowledged', subject: `client:${clientId}`, actor } as const;
    await audit.record({ ...change, detail: { hosts: hosts.join(' '), note } }, manager);
  });
}
