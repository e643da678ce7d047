import { basename } from 'node:path';

/** The names under which this project's packages and their command are, or may be, in a registry. */
const OWN = /(^|[/:])(nest-usher|usher-receiver|usher)($|[/:@])/;
const MANAGERS = new Set(['npm', 'pnpm', 'yarn', 'bun', 'npx', 'pnpx', 'bunx']);
/** They take the package that they run as their first argument, without a verb. */
const RUNNERS = new Set(['npx', 'pnpx', 'bunx']);
const VERBS = new Set(
  (
    'install i in ins inst insta instal isnt isnta isntal isntall add install-test it install-clean clean-install ci ic ' +
    'install-ci-test cit exec x dlx create init innit link ln update up upgrade udpate pack global'
  ).split(' '),
);
/** They run the package that their first argument names; the others are arguments of that program. */
const RUNNING = new Set(['exec', 'x', 'dlx', 'create', 'init', 'innit']);
/** Commands that ask no registry for the words behind them. */
const LOCAL = new Set(
  'run run-script start test ls list explain why uninstall remove rm publish version config'.split(' '),
);
const FLAGS_WITH_VALUE = new Set(
  '-C --cwd --dir --filter --loglevel --location --pack-destination --prefix --registry --tag --userconfig'.split(' '),
);
/** The one way to run the command of an installed package: with --no, npx installs nothing. */
const INSTALLED_COMMAND = /^npx --no -- usher( |$)/;

/** A command that installs or runs packages, and the packages that it names. */
export interface InstallCommand {
  command: string;
  packages: string[];
}

/** Whether npm would look for it in a registry or a repository, and it is one of our names. */
export const isOwnFromRegistry = (name: string): boolean => {
  const spec = name.replace(/^[^@/]+@npm:/, '').replace(/^npm:/, '');
  // The service itself serves this one; nobody can register a name of .example (RFC 2606).
  if (/^https:\/\/auth\.example\/usher-receiver-[\w.]+\.tgz$/.test(spec)) return false;
  if (/^\w[\w+]*:\/\//.test(spec)) return /usher/.test(spec);
  return !isFile(spec) && OWN.test(spec);
};

/** Whether npm takes it for a file or a folder. */
export const isFile = (spec: string): boolean =>
  /^(file:|[.~]?\/|\.\.?(\/|$)|[A-Za-z]:[\\/]|\$)/.test(spec) || /\.(tgz|tar\.gz|tar)$/.test(spec);

/** Every command in a text of shell or code that installs or runs packages. */
export function installCommandsIn(text: string): InstallCommand[] {
  const lines = text.replaceAll(/\\\n/g, ' ').split(/\n|&&|\|\|?|[;&`#>]|\$\(/);
  return lines.flatMap((line) =>
    commandsOfLine(
      line
        .replaceAll(/(?<!\$)[([{]/g, ' ')
        .trim()
        .split(/\s+/),
    ),
  );
}

/** The parts of a file in which a command can stand, each without what surrounds it. */
export function partsOf(path: string, text: string): string[] {
  if (/\.[cm]?[jt]s$/.test(path)) {
    // Strings that are joined with "+", and comments, go on in the next line.
    return [text.replaceAll(/['"`]\s*\+\s*['"`]/g, '').replaceAll(/\n\s*(\*|\/\/)(?= )/g, '')];
  }
  if (!path.endsWith('.md')) return [text];
  const { prose, code } = partsOfPage(text);
  return [...code, prose.replaceAll(/[.:;!?]\s/g, '\n')];
}

/** The blocks and the inline code of a page, and its prose with one line for each paragraph, list item and table row. */
export function partsOfPage(text: string): { prose: string; code: string[] } {
  const [page, blocks] = cut(text, /^ *```\w*\n([^]*?)^ *```$/gm);
  const [prose, spans] = cut(page.replaceAll(/\n(?!\s*([-*+>|#]|\d+\.|$))/gm, ' '), /`([^`\n]+)`/g);
  return { prose, code: [...blocks, ...spans] };
}

/** A text without what a pattern finds, and the first groups. A group of one word, such as a name, stays in the text. */
function cut(text: string, pattern: RegExp): [string, string[]] {
  const groups: string[] = [];
  const rest = text.replaceAll(pattern, (_, group: string) => {
    groups.push(group);
    return /\s/.test(group) ? '|' : group;
  });
  return [rest, groups];
}

/** Without the quotes and punctuation of the sentence or string around it. */
const bare = (word: string): string =>
  word
    .replace(/^["'*\]}<]+/, '')
    .replace(/["')*\]}>,:!?]+$/, '')
    .replace(/(?<=\w)\.$/, '');

/** Up to the word with the quote that ends the string around a command. */
function upToQuote(words: string[]): string[] {
  const end = words.findIndex((word) => /^[^"']+["']/.test(word.replaceAll(/(["']).*?\1/g, '')));
  return end === -1 ? words : words.slice(0, end + 1);
}

function commandsOfLine(words: string[]): InstallCommand[] {
  return words.flatMap((word, index) => {
    if (!MANAGERS.has(basename(bare(word)))) return [];
    const own = upToQuote(words.slice(index)).map(bare).filter(Boolean);
    const command = own.join(' ');
    const packages = packagesOf(own);
    return packages === null || INSTALLED_COMMAND.test(command) ? [] : [{ command, packages }];
  });
}

/** The packages of a command, or null if it does not install or run any. */
function packagesOf([path = '', ...rest]: string[]): string[] | null {
  const given = rest.flatMap((word) => /^(?:-p|--package)=(.+)$/.exec(word)?.[1] ?? word);
  const words = given.filter((word, at) => !word.startsWith('-') && !FLAGS_WITH_VALUE.has(given[at - 1] ?? ''));
  if (RUNNERS.has(basename(path))) return words.slice(0, 1 + named(rest));
  const at = words.findIndex((word) => VERBS.has(word) || LOCAL.has(word));
  const verb = words[at] ?? '';
  if (!VERBS.has(verb)) return null;
  const packages = words.slice(at + 1).filter((word) => !(verb === 'global' && word === 'add'));
  return RUNNING.has(verb) ? packages.slice(0, 1 + named(rest)) : packages;
}

/** How many packages -p and --package name, beside the one that is run. */
const named = (words: string[]): number => words.filter((word) => /^(-p|--package)(=|$)/.test(word)).length;
