import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import ts from 'typescript';
import type { Option } from '../../src/options/option-kinds.js';
import { OPTIONS } from '../../src/options/option-table.js';
import { SETTINGS } from '../../src/server/settings/server-options.js';
import { configurationPage } from './configuration-page.js';

const PAGE = 'docs/configuration.md';

test('docs/configuration.md has the lists of today; UPDATE_DOCUMENTS=1 writes them', async () => {
  const page = readFileSync(PAGE, 'utf8');
  const made = await configurationPage(page);
  if (process.env.UPDATE_DOCUMENTS) writeFileSync(PAGE, made);
  else expect(page).toBe(made);
  for (const { option, variable } of Object.values<Option>(SETTINGS))
    for (const name of [option, variable]) expect(made).toContain(name === null ? '' : `\`${name}\``);
});

const FILES = ['src/usher.options.ts', 'src/values/retry-schedule.ts'].map((file) =>
  ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true),
);
const INTERFACES = new Map(
  FILES.flatMap(({ statements }) => statements.filter(ts.isInterfaceDeclaration)).map((one) => [one.name.text, one]),
);

/** The paths of the options in a type, with their doc comments. */
function documented(members: Iterable<ts.TypeElement>, path = ''): [path: string, comment: string][] {
  return [...members].flatMap((member): [string, string][] => {
    if (!ts.isPropertySignature(member) || !member.type) return [];
    const name = path + member.name.getText();
    const below = [...membersOf(member.type)];
    const comment = ts
      .getJSDocCommentsAndTags(member)
      .map((part) => part.getText())
      .join(' ');
    return below.length > 0 ? documented(below, `${name}.`) : [[name, comment]];
  });
}

function membersOf(type: ts.TypeNode): ts.TypeElement[] {
  if (ts.isUnionTypeNode(type)) return type.types.flatMap(membersOf);
  if (ts.isTypeLiteralNode(type)) return [...type.members];
  if (!ts.isTypeReferenceNode(type)) return [];
  const [inner] = type.typeArguments ?? [];
  return inner ? membersOf(inner) : [...(INTERFACES.get(type.typeName.getText())?.members ?? [])];
}

const DOCUMENTED = new Map(documented(INTERFACES.get('UsherOptions')!.members));

test('UsherOptions has exactly the options of the table', () => {
  expect([...DOCUMENTED.keys()].sort()).toEqual(
    Object.values(OPTIONS)
      .map(({ option }) => option)
      .sort(),
  );
});

test.each(
  Object.values(OPTIONS).flatMap(({ option, kind, default: fallback, defaultText }) => {
    // An application must give the environment and the database.
    if (fallback === null || defaultText !== undefined || ['environment', 'database.url'].includes(String(option)))
      return [];
    const value: unknown = kind.parse ? kind.parse(fallback) : fallback;
    return [[String(option), String(value)]];
  }),
)('the doc comment of %s says "default %s"', (option, value) => {
  expect(DOCUMENTED.get(option)).toMatch(new RegExp(`default ${value}\\b`));
});
