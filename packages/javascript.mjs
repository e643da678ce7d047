/** Takes comments, indentation and spaces between tokens out of `dist/` of both packages, to keep them small. Lines stay, for stack traces. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const ts = createRequire(import.meta.url)('typescript');

/** Two words, and operators that would become another one or a comment, need a space. */
const NEEDED = /[\w$+\-/<][\w$+\-/!.]/;

for (const folder of ['../dist', 'receiver/dist']) {
  const dist = join(import.meta.dirname, folder);
  for (const name of readdirSync(dist, { recursive: true }).filter((name) => name.endsWith('.js'))) {
    const path = join(dist, name);
    writeFileSync(path, withoutSpaces(readFileSync(path, 'utf8')));
  }
}

function withoutSpaces(text) {
  const file = ts.createSourceFile('built.js', text, ts.ScriptTarget.Latest);
  const literals = [];
  const collect = (node) =>
    ts.isLiteralExpression(node) || ts.isTemplateLiteralToken(node)
      ? void literals.push({ start: node.getStart(file), end: node.end })
      : node.forEachChild(collect);
  collect(file);
  return text.replace(/(?:\s|\/\*[^]*?\*\/|\/\/.*)+/g, (space, at) => {
    if (literals.some(({ start, end }) => start < at && at < end)) return space;
    const lineEnds = space.replace(/[^\n]/g, '');
    return lineEnds || (NEEDED.test(text[at - 1] + text[at + space.length]) ? ' ' : '');
  });
}
