import { beforeAll, describe, expect, test } from '@jest/globals';
import { credentialFault } from '../../src/clients/client-credentials.js';
import { Problem } from '../../src/http/problem.js';
import { usher as run, usherJson } from '../support/process.js';
import { basic, TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;

beforeAll(async () => {
  usher = await TestUsher.shared();
});

/** application/x-www-form-urlencoded, as RFC 6749 section 2.3.1 requires. */
const formEncoded = (text: string): string => new URLSearchParams({ _: text }).toString().slice(2);

const statusOf = async (id: string, secret: string): Promise<number> =>
  (await new TestClient(usher, id, secret).token()).status;

const importCommand = (id: string, secret: string | Buffer) =>
  run(usher.settings, ['client', 'create', '--name', 'Imported', '--id', id, '--secret-stdin'], secret);

const TEXTS = ['a+b', 'a%b', 'a%41', 'a%zz', 'a/b', 'é', '漢字', 'in between', '"\'<&>?=#', '😀', 'e\u0301'];

describe.each(TEXTS)('credentials with %s', (text) => {
  const [id, secret] = [`id ${text}`, ` secret ${text}:${text} `];
  beforeAll(() => usher.clients.import('Imported', null, { id, secret }));

  test('authenticate unencoded', async () => {
    expect(await statusOf(id, secret)).toBe(200);
  });

  test('authenticate form-encoded', async () => {
    expect(await statusOf(formEncoded(id), formEncoded(secret))).toBe(200);
  });

  test('authenticate percent-encoded', async () => {
    expect(await statusOf(encodeURIComponent(id), encodeURIComponent(secret))).toBe(200);
  });

  test('do not authenticate with a secret that differs by a space', async () => {
    expect(await statusOf(id, secret.trimEnd())).toBe(401);
  });
});

describe('an id with a colon', () => {
  test('authenticates only form-encoded, and the import prints a note', async () => {
    const { code, stdout, stderr } = await importCommand('a:b', 'secret');
    expect([code, stdout]).toEqual([0, expect.stringContaining('a:b')]);
    expect(stderr).toBe(
      'usher: note: the client id contains a colon; send it form-encoded (RFC 6749, section 2.3.1): a%3Ab\n',
    );
    expect(await statusOf('a%3Ab', 'secret')).toBe(200);
    expect(await statusOf('a:b', 'secret')).toBe(401);
  });
});

describe('client create --id --secret-stdin', () => {
  test('removes only the last newline from the secret', async () => {
    const { client_secret: shown } = await usherJson<{ client_secret: null }>(
      usher.settings,
      ['client', 'create', '--name', 'N', '--id', 'piped', '--secret-stdin'],
      ' tw o \n',
    );
    expect(shown).toBeNull();
    expect(await statusOf('piped', ' tw o ')).toBe(200);
    expect(await statusOf('piped', 'tw o')).toBe(401);
  });

  test('rejects an existing id in one line, and does not change that client', async () => {
    await usher.clients.import('First', null, { id: 'taken', secret: 'first' });
    const { code, stdout, stderr } = await importCommand('taken', 'second');
    expect([code, stdout, stderr]).toEqual([1, '', 'usher: client taken already exists\n']);
    expect([await statusOf('taken', 'first'), await statusOf('taken', 'second')]).toEqual([200, 401]);
  });

  test('rejects a secret with two trailing newlines, because one control character remains', async () => {
    const { code, stderr } = await importCommand('newlines', 'secret\n\n');
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^usher: the client secret contains a control character.*\n$/),
    ]);
  });

  test('rejects bytes that are not UTF-8', async () => {
    const { code, stderr } = await importCommand('bytes', Buffer.from([0x61, 0xff]));
    expect([code, stderr]).toEqual([1, 'usher: the secret on standard input is not UTF-8; send it as UTF-8\n']);
  });

  test('rejects an id without a secret, and a secret without an id', async () => {
    for (const option of [['--id', 'half'], ['--secret-stdin']]) {
      const { code, stderr } = await run(usher.settings, ['client', 'create', '--name', 'N', ...option], 'x');
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^usher: --id and --secret-stdin go together.*\n$/)]);
    }
  });

  test('never shows the secret in an error message', async () => {
    const { stdout, stderr } = await importCommand(' white', 'very-secret-text');
    expect(stdout + stderr).not.toContain('very-secret-text');
  });
});

describe('invalid credentials', () => {
  test.each([
    ['', 'x', 'empty'],
    ['x', '', 'empty'],
    [' x', 'x', 'white space'],
    ['x\u3000', 'x', 'white space'],
    ['x\u0000y', 'x', 'control character'],
    ['x', 'x\u007fy', 'control character'],
    ['x', 'x\u0085y', 'control character'],
    ['x', 'x\ud800y', 'well-formed'],
    ['漢'.repeat(256), 'x', 'more than 255'],
    ['x', '😀'.repeat(1_025), 'more than 1024'],
  ])('id %j with secret %j is rejected: %s', (id, secret, why) => {
    expect(credentialFault({ id, secret }, 'sandbox')).toContain(why);
  });

  test('production rejects a secret of fewer than 20 characters, without showing it; the sandbox accepts it', () => {
    const short = { id: 'x', secret: '😀'.repeat(19) };
    const fault = credentialFault(short, 'production');
    expect(fault).toContain('fewer than 20 characters');
    expect(fault).not.toContain('😀');
    expect(credentialFault(short, 'sandbox')).toBeNull();
    expect(credentialFault({ id: 'x', secret: '😀'.repeat(20) }, 'production')).toBeNull();
  });

  test('are rejected by the service too', async () => {
    await expect(usher.clients.import('N', null, { id: 'x ', secret: 'x' })).rejects.toBeInstanceOf(Problem);
  });
});

test('credentials of the maximum length work', async () => {
  const [id, secret] = ['漢'.repeat(255), '😀'.repeat(1_024)];
  await usher.clients.import('Long', null, { id, secret });
  expect(await statusOf(id, secret)).toBe(200);
});

describe('similar ids', () => {
  test('that differ in case belong to different clients', async () => {
    await usher.clients.import('Lower', null, { id: 'alike-é', secret: 'lower' });
    await usher.clients.import('Upper', null, { id: 'ALIKE-É', secret: 'upper' });
    await usher.clients.import('Plain', null, { id: 'alike-e', secret: 'plain' });
    expect(await statusOf('alike-é', 'lower')).toBe(200);
    expect(await statusOf('ALIKE-É', 'upper')).toBe(200);
    expect(await statusOf('alike-e', 'plain')).toBe(200);
    expect(await statusOf('alike-é', 'upper')).toBe(401);
  });

  test('that differ in a trailing space are not interchangeable', async () => {
    await usher.clients.import('Space', null, { id: 'space', secret: 'x' });
    expect(await statusOf('space ', 'x')).toBe(401);
    expect((await usher.request('POST', '/auth/token', { authorization: basic('space+', 'x') }, {})).status).toBe(401);
    await expect(usher.clients.get('space ')).rejects.toBeInstanceOf(Problem);
    await expect(usher.clients.setDisabled('space ', true)).rejects.toBeInstanceOf(Problem);
    expect(await statusOf('space', 'x')).toBe(200);
  });
});
