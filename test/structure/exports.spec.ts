import { sep } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import ts from 'typescript';

const ENTRIES = ['src/index.ts', 'src/testing/index.ts'];
/** Called by Nest or Passport, never by an application. */
const HOOKS = ['canActivate', 'handleRequest', 'onModuleInit', 'onApplicationShutdown'];

let program: ts.Program;
let checker: ts.TypeChecker;

beforeAll(() => {
  const { config } = ts.readConfigFile('tsconfig.json', (path) => ts.sys.readFile(path)) as { config: object };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, '.');
  program = ts.createProgram(ENTRIES, options);
  checker = program.getTypeChecker();
});

describe.each(ENTRIES)('%s', (entry) => {
  test('has a doc comment on every export and every method', () => {
    const bare = exportsOf(entry).flatMap((symbol) =>
      [symbol, ...methodsOf(symbol)].filter((part) => !isDocumented(part)),
    );
    expect(bare.map((symbol) => checker.symbolToString(symbol))).toEqual([]);
  });

  test('exports every type that a public signature mentions', () => {
    const nameable = new Set(ENTRIES.flatMap(exportsOf));
    const missing = exportsOf(entry).flatMap((symbol) =>
      publicParts(symbol)
        .flatMap(mentionedTypes)
        .filter((type) => isOwn(type) && !nameable.has(type))
        .map((type) => `${symbol.name} mentions ${type.name}`),
    );
    expect(missing).toEqual([]);
  });
});

function exportsOf(entry: string): ts.Symbol[] {
  const module = checker.getSymbolAtLocation(program.getSourceFile(entry)!)!;
  return checker.getExportsOfModule(module).map(target);
}

const target = (symbol: ts.Symbol): ts.Symbol =>
  symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;

const isDocumented = (symbol: ts.Symbol): boolean => symbol.getDocumentationComment(checker).length > 0;

/** The declarations of what another module can use: of a class, its members that are not private. */
function publicParts(symbol: ts.Symbol): ts.Node[] {
  return (symbol.declarations ?? []).flatMap((declaration): ts.Node[] =>
    ts.isClassDeclaration(declaration) ? declaration.members.filter(isPublicMember) : [declaration],
  );
}

function isPublicMember(member: ts.ClassElement): boolean {
  const isPrivate =
    ts.canHaveModifiers(member) && member.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
  // Nest calls the constructors.
  return !isPrivate && !ts.isConstructorDeclaration(member);
}

const methodsOf = (symbol: ts.Symbol): ts.Symbol[] =>
  publicParts(symbol)
    .filter(ts.isMethodDeclaration)
    .map((method) => checker.getSymbolAtLocation(method.name)!)
    .filter(({ name }) => !HOOKS.includes(name));

/** The named types in a declaration, without the body of a function. */
function mentionedTypes(part: ts.Node): ts.Symbol[] {
  const found: ts.Symbol[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isBlock(node) || ts.isArrowFunction(node)) return;
    if (ts.isTypeReferenceNode(node)) found.push(target(checker.getSymbolAtLocation(node.typeName)!));
    ts.forEachChild(node, visit);
  };
  visit(part);
  return found;
}

const isOwn = ({ flags, declarations = [] }: ts.Symbol): boolean =>
  !(flags & ts.SymbolFlags.TypeParameter) &&
  declarations.some((declaration) => declaration.getSourceFile().fileName.includes(`${sep}src${sep}`)) &&
  declarations.every((declaration) => !declaration.getSourceFile().fileName.includes('node_modules'));
