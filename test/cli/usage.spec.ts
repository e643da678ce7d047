import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { describe, expect, jest, test } from '@jest/globals';
import { withProgress } from '../../src/cli/output.js';
import { faultLine } from '../../src/server/fault.js';
import { CLI, usher, usherProcess, UsherProcess } from '../support/process.js';

const WRONG: [args: string[], wanted: string][] = [
  [['frobnicate'], "unknown command 'frobnicate'; see --help"],
  [['help', 'client', 'lst'], "unknown command 'lst'; see --help"],
  [['client', 'lst'], "unknown command 'lst' (Did you mean list?)"],
  [['client', 'list', '--jsno'], "unknown option '--jsno' (Did you mean --json?)"],
  [['client', 'create'], "required option '--name <name>' not specified; see --help"],
  [['client', 'show'], "missing required argument 'id'"],
  [['client', 'show', 'a', 'b'], "too many arguments for 'show'. Expected 1 argument but got 2."],
  [['client', 'set-notify-url', 'a'], "missing required argument 'url'"],
  [['client', 'set-contact', 'a'], 'give either an address or --none'],
  [['client', 'create', '--name', 'A', '--name', 'B'], "option '--name <name>' is given more than once; see --help"],
  [['client', 'rotate-secret', 'a', '--overlap', '1h', '--overlap=2h'], "option '--overlap <duration>' is given more"],
  [['certify'], 'the url is missing; see "usher certify --help"'],
  [
    ['certify', 'http://127.0.0.1:4000'],
    'the client secret is missing; set CLIENT_SECRET, or send it with --secret-stdin',
  ],
  [['webhook', 'list', '--limit', 'x'], 'It must be a whole number from 1 to 999999.'],
  [['webhook', 'list', '--limit', '0'], 'It must be a whole number from 1 to 999999.'],
  [['webhook', 'list', '--status', 'DONE'], 'Allowed choices are PENDING, SUCCESS, FAILED.'],
  [['audit', 'list', '--subject', 'EefRCN7aEHJPo55RswTC'], 'It must be a kind and an id, like client:ID.'],
  [['webhook', 'resend'], 'give either an id or --status FAILED'],
  [['webhook', 'resend', 'a', '--since', '1h'], 'can only be used with --status FAILED'],
  [['webhook', 'resend', '--status', 'FAILED', '--since', 'noon'], 'It must be a duration like 24h, or a time like'],
  [
    ['webhook', 'resend', '--status', 'FAILED', '--since', '2026-02-30'],
    'It must be a duration like 24h, or a time like',
  ],
  [['migrate', '--indexes', '--sql'], "option '--indexes' cannot be used with option '--sql'"],
  [['migrate', '--status', '--indexes'], "option '--indexes' cannot be used with option '--status'"],
  [['listen'], 'the client secret is missing; set CLIENT_SECRET, or send it with --secret-stdin'],
  [['listen', '--secret-stdin'], 'the client secret is missing; set CLIENT_SECRET, or send it with --secret-stdin'],
  [['listen', '--secret', 'x'], "unknown option '--secret'"],
  [['listen', '--port', '65536'], '--port 65536 is invalid; use a whole number from 0 to 65535'],
  [['listen', '--port'], "option '--port <value>' argument missing; see"],
  [['listen', '--status', '100'], '--status 100 is invalid; use a whole number from 200 to 599'],
  [['listen', '--forward-to', 'here'], '--forward-to here is invalid; use a URL like http://127.0.0.1:8080/notify'],
  [['listen', '--delay', 'soon'], '--delay soon is invalid; use a duration like 500ms or 5s'],
  [['listen', '--fail-first=-1'], '--fail-first -1 is invalid; use a whole number from 0 to 1000'],
  [['listen', '4000'], 'unknown argument \'4000\'; see "usher listen --help"'],
];

describe('a usage error is printed in one line, with exit code 1:', () => {
  test.each(WRONG)('usher %j', async (args, wanted) => {
    const { code, stdout, stderr } = await usher({}, args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^usher: [^\n]+\n$/);
    expect(stderr).toContain(wanted);
  });
});

test('a database connection lost during a command is reported in one line', () => {
  const lost = Object.assign(new Error('Connection lost'), { code: 'PROTOCOL_CONNECTION_LOST' });
  expect(faultLine(lost)).toBe('the database does not answer: Connection lost');
});

describe('help', () => {
  test.each([[['--help']], [['help']], [['client', '--help']], [['client', 'create', '--help']], [['listen', '-h']]])(
    'usher %j prints the usage and exits 0',
    async (args) => {
      const { code, stdout, stderr } = await usher({}, args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/^Usage: usher /);
    },
  );

  test('usher help client create prints the help of that subcommand', async () => {
    const { code, stdout } = await usher({}, ['help', 'client', 'create']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: usher client create /);
    expect(stdout).toContain('--notify-url <url>');
  });

  test('every command takes --json', async () => {
    for (const command of [
      ['serve'],
      ['demo'],
      ['migrate'],
      ['listen'],
      ['certify'],
      ['order', 'complete'],
      ['webhook', 'resend'],
    ])
      expect((await usher({}, [...command, '--help'])).stdout).toContain('--json');
  });

  test('usher without a command prints the help on standard error', async () => {
    const { code, stdout, stderr } = await usher({}, []);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^Usage: usher \[options\] \[command\]\n/);
  });
});

test('usher --version prints the version of package.json', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(await usher({}, ['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});

test('a closed standard output causes no stack trace', async () => {
  const child = spawn(process.execPath, [CLI, '--help'], { stdio: ['ignore', 'pipe', 'pipe'], env: {} });
  child.stdout.destroy();
  let stderr = '';
  child.stderr.on('data', (text) => void (stderr += String(text)));
  const [code] = (await once(child, 'close')) as [number];
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test.each([
  ['sign', '--body', '{}'],
  ['client', '--help'],
])('a standard output that cannot be written is reported in one line: %s %s', async (...args) => {
  const full = openSync('/dev/full', 'w');
  const env = { CLIENT_SECRET: 'x' };
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', full, 'pipe'], env });
  closeSync(full);
  let stderr = '';
  child.stderr?.on('data', (text) => void (stderr += String(text)));
  const [code] = (await once(child, 'close')) as [number];
  const fault = 'the output cannot be written: ENOSPC: no space left on device, write';
  expect({ code, stderr }).toEqual({ code: 1, stderr: `usher: ${fault}\n` });
});

test('a temporary folder that does not exist is reported in one line', async () => {
  const { code, stderr } = await usherProcess({ TMPDIR: '/nonexistent' }, ['demo']);
  const fault = 'no folder can be created in /nonexistent (ENOENT); set TMPDIR to a folder that this user may write to';
  expect({ code, stderr }).toEqual({ code: 1, stderr: `usher: ${fault}\n` });
});

test('listen exits when its standard output is closed', async () => {
  const listen = new UsherProcess('cli.js', ['listen', '--port', '0'], { CLIENT_SECRET: 'x' });
  const [, url = ''] = await listen.printed(/Listening at (\S+);/);
  listen.child.stdout?.destroy();
  for (const _ of [1, 2]) await fetch(url, { method: 'POST' }).catch(() => undefined);
  expect(await listen.ended).toMatchObject({ code: 0, stderr: '' });
});

test('demo --json runs every step and prints one JSON document', async () => {
  const { code, stdout, stderr } = await usher({}, ['demo', '--json']);
  const { ok, steps } = JSON.parse(stdout) as { ok: boolean; steps: { ok: boolean }[] };
  expect({ code, stderr, ok }).toEqual({ code: 0, stderr: '', ok: true });
  expect(steps).toHaveLength(7);
});

test('the progress on a terminal does not hide the cursor, which nothing would show again after Ctrl-C', async () => {
  const { stderr } = process;
  const { isTTY } = stderr;
  const write = jest.spyOn(stderr, 'write').mockReturnValue(true);
  stderr.isTTY = true;
  await withProgress('Purging', false, async (show) => show(1, 2));
  stderr.isTTY = isTTY;
  const written = write.mock.calls.map(([text]) => String(text)).join('');
  write.mockRestore();
  expect(written).toContain('Purging');
  expect(written).not.toContain('\x1b[?25l');
});
