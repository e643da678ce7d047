import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { ContactMessage } from '../../../src/values/contact-messenger.js';
import { emailFault } from '../../../src/values/email-address.js';
import { FileMessenger, SmtpMessenger } from '../../../src/webhooks/contact/messengers.js';
import { eventually } from '../../support/eventually.js';
import { MailServer, SilentServer } from '../../support/mail-server.js';
import { newFolder } from '../../support/process.js';

const MESSAGE: ContactMessage = {
  id: 'abc-1',
  clientId: 'c',
  clientName: 'A client',
  contact: 'ops@partner.example',
  subject: 'A subject',
  text: 'A text\n',
  hosts: [],
};
const NEVER = new AbortController().signal;
const closing: { close(): unknown }[] = [];
afterEach(async () => {
  for (const server of closing.splice(0)) await server.close();
});

async function mailServer(...args: Parameters<typeof MailServer.start>): Promise<MailServer> {
  const server = await MailServer.start(...args);
  closing.push(server);
  return server;
}
const open = (url: string): Promise<SmtpMessenger> =>
  SmtpMessenger.open({ url: new URL(url), from: 'usher@cinema.example' });

describe('SMTP', () => {
  test('user and password of the URL are used, and wrong ones are an error', async () => {
    const server = await mailServer({ name: 'us er', password: 'p@ss/w%' });
    const send = async (credentials: string) =>
      (await open(`smtp://${credentials}@127.0.0.1:${server.port}`)).send(MESSAGE, NEVER);
    await send('us%20er:p%40ss%2Fw%25');
    expect(server.to(MESSAGE.contact)).toHaveLength(1);
    await expect(send('us%20er:wrong')).rejects.toThrow(/wrong user or password/);
  });

  test('a password is not sent without encryption to another address than this machine’s own', async () => {
    const server = await mailServer({ name: 'user', password: 'password' }, '127.0.0.2');
    const messenger = await open(`smtp://user:password@127.0.0.2:${server.port}`);
    await expect(messenger.send(MESSAGE, NEVER)).rejects.toThrow(/STARTTLS/);
    expect(server.mails).toEqual([]);
  });

  test('the connection to a server that hangs is closed when the time is over', async () => {
    const silent = await SilentServer.start();
    closing.push(silent);
    const limit = new AbortController();
    const sending = (await open(silent.url)).send(MESSAGE, limit.signal);
    await eventually('it is connected', () => silent.connections === 1);
    limit.abort();
    await expect(sending).rejects.toThrow();
    await eventually('the connection is closed', () => !silent.isConnected);
  });

  test('nothing in a message can add a header or a recipient', async () => {
    const server = await mailServer();
    const messenger = await open(server.url);
    const hostile = 'x\r\nBcc: victim@else.example\r\n\r\nbody';
    await messenger.send(
      { ...MESSAGE, subject: hostile, text: `${hostile}\r\n.\r\nMAIL FROM:<a@b.example>\r\n` },
      NEVER,
    );
    const contacts = [
      `a@b.example\r\nBcc: victim@else.example`,
      'a@b.example, victim@else.example',
      '<victim@else.example>',
    ];
    for (const contact of contacts) await messenger.send({ ...MESSAGE, contact }, NEVER).catch(() => undefined);
    for (const { headers } of server.mails) expect(headers.filter((line) => /^(bcc|cc):/i.test(line))).toEqual([]);
    expect(server.mails[0]).toMatchObject({ to: [MESSAGE.contact] });
    for (const { to } of server.mails) expect(to).toHaveLength(1);
  });
});

test('contacts that could be more than one plain address are refused', () => {
  for (const valid of ['ops@partner.example', "o'brien+x@a-b.partner.example", 'a@b.co'])
    expect(emailFault(valid)).toBeNull();
  for (const invalid of [
    '',
    'ops',
    'ops@',
    '@partner.example',
    'ops@partner',
    'a@b.example\r\nBcc: c@d.example',
    'a@b.example,c@d.example',
    'a@b.example c@d.example',
    '<a@b.example>',
    'A <a@b.example>',
    '"a b"@c.example',
    'a@b@c.example',
    'a@[127.0.0.1]',
    'a@-b.example',
    'ä@b.example',
    'a..b@c.example',
    `${'a'.repeat(65)}@b.example`,
    `a@${'b.'.repeat(130)}example`,
  ])
    expect([invalid, emailFault(invalid)]).toEqual([invalid, expect.stringMatching(/use /)]);
});

test('without a mail server messages are appended to a file that only this user can read', async () => {
  const folder = newFolder();
  const messenger = new FileMessenger(folder);
  await messenger.send(MESSAGE);
  await messenger.send({ ...MESSAGE, subject: 'Another subject' });
  const file = join(folder, 'contact-messages.txt');
  expect(readFileSync(file, 'utf8')).toMatch(
    /To: ops@partner\.example\nSubject: A subject\n[^]*Subject: Another subject\n/,
  );
  expect(statSync(file).mode & 0o777).toBe(0o600);
});
