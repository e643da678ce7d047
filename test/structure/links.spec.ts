import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';

test('every link between documents has an existing target', () => {
  const isDocument = (name: string): boolean => name.endsWith('.md');
  const inDocs = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter(isDocument);
  const documents = [
    'packages/receiver/README.md',
    ...readdirSync('.').filter(isDocument),
    ...inDocs.map((name) => join('docs', name)),
  ];
  const broken = documents.flatMap((document) =>
    [...readFileSync(document, 'utf8').matchAll(/\]\((?!https?:)([^)#]+)/g)]
      .map(([, link = '']) => join(dirname(document), link))
      .filter((path) => !existsSync(path)),
  );
  expect(broken).toEqual([]);
});
