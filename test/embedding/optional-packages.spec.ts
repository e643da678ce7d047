import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { satisfies } from 'semver';
import { manifestAbove } from '../../src/values/version.js';
import { createBackend, type Settings } from '../support/backend.js';
import { BUILT, type Ended, newFolder, SHORT_LIVED } from '../support/process.js';

const { dependencies, devDependencies, peerDependencies, peerDependenciesMeta, optionalVersions } = JSON.parse(
  readFileSync('package.json', 'utf8'),
) as Record<`${'d' | 'devD' | 'peerD'}ependencies` | 'peerDependenciesMeta', Record<string, unknown>> & {
  optionalVersions: Record<string, string>;
};
const OPTIONAL = Object.keys(peerDependenciesMeta);
/** What npm installs for an optional package alone. */
const OF_OPTIONAL = ['fastify', '@bull-board/ui', 'pg-pool', '@fastify/formbody', '@fastify/middie', '@fastify/view'];

/** A folder with the compiled Usher and all packages of this checkout except the absent ones. */
function installedWithout(absent: string[]): string {
  const folder = newFolder();
  cpSync(join(BUILT, 'src'), join(folder, 'dist'), { recursive: true });
  cpSync(join(BUILT, 'packages'), join(folder, 'packages'), { recursive: true });
  cpSync('package.json', join(folder, 'package.json'));
  for (const name of packageNames().filter((name) => !absent.includes(name))) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(resolve('node_modules', name), link);
  }
  return folder;
}

function packageNames(): string[] {
  const names = readdirSync('node_modules').filter((name) => !name.startsWith('.'));
  return names.flatMap((name) =>
    name.startsWith('@') ? readdirSync(join('node_modules', name)).map((inner) => `${name}/${inner}`) : [name],
  );
}

/** With --preserve-symlinks, a linked package too finds only the packages of this folder. */
async function run(folder: string, args: string[], settings: Settings = {}): Promise<Ended> {
  const env = { PATH: process.env.PATH, PORT: '0', DATABASE_URL: `embedded:${join(folder, 'data')}`, ...settings };
  const child = spawn(process.execPath, [...SHORT_LIVED, '--preserve-symlinks', ...args], { cwd: folder, env });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (stderr += text));
  return new Promise((done) => void child.on('close', (code) => done({ code, stdout, stderr })));
}

const importing = (...modules: string[]): string[] => [
  '--input-type=module',
  '--eval',
  modules.map((path) => `await import('${path}');`).join(''),
];

const ENTRANCES = ['./dist/index.js', './dist/testing/index.js', './packages/receiver/dist/index.js'];

test('npm ci of a checkout installs every peer dependency, and a host gets no copy of its own', () => {
  for (const name of [...Object.keys(peerDependencies), ...OPTIONAL]) {
    expect(devDependencies).toHaveProperty([name]);
    expect(dependencies).not.toHaveProperty([name]);
  }
});

test('a host can import every entrance of the package without any optional package', async () => {
  const folder = installedWithout([...OPTIONAL, ...OF_OPTIONAL]);
  expect(await run(folder, importing(...ENTRANCES))).toEqual({ code: 0, stdout: '', stderr: '' });
  for (const name of OPTIONAL) expect((await run(folder, importing(name))).stderr).toMatch('ERR_MODULE_NOT_FOUND');
});

test('addUsherPaths() needs no package of the HTTP server', async () => {
  const folder = installedWithout([...OPTIONAL, ...OF_OPTIONAL]);
  const ended = await run(folder, importing('./dist/server/openapi/host-document.js'));
  expect(ended).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('an ES module and a CommonJS module of a host get the same classes', async () => {
  const program = `
    const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);
    for (const path of ${JSON.stringify(ENTRANCES)}) {
      const [imported, required] = [await import(path), require(path)];
      console.log(Object.keys(required).filter((name) => required[name] !== imported[name]).join());
    }
  `;
  const ended = await run(installedWithout([]), ['--input-type=module', '--eval', program]);
  expect(ended).toEqual({ code: 0, stdout: '\n'.repeat(ENTRANCES.length), stderr: '' });
});

test('commands need none of the packages of the HTTP server', async () => {
  const backend = await createBackend();
  const drivers = ['mysql2', 'pg', '@electric-sql/pglite'];
  const folder = installedWithout([...OPTIONAL.filter((name) => !drivers.includes(name)), 'fastify']);
  const ended = await run(folder, ['dist/cli.js', 'client', 'list', '--json'], backend.settings);
  expect(ended).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
  await backend.drop();
});

describe('usher serve names the command that installs', () => {
  const MYSQL = {
    DATABASE_URL: 'mysql://root@127.0.0.1:1/usher',
    QUEUE_URL: 'redis://127.0.0.1:1',
    USHER_MASTER_KEYS: `k:${Buffer.alloc(32, 1).toString('base64')}`,
    OPS_USER: 'o',
    OPS_PASSWORD: 'p',
  };
  const POSTGRES = { ...MYSQL, DATABASE_URL: 'postgres://root@127.0.0.1:1/usher' };

  test.each<[name: string, settings: Settings, nodeOptions: string[]]>([
    ['@nestjs/platform-fastify', {}, []],
    ['@bull-board/api', {}, []],
    ['@bull-board/fastify', {}, []],
    ['@electric-sql/pglite', {}, []],
    ['pg', POSTGRES, []],
    ['mysql2', MYSQL, []],
    ['@opentelemetry/sdk-node', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }, []],
    ['pino-pretty', {}, ['--import', 'data:text/javascript,process.stdout.isTTY = true']],
  ])('%s', async (name, settings, nodeOptions) => {
    const ended = await run(installedWithout([name]), [...nodeOptions, 'dist/cli.js', 'serve'], settings);
    const alternative = name === '@electric-sql/pglite' ? ', or set DATABASE_URL (database.url) to a server' : '';
    const line = `usher: the package ${name} is not installed; run "npm install ${name}"${alternative}\n`;
    expect(ended).toEqual({ code: 1, stdout: '', stderr: line });
  });

  test('all missing packages of the server at once', async () => {
    const ended = await run(installedWithout(OPTIONAL), ['dist/main.js']);
    expect(ended.stderr).toBe(
      'usher: the packages @nestjs/platform-fastify and @bull-board/fastify are not installed; ' +
        'run "npm install @nestjs/platform-fastify @bull-board/fastify"\n',
    );
    expect(ended.code).toBe(1);
  });

  test('not a package that is missing inside an installed one', async () => {
    const ended = await run(installedWithout(['fastify']), ['dist/cli.js', 'serve']);
    expect(ended.stderr).toMatch("Cannot find package 'fastify'");
    expect(ended.stderr).not.toMatch('npm install');
  });
});

test('a package of a version that does not work is refused where it is used, and only there', async () => {
  const folder = installedWithout(['nodemailer']);
  const installed = join(folder, 'node_modules/nodemailer');
  mkdirSync(installed);
  writeFileSync(join(installed, 'package.json'), JSON.stringify({ name: 'nodemailer', version: '8.0.1' }));
  writeFileSync(join(installed, 'index.js'), '');
  const backend = await createBackend();
  const list = ['dist/cli.js', 'client', 'list', '--json'];
  expect(await run(folder, list, backend.settings)).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
  const smtp = { SMTP_URL: 'smtp://127.0.0.1:1', SMTP_FROM: 'usher@cinema.example' };
  const ended = await run(folder, ['dist/cli.js', 'serve'], { ...backend.settings, ...smtp });
  const range = optionalVersions.nodemailer;
  const line = `usher: the package nodemailer 8.0.1 does not work with Usher; run "npm install nodemailer@${range}"\n`;
  expect(ended).toEqual({ code: 1, stdout: '', stderr: line });
  await backend.drop();
});

test('npm accepts every version of an optional package, and names those that work', () => {
  for (const name of OPTIONAL) {
    expect(peerDependencies[name]).toBe('*');
    expect(satisfies(manifestAbove(join('node_modules', name), name).version!, optionalVersions[name]!)).toBe(true);
  }
});

test('without the viewer, the page at /docs/try says which command installs it and links the documents', async () => {
  const backend = await createBackend();
  const program = `
    const { serve } = await import('./dist/server/serve.js');
    const { loadConfig } = await import('./dist/server/settings/settings.js');
    const { app, url } = await serve(loadConfig(process.env));
    const [page, script] = await Promise.all(['/docs/try', '/docs/viewer.js'].map((path) => fetch(url + path)));
    console.log(JSON.stringify([page.status, await page.text(), script.status, (await script.json()).detail]));
    await app.close();
    process.exit();
  `;
  const folder = installedWithout(['@scalar/fastify-api-reference']);
  const settings = { ...backend.settings, LOG_LEVEL: 'silent' };
  const { stdout, stderr } = await run(folder, ['--input-type=module', '--eval', program], settings);
  await backend.drop();
  expect(stderr).toBe('');
  const [status, page, scriptStatus, detail] = JSON.parse(stdout) as [number, string, number, string];
  const line =
    'the package @scalar/fastify-api-reference is not installed; run "npm install @scalar/fastify-api-reference"';
  expect([status, scriptStatus, detail]).toEqual([200, 404, line]);
  expect(page).toContain(line.replaceAll('"', '&quot;'));
  expect(page).toContain('href="openapi.json"');
});
