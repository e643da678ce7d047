import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { returnFolder, takeFolder } from '../support/embedded-template.js';

interface Stage {
  name: string;
  why: string;
  run: string;
  long?: string;
  short?: string;
  minutes: { long: number; short: number };
}

const { STAGES } = (await import(pathToFileURL(resolve('test/nightly/stages.mjs')).href)) as { STAGES: Stage[] };
const NAMES = STAGES.map(({ name }) => name);
const MOST_SCRIPTS = 18;
const MOST_MINUTES = 90;

const scriptsOf = (folder: string): Record<string, string> =>
  (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { scripts?: Record<string, string> }).scripts ??
  {};
const SCRIPTS = scriptsOf('.');

/** The files of these folders that are written by hand and may name a script. */
const TEXTS = ['.', '.ci', 'bench', 'deploy', 'docs', 'examples', 'packages', 'src', 'test'].flatMap((folder) =>
  readdirSync(folder, { recursive: folder !== '.', encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => /(\.(md|ts|mjs|sh|txt|ya?ml)|^Dockerfile|^\.ci\/\w+)$/.test(path))
    .filter((path) => !/(^|\/)(node_modules|dist|results)\//.test(path)),
);

/** The package that a command of this file is for. */
function packageOf(path: string): string {
  const folder = dirname(path);
  return existsSync(join(folder, 'package.json')) && Object.keys(scriptsOf(folder)).length > 0
    ? folder
    : folder === '.'
      ? '.'
      : packageOf(folder);
}

test(`package.json has at most ${MOST_SCRIPTS} scripts, and their files exist`, () => {
  expect(Object.keys(SCRIPTS).length).toBeLessThanOrEqual(MOST_SCRIPTS);
  expect(Object.values(SCRIPTS).flatMap(missingFilesOf)).toEqual([]);
});

test('every script that a text names exists', () => {
  const unknown = TEXTS.flatMap((path) => {
    // A page of another package may name a script of the checkout.
    const scripts = { ...SCRIPTS, ...scriptsOf(packageOf(path)) };
    return [...readFileSync(path, 'utf8').matchAll(/\bnpm (?:run (?:-s )?)([\w-]+(?::[\w-]+)*)/g)]
      .filter(([, name = '']) => !(name in scripts))
      .map(([command]) => `${path}: ${command}`);
  });
  expect(unknown).toEqual([]);
});

test('npm run typeorm prints what the commands of TypeORM find', () => {
  const folder = takeFolder();
  const { PATH, HOME } = process.env;
  const { stdout } = spawnSync('npm', ['run', '-s', 'typeorm', '--', 'migration:show'], {
    env: { PATH, HOME, DATABASE_URL: `embedded:${folder}` },
    encoding: 'utf8',
  });
  returnFolder(folder);
  expect(stdout).toContain('[X] 1 Initial1767225600000');
});

describe('the nightly run', () => {
  test('has stages whose commands exist, each with a sentence that says what it shows', () => {
    for (const { run, long = '', short = '', why } of STAGES) {
      expect(missingFilesOf(`${run} ${long} ${short}`)).toEqual([]);
      expect(Object.keys(SCRIPTS)).toContain(/\bnpm run (\S+)/.exec(run)?.[1] ?? 'test');
      expect(why).toMatch(/^\S+ .* \S+\.$/);
    }
  });

  test(`has a short form of at most ${MOST_MINUTES} minutes`, () => {
    expect(STAGES.reduce((sum, { minutes }) => sum + minutes.short, 0)).toBeLessThanOrEqual(MOST_MINUTES);
  });

  test('runs each test that has a long form in its short form too', () => {
    const { short = '' } = STAGES.find(({ name }) => name === 'fuzz')!;
    const long = TEXTS.filter((path) => path.endsWith('.spec.ts') && path !== 'test/structure/scripts.spec.ts').filter(
      (path) => readFileSync(path, 'utf8').includes('TEST_FULL'),
    );
    expect(long.filter((path) => !short.split(' ').some((part) => path.includes(part)))).toEqual([]);
  });

  test('is named in texts with stages that exist', () => {
    const unknown = TEXTS.flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/nightly(?: --)? --only ([a-z0-9][\w,-]*)/g)].flatMap(([, names = '']) =>
        names
          .split(',')
          .filter((name) => !NAMES.includes(name))
          .map((name) => `${path}: ${name}`),
      ),
    );
    expect(unknown).toEqual([]);
  });

  test.each([
    [['--only', 'chaso'], 'there is no stage "chaso"; use floors,'],
    [['--quick'], "Unknown option '--quick'; use --short,"],
    [['--', '--seed', '7'], 'the arguments after -- are for one stage; name it with --only'],
  ])('refuses %j and says what is valid', (args, fault) => {
    const { status, stderr } = spawnSync(process.execPath, ['test/nightly/run.mjs', ...args], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([2, expect.stringContaining(`nightly: ${fault}`)]);
  });
});

/** The files that a command names and that do not exist. Globs are patterns of Jest. */
const missingFilesOf = (command: string): string[] =>
  command.split(/[\s']+/).filter((word) => /^[\w.-]+(\/[\w.-]+)*\.(mjs|ts|js)$/.test(word) && !existsSync(word));
