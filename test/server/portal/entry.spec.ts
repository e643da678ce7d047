import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { ContactMessages } from '../../../src/webhooks/contact/contact-messages.js';
import { addNotice, ContactNotice } from '../../../src/clients/portal.entity.js';
import { PortalLinks } from '../../../src/portal/portal.js';
import { SecretRotation } from '../../../src/clients/secrets/secret-rotation.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../src/usher.options.js';
import { HOST } from '../../../src/values/actor.js';
import { eventually } from '../../support/eventually.js';
import { MailServer } from '../../support/mail-server.js';
import { OperatorBrowser } from '../../support/operator-browser.js';
import { type TestClient, TestUsher } from '../../support/usher.js';
import { portalOf } from './portal-browser.js';

let usher: TestUsher;
let mail: MailServer;
beforeAll(async () => {
  mail = await MailServer.start();
  usher = await TestUsher.start({ SMTP_URL: mail.url, SMTP_FROM: 'usher@cinema.example' });
});
afterAll(async () => {
  await usher.stop();
  await mail.close();
});

let number = 0;
async function clientWithContact(): Promise<{ client: TestClient; contact: string }> {
  const [client, contact] = [await usher.client(), `contact-${(number += 1)}@partner.example`];
  await usher.clients.setContact(client.id, contact);
  return { client, contact };
}
const send = () => usher.running.app.get(ContactMessages, { strict: false }).sendDue();
const ask = (client: string) => new OperatorBrowser(usher).post('/portal', { client });
const subjectsTo = async (address: string, count: number) =>
  (await mail.waitFor(address, count)).map(
    ({ headers }) => /subject: \[usher sandbox\] (.*)/i.exec(headers.join('\n'))?.[1],
  );

test('a client asks by its id, and its contact gets a link that opens its portal', async () => {
  const { client, contact } = await clientWithContact();
  expect((await ask(client.id)).status).toBe(200);
  await send();
  const [message] = await mail.waitFor(contact);
  const path = /\/portal\/open\/\w+/.exec(message!.text)![0];
  const browser = new OperatorBrowser(usher);
  expect((await browser.post(path, {})).location).toBe('/portal/overview');
  expect((await browser.get('/portal/settings')).text).toContain(contact);
  expect(await usher.dataSource.manager.countBy(ContactNotice, { clientId: client.id })).toBe(0);
});

test('the answer is the same for a client that exists, one without a contact, a disabled one and none', async () => {
  const { client: disabled, contact } = await clientWithContact();
  await usher.clients.setDisabled(disabled.id, true);
  const ids = [(await clientWithContact()).client.id, (await usher.client()).id, disabled.id, 'b8E7BDVoa1df1jDrbYlF'];
  const answers = await Promise.all(ids.map(ask));
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
  await send();
  await eventually('all are looked up', async () => (await usher.dataSource.manager.count(ContactNotice)) === 0);
  expect(mail.to(contact)).toEqual([]);
});

test('a link that was sent to a former contact opens nothing any more', async () => {
  const { client, contact } = await clientWithContact();
  const made = await usher.running.app.get(PortalLinks, { strict: false }).create(client.id, { actor: HOST });
  await ask(client.id);
  await send();
  const [message] = await mail.waitFor(contact);
  await usher.clients.setContact(client.id, `new-${contact}`);
  const open = (url: string) => new OperatorBrowser(usher).post(/\/portal\/open\/\w+/.exec(url)![0], {});
  expect((await open(message!.text)).status).toBe(410);
  // Who made this one gave it to somebody else.
  expect((await open(made.url)).location).toBe('/portal/overview');
});

test('a contact that is replaced while its link is made gets no link', async () => {
  const { client, contact } = await clientWithContact();
  const { manager } = usher.dataSource;
  const options = usher.running.app.get<ResolvedOptions>(USHER_OPTIONS);
  await addNotice(manager, options, { clientId: client.id, kind: 'link', contact: null });
  const links = usher.running.app.get(PortalLinks, { strict: false });
  const create = links.create.bind(links);
  jest.spyOn(links, 'create').mockImplementationOnce(async (...given) => {
    await usher.clients.setContact(client.id, `new-${contact}`);
    return create(...given);
  });
  await send();
  const [message] = await mail.waitFor(`new-${contact}`);
  expect(message!.text).toContain('/portal/open/');
  expect(mail.to(contact).filter(({ text }) => text.includes('/portal/open/'))).toEqual([]);
});

test('a mailbox gets at most three links in an hour, and the answer does not say so', async () => {
  const { client, contact } = await clientWithContact();
  const answers = [];
  for (let time = 1; time <= 4; time += 1) answers.push((await ask(client.id)).text);
  expect(new Set(answers).size).toBe(1);
  await send();
  await mail.waitFor(contact, 3);
  await send();
  expect(mail.to(contact)).toHaveLength(3);
});

test('one address can ask ten times in an hour', async () => {
  let status = 200;
  for (let time = 1; time <= 11 && status === 200; time += 1) ({ status } = await ask(`nobody-${time}`));
  expect(status).toBe(429);
});

test('whoever takes over a session cannot change the contact, the URL or the secret without a message to the contact', async () => {
  const { client, contact } = await clientWithContact();
  const browser = await portalOf(usher, client.id);
  const fields = { overlap: '24h', confirmed: 'yes' };
  await browser.post('/portal/settings/rotate', fields, { page: '/portal/settings' });
  await browser.post('/portal/settings/contact', { contact: 'evil@evil.example' }, { page: '/portal/settings' });
  await send();
  expect(await subjectsTo(contact, 2)).toEqual([
    'The secret of a client was changed',
    'The contact of a client was changed',
  ]);
  await usher.clients.setNotifyUrl(client.id, 'http://127.0.0.1:4000/notify');
  await usher.running.app.get(SecretRotation, { strict: false }).finish(client.id);
  await send();
  expect(await subjectsTo('evil@evil.example', 1)).toEqual(['The Notify URL of a client was changed']);
});

test('without mail the page says to ask the operator', async () => {
  const options = usher.running.app.get<ResolvedOptions>(USHER_OPTIONS);
  const { contactMessages } = options;
  options.contactMessages = null;
  const { text } = await new OperatorBrowser(usher).get('/portal');
  options.contactMessages = contactMessages;
  expect(text).toContain('Ask your operator for a link');
  expect(text).not.toContain('<form');
});
