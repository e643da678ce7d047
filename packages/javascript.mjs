/** Takes indentation and spaces between tokens out of `dist/`, for a small package. Lines stay, for stack traces and source maps. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const DIST = join(import.meta.dirname, '..', 'dist');
const ts = createRequire(import.meta.url)('typescript');

for (const name of readdirSync(DIST, { recursive: true }).filter((name) => name.endsWith('.js'))) {
  const path = join(DIST, name);
  writeFileSync(path, withoutSpaces(readFileSync(path, 'utf8')));
}

function withoutSpaces(text) {
  const file = ts.createSourceFile('built.js', text, ts.ScriptTarget.Latest, true);
  let written = '';
  let end = 0;
  for (const { start, stop } of tokensOf(file, file)) {
    const token = text.slice(start, stop);
    const between = text.slice(end, start);
    written += between.includes('\n') ? between.replace(/[^\n]/g, '') : separator(written, between, token);
    written += token;
    end = stop;
  }
  return `${written}\n`;
}

/** Two words, and operators that would become another one or a comment, need a space. */
function separator(before, between, token) {
  return between !== '' && /[\w$+\-/<]$/.test(before) && /^[\w$+\-/!.]/.test(token) ? ' ' : '';
}

function* tokensOf(node, file) {
  const start = node.getStart(file);
  const parts = node.getChildren(file);
  if (parts.length > 0) for (const part of parts) yield* tokensOf(part, file);
  else if (start < node.end) yield { start, stop: node.end };
}
