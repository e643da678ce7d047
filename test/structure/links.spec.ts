import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';

test('links between documents lead somewhere', () => {
  const files = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
  const documents = ['README.md', ...files.map((name) => join('docs', name))];
  const broken = documents.flatMap((document) =>
    [...readFileSync(document, 'utf8').matchAll(/\]\((?!https?:)([^)#]+)/g)]
      .map(([, link = '']) => join(dirname(document), link))
      .filter((path) => !existsSync(path)),
  );
  expect(broken).toEqual([]);
});
