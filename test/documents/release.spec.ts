import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, expect, test } from '@jest/globals';
import { newFolder } from '../support/process.js';

const VERSION = '9.9.9';
const MANIFESTS = ['package.json', 'packages/receiver/package.json'];
const COPIED = ['.gitignore', 'LICENSE', 'README.md', 'bin', 'docs', 'package-lock.json', 'packages', ...MANIFESTS];

type Exports = { [condition: string]: Exports } | string;
interface Manifest {
  name: string;
  version: string;
  exports: Exports;
  scripts: Record<string, string>;
}

let folder: string;
/** A repository with one commit, which is ready for version 9.9.9. Its build is done already. */
beforeEach(() => {
  folder = newFolder();
  for (const path of COPIED) cpSync(path, join(folder, path), { recursive: true });
  for (const path of MANIFESTS) changeManifest(path, (manifest) => (manifest.version = VERSION));
  for (const path of MANIFESTS) makeExports(path);
  changeManifest('package.json', ({ scripts }) => (scripts.build = 'node --version'));
  const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8');
  writeFileSync(
    join(folder, 'package-lock.json'),
    lock.replaceAll(/(?<="name": "nest-usher",\s+"version": ")[^"]+/g, VERSION),
  );
  writeFileSync(join(folder, 'CHANGELOG.md'), `# Changelog\n\n## ${VERSION} – 2030-01-01\n`);
  git('init', '--quiet');
  commit();
});

function changeManifest(path: string, change: (manifest: Manifest) => void): void {
  const file = join(folder, path);
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Manifest;
  change(manifest);
  writeFileSync(file, JSON.stringify(manifest, null, 2));
}

/** An empty file for each that package.json exports. */
function makeExports(path: string): void {
  const { exports } = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  const pathsIn = (entry: Exports): string[] =>
    typeof entry === 'string' ? [entry] : Object.values(entry).flatMap(pathsIn);
  for (const name of pathsIn(exports).filter((one) => one.includes('dist/'))) {
    const file = join(folder, dirname(path), name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '');
  }
}

const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', ...args], {
    cwd: folder,
    encoding: 'utf8',
  });

function commit(): void {
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Ready');
}

function release(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { PATH, HOME } = process.env;
  return spawnSync('npm', ['run', '--silent', 'release', ...args], {
    cwd: folder,
    env: { PATH, HOME },
    encoding: 'utf8',
  });
}

test.each([[['--', '--dry-run']], [['--dry-run']]])(
  'npm run release %j shows contents, order, provenance and tag of both packages, and makes none',
  (args) => {
    const { status, stdout } = release(...args);
    expect(status).toBe(0);
    const number = /\d+/.source;
    const heading = (at: number, name: string): RegExp =>
      new RegExp(
        `^${at}\\. ${name} 9\\.9\\.9: ${number} files, ${number} bytes packed, ${number} unpacked; access public, provenance yes$`,
        'm',
      );
    const [receiver = '', usher = ''] = stdout.split(/^2\. /m).map((part, at) => (at === 0 ? part : `2. ${part}`));
    expect(receiver).toMatch(heading(1, 'usher-receiver'));
    expect(receiver).toMatch(/^ +\d+ {2}dist\/index\.js$/m);
    expect(usher).toMatch(heading(2, 'nest-usher'));
    expect(usher).toMatch(/^ +\d+ {2}bin\/usher\.mjs$/m);
    expect(usher).toContain(`3. tag v9.9.9 at ${git('rev-parse', '--short', 'HEAD').trim()}`);
    expect(usher).not.toMatch(/ test\/| src\//);
    expect(git('tag', '--list')).toBe('');
    expect(git('status', '--porcelain')).toBe('');
  },
);

test.each<[string, () => void, RegExp]>([
  ['a changed file', () => appendFileSync(join(folder, 'README.md'), 'x'), /not committed:\n +M README\.md/],
  ['a new file', () => writeFileSync(join(folder, 'src.ts'), ''), /not committed:\n +\?\? src\.ts/],
  [
    'two versions',
    () => {
      changeManifest('packages/receiver/package.json', (manifest) => (manifest.version = '9.9.8'));
      commit();
    },
    /usher-receiver has the version 9\.9\.8; make it 9\.9\.9/,
  ],
  [
    'a version that the lock file does not have, nor the changelog',
    () => {
      for (const path of MANIFESTS) changeManifest(path, (manifest) => (manifest.version = '9.9.10'));
      commit();
    },
    /package-lock\.json has the version 9\.9\.9; make it 9\.9\.10\n- CHANGELOG\.md has no heading for 9\.9\.10/,
  ],
  ['a version that was released', () => void git('tag', 'v9.9.9'), /the tag v9\.9\.9 exists; raise the version/],
])('it refuses %s, and shows nothing', (_, change, fault) => {
  change();
  const { status, stdout, stderr } = release('--', '--dry-run');
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(fault);
});

test('a release that is no dry run refuses a package without a repository, outside a CI job', () => {
  const { status, stdout, stderr } = release();
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr).toContain('nest-usher has no "repository"');
  expect(stderr).toContain('run this command in one');
});
