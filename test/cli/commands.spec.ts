import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { usher as run } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';

/** A server in this process. Each command is a separate process. */
let server: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  server = await TestUsher.shared();
  receiver = await TestReceiver.start();
});
afterEach(() => {
  receiver.behaviour = answer(200);
});
afterAll(() => void receiver.close());

async function textOf(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(server.settings, args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/** Expects exactly one JSON document on standard output and nothing on standard error. */
const json = async <T = Record<string, unknown>>(...args: string[]): Promise<T> =>
  JSON.parse(await textOf(...args, '--json')) as T;

async function failureOf(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(server.settings, args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^usher: [^\n]+\n$/);
  return stderr.slice('usher: '.length, -1);
}

describe('client', () => {
  test('pause and resume work for a client, and for a host after its clients were named', async () => {
    const { client_id: id } = await json(
      'client',
      'create',
      '--name',
      'Kino',
      '--notify-url',
      'https://kino.example/n',
    );
    expect(await json('client', 'pause', String(id), 'Moves')).toEqual({ id, paused: true, clients: [] });
    expect(await json('client', 'resume', String(id))).toEqual({ id, paused: false });
    const named = { id: 'kino.example', clients: [`${String(id)} Kino`] };
    const preview = await run(server.settings, ['host', 'pause', 'kino.example', 'Moves', '--json']);
    expect(JSON.parse(preview.stdout)).toEqual({ ...named, paused: false });
    expect(preview.stderr).toContain('nothing was paused; to pause the host, repeat the command with --yes');
    expect(await failureOf('host', 'pause', 'https://kino.example/', 'Moves')).toContain(
      'must be that of a Notify URL',
    );
    expect(await failureOf('host', 'resume', 'kino.example')).toContain('host:kino.example are not paused');
    expect(await json('host', 'pause', 'kino.example', 'Moves', '--yes')).toEqual({ ...named, paused: true });
    expect(await json('host', 'pause', 'kino.example', 'Moves')).toEqual({ ...named, paused: true });
    expect(await json('host', 'resume', 'kino.example')).toEqual({ id: 'kino.example', paused: false });
  });

  test('create, show, list, disable, enable and set-notify-url work with --json', async () => {
    const made = await json('client', 'create', '--name', 'Kino 电影', '--notify-url', receiver.url);
    expect(Object.keys(made)).toEqual(['client_id', 'client_secret', 'name', 'notify_url', 'contact']);
    expect(made).toMatchObject({ name: 'Kino 电影', notify_url: receiver.url });
    const id = String(made.client_id);
    expect(await json('client', 'show', id)).toMatchObject({
      client_id: id,
      notify_url: receiver.url,
      disabled_at: null,
    });
    expect(await json<object[]>('client', 'list')).toContainEqual(expect.objectContaining({ client_id: id }));
    expect((await json('client', 'disable', id)).disabled_at).toMatch(/^\d{4}-.*Z$/);
    expect((await json('client', 'enable', id)).disabled_at).toBeNull();
    expect((await json('client', 'rename', id, 'Other name')).name).toBe('Other name');
    expect((await json('client', 'set-notify-url', id, `${receiver.url}/2`)).notify_url).toBe(`${receiver.url}/2`);
  });

  test('a contact is set, changed and removed, and an invalid one creates no client', async () => {
    const contact = ['--contact', 'ops@partner.example'];
    const made = await json('client', 'create', '--name', 'Told', ...contact);
    expect(made.contact).toBe('ops@partner.example');
    const id = String(made.client_id);
    expect((await json('client', 'set-contact', id, 'it@partner.example')).contact).toBe('it@partner.example');
    expect((await json('client', 'show', id)).contact).toBe('it@partner.example');
    expect((await json('client', 'set-contact', id, '--none')).contact).toBeNull();
    expect(await failureOf('client', 'set-contact', id)).toBe('give either an address or --none');
    expect(await failureOf('client', 'create', '--name', 'Never', '--contact', 'nobody')).toMatch(
      /^the contact is not an e-mail address; use one plain address/,
    );
    expect(await textOf('client', 'list')).not.toContain('Never');
  });

  test.each([
    [['--trusted'], 'only a client with a redirect URI can be trusted; add one'],
    [['--grants', 'authorization_code'], 'authorization_code needs a redirect URI; add one'],
  ])('create refuses %j before it creates a client', async (options, fault) => {
    expect(await failureOf('client', 'create', '--name', 'Half made', ...options)).toBe(fault);
    const secret = 'an imported secret';
    const imported = ['client', 'create', '--name', 'Half made', '--id', 'half-made', '--secret-stdin', ...options];
    expect((await run(server.settings, imported, secret)).stderr).toBe(`usher: ${fault}\n`);
    expect(await textOf('client', 'list')).not.toContain('Half made');
  });

  test('create, show and list print text', async () => {
    const made = await textOf('client', 'create', '--name', 'For people');
    expect(made).toMatch(
      /^client_id {6}\w{20}\nclient_secret {2}\w{43}\nname {11}For people\nnotify_url {5}-\ncontact {8}-\n\nSave the secret now\. It is not shown again\.\n$/,
    );
    const [, id = '', secret = ''] = /client_id +(\w+)\nclient_secret +(\w+)/.exec(made) ?? [];
    expect(await textOf('client', 'show', id)).not.toContain(secret);
    const lines = (await textOf('client', 'list')).trimEnd().split('\n');
    expect(lines[0]).toMatch(/^client_id +name +notify_url +contact +created_at +disabled_at$/);
    expect(lines.find((line) => line.startsWith(id))).toContain('For people');
  });

  test('errors are printed in one line', async () => {
    expect(await failureOf('client', 'show', 'nobody')).toBe(
      'there is no client nobody; "usher client list" shows all clients',
    );
    expect(await failureOf('client', 'disable', 'nobody')).toContain('there is no client nobody');
    expect(await failureOf('client', 'create', '--name', '')).toBe(
      'the name is invalid; use 1 to 200 characters on one line, without characters that change the direction of text',
    );
    expect(await failureOf('client', 'create', '--name', 'a\nb')).toContain('on one line');
    expect(await failureOf('client', 'create', '--name', 'x'.repeat(201))).toContain('1 to 200 characters');
    expect(await failureOf('client', 'create', '--name', 'A', '--notify-url', 'ftp://x')).toMatch(
      /must be an absolute http/,
    );
  });
});

describe('order complete', () => {
  const completion = ['--booking-id', 'BK-1', '--transaction-id', 'TX-1', '--qr-code', 'QR-1'];

  test('completes an order once, and the running server notifies its client', async () => {
    const client = await server.client(receiver.url);
    const key = await client.order();
    expect(await textOf('order', 'complete', key, ...completion)).toMatch(
      new RegExp(`^key +${key}\nstatus +COMPLETED\n`),
    );
    const [arrival] = await receiver.waitFor(key);
    expect(arrival!.rawBody.toString()).toContain('"bookingId":"BK-1"');
    expect(await json('order', 'complete', key, ...completion)).toMatchObject({
      key,
      status: 'COMPLETED',
      qrCode: 'QR-1',
    });
    const other = ['--booking-id', 'BK-2', '--transaction-id', 'TX-1'];
    expect(await failureOf('order', 'complete', key, ...other)).toBe(
      'the order is already completed with other values',
    );
  });

  test('errors are printed in one line', async () => {
    expect(await failureOf('order', 'complete', 'nonsense', ...completion)).toBe('there is no order nonsense');
    const empty = ['--booking-id', '', '--transaction-id', 'TX'];
    expect(await failureOf('order', 'complete', 'nonsense', ...empty)).toBe('bookingId: must not be empty');
    expect(await failureOf('order', 'complete', 'nonsense')).toContain(
      "required option '--booking-id <id>' not specified",
    );
  });
});

describe('webhook', () => {
  test('list, show and resend work with --json and as text', async () => {
    receiver.behaviour = answer(500);
    const client = await server.client(receiver.url);
    const key = await client.completedOrder();
    const { id } = await server.webhook(key, 'FAILED');
    const shown = await json('webhook', 'show', id);
    expect(shown).toMatchObject({
      id,
      referenceId: key,
      eventType: 'NOTIFY_ORDER_COMPLETION',
      status: 'FAILED',
      nextAttemptAt: null,
    });
    expect(shown.attempts).toHaveLength(5);
    expect((shown.attempts as object[])[0]).toMatchObject({
      number: 1,
      responseStatus: 500,
      durationMs: expect.any(Number),
    });
    expect(await textOf('webhook', 'show', id)).toMatch(
      /\n\nattempt +started +took +status +error\n1 +20[^\n]+ ms +500 /,
    );
    receiver.behaviour = answer(200);
    const resent = await json('webhook', 'resend', id);
    expect(resent).toMatchObject({ resendOf: id, referenceId: key, status: 'PENDING' });
    await server.webhook(key, 'SUCCESS');
    const listed = await json<Record<string, unknown>[]>('webhook', 'list', '--reference', key);
    expect(listed.map(({ id, status, attemptCount }) => [id, status, attemptCount])).toEqual([
      [resent.id, 'SUCCESS', 1],
      [id, 'FAILED', 5],
    ]);
    expect(await json<object[]>('webhook', 'list', '--status', 'FAILED', '--reference', key)).toHaveLength(1);
    expect(await json<object[]>('webhook', 'list', '--limit', '1')).toHaveLength(1);
    const { client_id: other = '' } = await json<Record<string, string>>('client', 'create', '--name', 'Another');
    const listOf = (id: string) => json<object[]>('webhook', 'list', '--client', id, '--reference', key);
    expect([await listOf(client.id), await listOf(other)]).toEqual([listed, []]);
    expect(await textOf('webhook', 'list', '--reference', key)).toMatch(
      /^id +referenceId +status +attemptCount +nextAttemptAt\n/,
    );
    expect(await failureOf('webhook', 'resend', id)).toContain('of the same reference is already SUCCESS');
    expect(await failureOf('webhook', 'resend', String(resent.id))).toContain(
      'is SUCCESS; only a FAILED webhook can be sent again',
    );
  });

  test('errors are printed in one line, and an empty list is not an error', async () => {
    expect(await failureOf('webhook', 'show', 'nonsense')).toBe('there is no webhook nonsense');
    expect(await failureOf('webhook', 'resend', 'nonsense')).toBe('there is no webhook nonsense');
    expect(await textOf('webhook', 'list', '--reference', 'none')).toBe('No notification found.\n');
    expect(await json('webhook', 'list', '--reference', 'none')).toEqual([]);
    expect(await failureOf('webhook', 'list', '--client', 'nope')).toContain('there is no client nope');
    expect(await failureOf('webhook', 'health', 'nope')).toContain('there is no client nope');
  });
});

test('a second "usher migrate" has nothing to do', async () => {
  expect(await textOf('migrate')).toBe('No migrations to run; the database is up to date.\n');
  expect(await json('migrate')).toEqual({ migrations: [], queue: false });
});
