/**
 * Writes the types of Usher into `dist/`: the files that a compiler reads from the entries on, with the comments that
 * applications need, and without what Nest injects.
 */
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
    const text = withoutUnusedImports(withoutInjected(readFileSync(join(all, path), 'utf8')));
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

/** Only Nest makes a class with private members. The types of what it injects would bring a quarter more files. */
function withoutInjected(text) {
  const classes = parsed(text).statements.filter(({ kind }) => kind === ts.SyntaxKind.ClassDeclaration);
  const members = classes.filter(({ members }) => members.some(isPrivate)).flatMap(({ members }) => [...members]);
  const injected = members.filter((one) => ts.isConstructorDeclaration(one) && one.parameters.length > 0);
  return replaced(text, injected, ({ parameters: { pos, end } }) => ({ pos, end, by: '...injected: any[]' }));
}

function isPrivate({ modifiers = [] }) {
  return modifiers.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
}

function withoutUnusedImports(text) {
  const file = parsed(text);
  const [imports, others] = [true, false].map((are) =>
    file.statements.filter((one) => ts.isImportDeclaration(one) === are),
  );
  const used = new Set();
  const collect = (node) => (ts.isIdentifier(node) ? void used.add(node.text) : node.forEachChild(collect));
  others.forEach(collect);
  return replaced(text, imports, (one) => {
    const { name, namedBindings } = one.importClause;
    const elements = namedBindings?.elements ?? [];
    const kept = elements.filter(({ name }) => used.has(name.text));
    if (name || kept.length === elements.length) return { pos: one.end, end: one.end, by: '' };
    if (kept.length === 0) return { pos: one.pos, end: one.end, by: '' };
    const by = `{ ${kept.map((each) => each.getText(file)).join(', ')} }`;
    return { pos: namedBindings.getStart(file), end: namedBindings.end, by };
  });
}

/** `editOf` names a place in the text, and what stands there instead. The nodes are in the order of the text. */
function replaced(text, nodes, editOf) {
  return nodes.map(editOf).reduceRight((all, { pos, end, by }) => all.slice(0, pos) + by + all.slice(end), text);
}

function parsed(text) {
  return ts.createSourceFile('types.d.ts', text, ts.ScriptTarget.Latest, true);
}
