import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { addNotice, ContactNotice } from '../../../src/clients/portal.entity.js';
import { USHER_OPTIONS } from '../../../src/usher.options.js';
import { ContactMessages } from '../../../src/webhooks/contact/contact-messages.js';
import { recordSent, takeTurn } from '../../../src/webhooks/contact/contact-outbox.js';
import { ContactState, FailingHost } from '../../../src/webhooks/contact/failing-host.entity.js';
import { MailServer } from '../../support/mail-server.js';
import { refusingUrl } from '../../support/ports.js';
import { ONE_ATTEMPT, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let mail: MailServer;
beforeAll(async () => {
  mail = await MailServer.start();
  const settings = { SMTP_URL: mail.url, SMTP_FROM: 'usher@cinema.example' };
  usher = await TestUsher.start({ ...ONE_ATTEMPT, ...settings, WEBHOOK_RETRY_EVERY: '24h' });
});
afterAll(async () => {
  await usher.stop();
  await mail.close();
});

const sendDue = (): Promise<void> => usher.running.app.get(ContactMessages, { strict: false }).sendDue();

test('messages to a mailbox that does not exist hold up neither other messages nor those about failing hosts', async () => {
  const { manager } = usher.dataSource;
  const client = await usher.client(await refusingUrl());
  await usher.clients.setContact(client.id, 'ops@partner.example');
  const notices = [...Array.from({ length: 4 }, () => mail.goneAddress), 'owner@partner.example'];
  for (const contact of notices)
    await addNotice(manager, usher.running.app.get(USHER_OPTIONS), { clientId: client.id, kind: 'secret', contact });
  await usher.webhook(await client.completedOrder(), 'FAILED');
  await sendDue();
  expect(mail.to('ops@partner.example')).toHaveLength(1);
  // Two minutes later, what was refused is due again.
  await manager.decrement(ContactNotice, { clientId: client.id }, 'notBefore', 120_000);
  await sendDue();
  expect(mail.to('owner@partner.example')).toHaveLength(1);
});

test('what happens to a host while a message about it is sent is told in the next one, and a lost lease records nothing', async () => {
  const { dataSource } = usher;
  const { manager } = dataSource;
  const client = await usher.client(await refusingUrl());
  const of = { clientId: client.id };
  await usher.clients.setContact(client.id, 'on-call@partner.example');
  await usher.webhook(await client.completedOrder(), 'FAILED');
  const told = async (meanwhile: Partial<FailingHost>, lease = 0) => {
    const turn = (await takeTurn(dataSource, client.id))!;
    await manager.update(FailingHost, of, { lastError: 'another', ...meanwhile });
    await manager.increment(ContactState, of, 'leasedUntil', lease);
    await recordSent(dataSource, turn);
    await manager.update(ContactState, of, { notBefore: 0, leasedUntil: 0 });
    return manager.findBy(FailingHost, of);
  };
  const at = Date.now();
  const recovered = { recoveredAt: at, messageDueAt: at };
  const failing = { recoveredAt: null, messageDueAt: null };
  const number: unknown = expect.any(Number);
  expect(await told({}, 1)).toMatchObject([{ announcedAt: null, messageDueAt: number }]);
  expect(await told(recovered)).toMatchObject([{ ...recovered, announcedAt: number }]);
  expect(await told(failing)).toMatchObject([{ recoveredAt: null, announcedAt: null, messageDueAt: number }]);
  expect(await told({})).toMatchObject([{ announcedAt: number, messageDueAt: null }]);
});
