/** Writes the types of Usher into `dist/`: the files that a compiler reads from the entries on, and no others. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const require = createRequire(import.meta.url);
const ts = require('typescript');
const ENTRIES = ['index.d.ts', 'testing/index.d.ts'];
/** `nest build` has checked the types. It leaves the comments out, which are most of an application's help here. */
const EMIT_TYPES =
  '--declaration --emitDeclarationOnly --removeComments false --stripInternal --sourceMap false --noCheck --outDir'.split(
    ' ',
  );

const all = mkdtempSync(join(tmpdir(), 'usher-types-'));
try {
  execFileSync(
    process.execPath,
    [require.resolve('typescript/bin/tsc'), '-p', join(ROOT, 'tsconfig.build.json'), ...EMIT_TYPES, all],
    { stdio: 'inherit' },
  );
  const reached = new Set(ENTRIES);
  for (const path of reached) {
    cpSync(join(all, path), join(ROOT, 'dist', path));
    for (const { fileName } of ts.preProcessFile(readFileSync(join(all, path), 'utf8')).importedFiles) {
      const imported = join(dirname(path), fileName.replace(/\.js$/, '.d.ts'));
      if (existsSync(join(all, imported))) reached.add(imported);
    }
  }
} finally {
  rmSync(all, { recursive: true, force: true });
}
