/**
 * Publishes both packages and tags the commit: `npm run release`. With `-- --dry-run` it only shows what it would do.
 * Both refuse a commit that is not ready. CONTRIBUTING.md describes a release.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, contentsOf, pack, PACKAGES, ROOT } from './tarballs.mjs';

// npm keeps `npm run release --dry-run`, without `--`, to itself and tells it in the environment.
const isDryRun = process.argv.includes('--dry-run') || process.env.npm_config_dry_run === 'true';
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const TAG = `v${version}`;

const faults = [...faultsOfCommit(), ...(isDryRun ? [] : faultsOfProvenance())];
if (faults.length > 0) {
  process.stderr.write(`No release of ${version}:\n${faults.map((fault) => `- ${fault}\n`).join('')}`);
  process.exitCode = 1;
} else if (isDryRun) {
  rehearse();
} else {
  publish();
}

function git(...args) {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trimEnd();
}

function run(command, ...args) {
  execFileSync(command, args, { cwd: ROOT, stdio: 'inherit' });
}

function* faultsOfCommit() {
  const changed = git('status', '--porcelain');
  if (changed !== '') yield `the tree has changes that are not committed:\n${changed.replaceAll(/^/gm, '    ')}`;
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const manifests = [...PACKAGES.map(({ manifest }) => manifest), { ...packages[''], name: 'package-lock.json' }];
  for (const { name, version: other } of manifests)
    if (other !== version) yield `${name} has the version ${other}; make it ${version}`;
  const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split('\n');
  if (!changelog.some((line) => line.startsWith(`## ${version} `)))
    yield `CHANGELOG.md has no heading for ${version}; name what is new`;
  if (git('tag', '--list', TAG) !== '') yield `the tag ${TAG} exists; raise the version`;
}

/** A registry takes a package with provenance only from a CI job whose repository the package names. */
function* faultsOfProvenance() {
  for (const { manifest } of PACKAGES)
    if (!manifest.repository) yield `${manifest.name} has no "repository" in its package.json; provenance needs it`;
  if (!process.env.CI) yield 'provenance comes from a CI job; run this command in one';
}

function rehearse() {
  build();
  for (const [index, one] of PACKAGES.entries()) {
    const { name, publishConfig } = one.manifest;
    const { files, size, unpackedSize } = contentsOf(one);
    const missing = promisedBy(one).filter((path) => !files.some((file) => file.path === path));
    if (missing.length > 0) throw new Error(`${name} lacks what its package.json names: ${missing.join(', ')}`);
    process.stdout.write(
      `${index + 1}. ${name} ${version}: ${files.length} files, ${size} bytes packed, ${unpackedSize} unpacked; ` +
        `access ${publishConfig.access}, provenance ${publishConfig.provenance ? 'yes' : 'no'}\n` +
        files.map((file) => `${String(file.size).padStart(10)}  ${file.path}\n`).join(''),
    );
  }
  process.stdout.write(`3. tag ${TAG} at ${git('rev-parse', '--short', 'HEAD')}\nNothing was published or tagged.\n`);
  const later = [...faultsOfProvenance()];
  if (later.length > 0)
    process.stdout.write(`The release itself would refuse:\n${later.map((one) => `- ${one}\n`).join('')}`);
}

/** The files that `bin` and `exports` name. */
function promisedBy({ manifest: { bin = {}, exports } }) {
  const pathsIn = (entry) => (typeof entry === 'string' ? [entry] : Object.values(entry).flatMap(pathsIn));
  return [bin, exports].flatMap(pathsIn).map((path) => path.replace(/^\.\//, ''));
}

function publish() {
  run('npm', 'run', '--silent', 'check');
  run('npm', 'test');
  for (const tarball of pack(join(ROOT, 'packed'))) run('npm', 'publish', tarball);
  git('tag', '--annotate', TAG, '--message', `Usher ${version}`);
  process.stdout.write(`Published. To publish the tag: git push origin ${TAG}\n`);
}
