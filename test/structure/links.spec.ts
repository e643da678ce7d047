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
    [...readFileSync(document, 'utf8').matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)].flatMap(
      ([link, path, anchor]) => {
        const target = path ? join(dirname(document), path) : document;
        const isThere = existsSync(target) && (!anchor || !isDocument(target) || anchorsOf(target).includes(anchor));
        return isThere ? [] : `${document}: ${link.slice(1)}`;
      },
    ),
  );
  expect(broken).toEqual([]);
});

/** The anchors that GitHub gives to the headings of a document. */
const anchorsOf = (document: string): string[] =>
  [
    ...readFileSync(document, 'utf8')
      .replaceAll(/^ *```[^]*?^ *```$/gm, '')
      .matchAll(/^#+ (.*)$/gm),
  ].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
