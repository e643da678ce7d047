/** Takes indentation and spaces between tokens out of `dist/` of both packages, to keep them small. Lines stay, for stack traces and source maps. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const ts = createRequire(import.meta.url)('typescript');

for (const folder of ['../dist', 'receiver/dist']) {
  const dist = join(import.meta.dirname, folder);
  for (const name of readdirSync(dist, { recursive: true }).filter((name) => name.endsWith('.js'))) {
    const path = join(dist, name);
    writeFileSync(path, withoutSpaces(readFileSync(path, 'utf8')));
  }
}

function withoutSpaces(text) {
  const file = ts.createSourceFile('built.js', text, ts.ScriptTarget.Latest, true);
  let written = /^#!.*/.exec(text)?.[0] ?? '';
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
  const parts = node.getChildren(file).filter((part) => !ts.isJSDoc(part));
  if (parts.length > 0) for (const part of parts) yield* tokensOf(part, file);
  else if (start < node.end) yield { start, stop: node.end };
}
