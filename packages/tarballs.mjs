/** Both packages of this folder's checkout and what npm packs of them; for pack.mjs and release.mjs. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const ROOT = resolve(import.meta.dirname, '..');

/** Both packages, in the order in which they are published. */
export const PACKAGES = ['packages/receiver', '.'].map((path) => {
  const folder = join(ROOT, path);
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return { folder, manifest, tarball: `${manifest.name}-${manifest.version}.tgz` };
});

/** Makes `dist/` of both packages from the present sources. */
export function build() {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: ['ignore', 2, 'inherit'] });
}

/** What npm puts into the tarball of a built package: its files and their sizes in bytes. */
export const contentsOf = (one) => npmPack(one, ['--dry-run']);

/** Builds both packages, writes their tarballs to a folder and returns the paths. */
export function pack(target) {
  build();
  mkdirSync(target, { recursive: true });
  return PACKAGES.map((one) => {
    npmPack(one, ['--no-dry-run', '--pack-destination', target]);
    return join(target, one.tarball);
  });
}

/** Without scripts, because `prepare` and `prepack` would build again. */
function npmPack({ folder, manifest }, args) {
  const copy = mkdtempSync(join(tmpdir(), 'usher-pack-'));
  try {
    const files = ['package.json', 'README.md', 'LICENSE', ...manifest.files.filter((path) => !path.startsWith('!'))];
    for (const path of files) cpSync(join(folder, path), join(copy, path), { recursive: true });
    writePackageFile(copy);
    for (const page of files.filter((path) => path.endsWith('.md'))) unlinkMissing(copy, page);
    const told = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--loglevel=error', ...args], {
      cwd: copy,
      encoding: 'utf8',
    });
    return JSON.parse(told)[0];
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Without scripts: npm would warn of `prepare`, which only a checkout can run. */
function writePackageFile(folder) {
  const path = join(folder, 'package.json');
  const { scripts: _, devDependencies: __, ...manifest } = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Leaves only the text of links and pictures whose files are not packed, because a package has no address of its repository. */
function unlinkMissing(folder, page) {
  const path = join(folder, page);
  const text = readFileSync(path, 'utf8').replace(LINK, (link, words, target) =>
    /^(https?:|#)/.test(target) || existsSync(resolve(path, '..', target.replace(/#.*/, ''))) ? link : words,
  );
  writeFileSync(path, text);
}

const LINK = /!?\[([^\]]+)\]\(([^)]+)\)/g;
