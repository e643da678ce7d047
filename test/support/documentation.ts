import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** Returns the first code block below a heading of a document, without its fence. */
export function codeBelow(document: string, heading: string): string {
  const text = readFileSync(resolve(document), 'utf8');
  const section = text.split(/^#+ /m).find((one) => one.startsWith(`${heading}\n`));
  const code = /^```\w+\n([^]*?)^```$/m.exec(section ?? '')?.[1];
  if (code === undefined) throw new Error(`${document} has no code below "${heading}"`);
  return code;
}
