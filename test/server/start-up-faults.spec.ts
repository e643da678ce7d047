import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Backend, BACKEND, createBackend } from '../support/backend.js';
import { type Ended, failedProcess, failedStart, startServer, usher, usherProcess } from '../support/process.js';

/** Expects exit code 1 and only one line on standard error, without a stack. */
function expectOneLine({ code, stdout, stderr }: Ended, ...wanted: (string | RegExp)[]): void {
  for (const part of wanted) expect(stderr).toMatch(part);
  expect(stderr).toMatch(/^usher: [^\n]+\n$/);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
}

/** Without the warning of a first retry run, which is made before the process listens if a run is due then. */
const ERRORS_ONLY = { LOG_LEVEL: 'error' };
const KEYS = { USHER_MASTER_KEYS: `k:${randomBytes(32).toString('base64')}`, OPS_USER: 'o', OPS_PASSWORD: 'p' };

let backend: Backend;
const folderOf = ({ settings }: Backend): string => settings.DATABASE_URL!.slice('embedded:'.length);

beforeAll(async () => {
  backend = await createBackend();
});
afterAll(() => backend.drop());

describe('an invalid configuration', () => {
  test('is refused, with one line for each error', async () => {
    const { code, stdout, stderr } = await failedStart({ PORT: 'abc', WEBHOOK_TIMEOUTS: '3s', OPS_PASWORD: 'hunter2' });
    expect(stderr.split('\n')).toEqual([
      'usher: The configuration has 3 errors:',
      '  - WEBHOOK_TIMEOUTS is not a setting; did you mean WEBHOOK_TIMEOUT?',
      '  - OPS_PASWORD is not a setting; did you mean OPS_PASSWORD?',
      '  - PORT=abc is invalid; use a whole number from 0 to 65535',
      '',
    ]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  });
});

describe('an address to listen on', () => {
  let taken: Server;
  beforeAll(async () => {
    taken = createServer().listen(0, '127.0.0.1');
    await new Promise((listening) => taken.once('listening', listening));
  });
  afterAll(() => void taken.close());

  test('that is in use', async () => {
    const port = String((taken.address() as AddressInfo).port);
    const ended = await failedStart({ ...backend.settings, ...ERRORS_ONLY, PORT: port });
    expectOneLine(ended, `port ${port} on 127.0.0.1 is in use; stop the process that listens there or set PORT`);
    // It ends before the delay, which only a server that listens needs.
    const delayed = { ...backend.settings, ...ERRORS_ONLY, OPS_PORT: port, SHUTDOWN_DELAY: '10m' };
    const second = await failedStart(delayed);
    expectOneLine(second, `port ${port} on 127.0.0.1 is in use; stop the process that listens there or set OPS_PORT`);
    // A failed start must not create the first client, because its secret is shown only once.
    const { stdout } = await usher(backend.settings, ['client', 'list', '--json']);
    expect(JSON.parse(stdout)).toEqual([]);
  });

  test('that is not an address of this machine', async () => {
    const own = await createBackend();
    const ended = await failedStart({ ...KEYS, ...own.settings, ...ERRORS_ONLY, HOST: '192.0.2.1' });
    expectOneLine(ended, '192.0.2.1 is not an address of this machine; correct HOST');
    await own.drop();
  });
});

test('DATABASE_URL=postgres://… with the port of a MariaDB', async () => {
  const version = '5.5.5-10.11.6-MariaDB';
  const greeting = Buffer.concat([Buffer.from([10]), Buffer.from(version), Buffer.alloc(99 - version.length)]);
  const server = createServer((socket) => {
    socket
      .on('error', () => undefined)
      .resume()
      .end(Buffer.from([greeting.length, 0, 0, 0, ...greeting]));
  });
  server.listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const url = `postgres://me@127.0.0.1:${(server.address() as AddressInfo).port}/usher`;
  const fault = 'Received unexpected copyData message from backend.; correct DATABASE_URL';
  expectOneLine(await usher({ ...KEYS, DATABASE_URL: url }, ['client', 'list']), `cannot open ${url}: ${fault}`);
  server.close();
});

test('master keys without the key that encrypted the client secrets', async () => {
  const own = await createBackend();
  const keys = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;
  const first = keys('first');
  await usher({ ...own.settings, USHER_MASTER_KEYS: first }, ['client', 'create', '--name', 'A']);
  const without = await failedProcess({ ...own.settings, USHER_MASTER_KEYS: keys('second') });
  expectOneLine(
    without,
    'encrypted with master key "first", which is missing from USHER_MASTER_KEYS; put that key back',
  );
  const another = await failedProcess({ ...own.settings, USHER_MASTER_KEYS: keys('first') });
  expectOneLine(another, 'encrypted with master key "first", which differs in USHER_MASTER_KEYS');
  const server = await startServer({ ...own.settings, USHER_MASTER_KEYS: `${keys('second')},${first}` });
  expect((await server.end()).code).toBe(0);
  await own.drop();
});

if (BACKEND === 'embedded') {
  describe('a data folder', () => {
    test('that another server uses; the message names its process', async () => {
      const server = await startServer(backend.settings);
      const ended = await failedStart(backend.settings);
      expectOneLine(ended, `is in use by process ${server.child.pid}: close it there first, or choose another folder`);
      await server.end();
    });

    test('that cannot be created', async () => {
      const file = join(folderOf(backend), '..', `file-${randomBytes(4).toString('hex')}`);
      await writeFile(file, '');
      const ended = await failedStart({ DATABASE_URL: `embedded:${file}/data` });
      expectOneLine(ended, 'cannot be used (ENOTDIR): make it a folder that this user may write to');
    });

    test('with a damaged key file; commands print the same error', async () => {
      const own = await createBackend();
      await writeFile(join(folderOf(own), 'master-key'), 'k1:junk');
      for (const ended of [await failedProcess(own.settings), await usherProcess(own.settings, ['client', 'list'])])
        expectOneLine(ended, 'master-key is damaged; restore it from a backup, or set its keys as master keys');
      await own.drop();
    });

    test('whose key file was lost after a client was made', async () => {
      const own = await createBackend();
      await usher(own.settings, ['client', 'create', '--name', 'A']);
      await rm(join(folderOf(own), 'master-key'));
      expectOneLine(
        await failedProcess(own.settings),
        /encrypted with master key "\w+", which is missing from \S+master-key; put that key back/,
      );
      await own.drop();
    });

    test('whose key file cannot be read', async () => {
      const own = await createBackend();
      await usher(own.settings, ['client', 'create', '--name', 'A']);
      await rm(join(folderOf(own), 'master-key'));
      // A folder cannot be read as a file, not even by root.
      await mkdir(join(folderOf(own), 'master-key'));
      expectOneLine(await failedProcess(own.settings), 'master-key cannot be read (EISDIR)');
      await own.drop();
    });
  });
}
