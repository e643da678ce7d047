/** Writes the types of Usher into `dist/`: the files that a compiler reads from the entries on, with the comments that applications need. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
  const named = new Set(ENTRIES.flatMap((path) => namesIn(readFileSync(join(all, path), 'utf8'))));
  for (const path of reached) {
    const text = readFileSync(join(all, path), 'utf8');
    mkdirSync(dirname(join(ROOT, 'dist', path)), { recursive: true });
    writeFileSync(join(ROOT, 'dist', path), ENTRIES.includes(path) ? text : withoutComments(text, named));
    for (const { fileName } of ts.preProcessFile(text).importedFiles) {
      const imported = join(dirname(path), fileName.replace(/\.js$/, '.d.ts'));
      if (existsSync(join(all, imported))) reached.add(imported);
    }
  }
} finally {
  rmSync(all, { recursive: true, force: true });
}

/** The names that an entry exports. */
function namesIn(text) {
  const names = parsed(text).statements.flatMap(({ exportClause }) => exportClause?.elements ?? []);
  return names.map(({ name, propertyName }) => (propertyName ?? name).text);
}

/** The declarations of a file. An application reads the comments of what it can import; the others are half of the types. */
function withoutComments(text, named) {
  const file = parsed(text);
  const printer = ts.createPrinter({ removeComments: true });
  return file.statements
    .map((one) => {
      const declared = one.name ?? one.declarationList?.declarations[0].name;
      return named.has(declared?.text) ? one.getFullText(file) : printer.printNode(ts.EmitHint.Unspecified, one, file);
    })
    .join('\n');
}

function parsed(text) {
  return ts.createSourceFile('types.d.ts', text, ts.ScriptTarget.Latest, true);
}
