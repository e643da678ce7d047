import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { installCommandsIn, isFile, isOwnFromRegistry, partsOf, partsOfPage } from './install-commands.js';

interface Manifest {
  name: string;
  version: string;
  [group: `${string}ependencies`]: Record<string, string> | undefined;
}
const manifestOf = (path: string): Manifest => JSON.parse(readFileSync(path, 'utf8')) as Manifest;

const NOT_READ = new Set(['node_modules', 'dist', 'data', 'coverage', 'packed', '.git', 'package-lock.json']);
const TEXT = /\.(md|txt|sh|bash|[cm]?[jt]s|json|ya?ml|service|env)$|^(Dockerfile|run)$/;

/** Every text file of the checkout, but of `test/` only the pages: its tables have forbidden lines. */
const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (NOT_READ.has(entry.name)) return [];
    if (entry.isDirectory()) return filesBelow(path);
    const isRead = entry.isFile() && TEXT.test(entry.name);
    return isRead && (!path.startsWith('test/') || path.endsWith('.md')) ? [path] : [];
  });
const FILES = filesBelow('.').map((path) => ({ path, text: readFileSync(path, 'utf8') }));

const commandsOf = (path: string, text: string): string[] =>
  partsOf(path, text)
    .flatMap(installCommandsIn)
    .filter(({ packages }) => packages.some(isOwnFromRegistry))
    .map(({ command }) => command);

describe('what would install or run a package of one of our names from a registry is found:', () => {
  test.each([
    'npm install nest-usher',
    'npm i usher-receiver',
    'npm add usher',
    'npm install --save-exact --no-audit nest-usher',
    'npm --prefix app install -D nest-usher@0.2',
    'npm install pg nest-usher@^0.2.0 mysql2',
    'npm install -g usher@latest',
    'npm ci nest-usher',
    'npm install "nest-usher"',
    'npm install @cinema/nest-usher',
    'npm install usher@npm:nest-usher',
    'npm install usher/receiver',
    'npm install github:cinema/usher',
    'npm install https://example.com/usher.tgz',
    'npm install \\\n  pg \\\n  nest-usher',
    'cd app && npm install pg nest-usher && npm start',
    'npm pack usher-receiver',
    'npm update nest-usher',
    'npm link usher',
    'npx usher serve',
    'npx -y usher serve',
    'npx --yes nest-usher@latest demo',
    'npx --no usher demo',
    'npx -p nest-usher usher demo',
    'npx --package=nest-usher -- other',
    'npm exec usher -- demo',
    'npm exec --yes -- usher demo',
    'npm x usher',
    'npm init usher',
    'npx --package=pg --package=nest-usher -- other',
    'sudo /usr/bin/npm --prefix="app" install nest-usher',
    'pnpm add -w nest-usher',
    'pnpm add nest-usher',
    'pnpm i usher-receiver',
    'pnpm install nest-usher',
    'pnpm dlx usher demo',
    'pnpm exec usher demo',
    'yarn add -D nest-usher',
    'yarn global add nest-usher',
    'yarn dlx usher demo',
    'bun add usher-receiver',
    'bunx usher demo',
    "execFileSync('npm', ['install', 'usher'])",
    'RUN npm install --omit=dev nest-usher',
  ])('%j', (line) => {
    const block = `Text.\n\n\`\`\`sh\n${line}\n\`\`\`\n`;
    expect(commandsOf('page.md', block)).toHaveLength(1);
    expect(commandsOf('file.sh', `echo\n${line}\n`)).toHaveLength(1);
  });

  test.each([
    ['inline code', 'page.md', 'For Node: `npm install usher-receiver`, or another way.'],
    ['a table', 'page.md', '| For | Command |\n| --- | --- |\n| receivers | `npm i usher-receiver` |'],
    ['a list', 'page.md', '1. First\n   `npm install\n   nest-usher`'],
    ['prose', 'page.md', 'Run npm install\nnest-usher in your application.'],
    ['prose with the name as code', 'page.md', 'Run npm install `nest-usher` in your application.'],
    ['a string', 'file.ts', `throw new Error('run "npm install nest-usher" first');`],
    ['a string in two lines', 'file.ts', `fail('run npm install ' +\n  'nest-usher');`],
    ['a template', 'file.ts', 'html`Run <code>npx usher migrate</code>.`'],
    ['a comment in two lines', 'file.ts', '/**\n * Run npm install\n * nest-usher first.\n */'],
    ['a script of package.json', 'package.json', '{ "scripts": { "demo": "npx usher demo" } }'],
    ['a step of a workflow', 'ci.yaml', '- run: npm install nest-usher'],
  ])('in %s', (_, path, text) => {
    expect(commandsOf(path, text)).toHaveLength(1);
  });
});

test.each([
  'npm install ./nest-usher-0.2.0.tgz',
  'npm install ../usher/packed/nest-usher-0.2.0.tgz pg',
  'npm install packed/usher-receiver-0.2.0.tgz',
  'npm install file:../usher/packed/nest-usher-0.2.0.tgz',
  'npm install "$PACKED/nest-usher-0.2.0.tgz"',
  'npm install --prefix usher pg',
  'npm ci && npm run demo',
  'npm ls usher-receiver',
  'npm uninstall usher',
  'npm run -s usher -- client create --name "npm"',
  'npm start > usher.log &',
  'npx --no -- usher demo --json',
  'node_modules/.bin/usher demo',
  'usher migrate',
  'docker build -t usher .',
])('%s is allowed', (line) => {
  expect(commandsOf('page.md', `\`\`\`sh\n${line}\n\`\`\`\n`)).toEqual([]);
  expect(commandsOf('page.md', `In the shell: \`${line.replace(/\n/g, ' ')}\`. Then use usher.`)).toEqual([]);
});

test('no text of the checkout installs or runs one of our names from a registry', () => {
  expect(FILES.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['README.md', 'Dockerfile', 'docs/try.sh', 'packages/receiver/README.md', 'src/cli.ts']),
  );
  expect(FILES.flatMap(({ path, text }) => commandsOf(path, text).map((command) => `${path}: ${command}`))).toEqual([]);
});

test('no text depends on one of our names in a registry, as "^0.2.0" or "npm:…"', () => {
  const found = FILES.filter(({ path }) => path !== 'package.json').flatMap(({ path, text }) =>
    [
      ...text.matchAll(/"(nest-usher|usher-receiver|usher)"\s*:\s*"(?!file:|dist\/)[^"\s]*"|\bnpm:(nest-)?usher\S*/g),
    ].map(([line]) => `${path}: ${line}`),
  );
  expect(found).toEqual([]);
});

test('every third-party package that a page installs is one of package.json', () => {
  const { dependencies, devDependencies, peerDependencies } = manifestOf('package.json');
  const known = Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies });
  const installed = FILES.filter(({ path }) => path.endsWith('.md')).flatMap(({ path, text }) =>
    partsOfPage(text)
      .code.flatMap(installCommandsIn)
      .flatMap(({ packages }) => packages.map((name) => name.replace(/(?<=.)@.*/, '')))
      .filter((name) => !isFile(name))
      .map((name) => ({ path, name })),
  );
  expect(installed.map(({ name }) => name)).toEqual(expect.arrayContaining(['pg', 'mysql2', 'nodemailer']));
  expect(installed.filter(({ name }) => !known.includes(name))).toEqual([]);
});

test('every tarball that a text names is one that `npm run pack` makes', () => {
  const made = ['package.json', 'packages/receiver/package.json']
    .map(manifestOf)
    .map(({ name, version }) => `${name}-${version}.tgz`);
  const named = FILES.flatMap(({ path, text }) =>
    [...text.matchAll(/[\w-]*usher[\w-]*-\d[\w.-]*\.tgz|\busher\.tgz/g)].map(([tarball]) => ({ path, tarball })),
  );
  expect(new Set(named.map(({ tarball }) => tarball))).toEqual(new Set(made));
});
