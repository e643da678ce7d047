import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { StartUpError } from '../values/start-up-error.js';

/** Asks to type an id again. Reads one line, from a terminal or a pipe. */
export async function confirmErasure(kind: 'client' | 'member', id: string): Promise<void> {
  const what = kind === 'client' ? 'id' : 'name';
  process.stderr.write(`This deletes everything of ${kind} ${id} and cannot be undone. Type its ${what} to go on: `);
  const lines = createInterface({ input: process.stdin });
  const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close').then(() => [''])])) as [string];
  lines.close();
  process.stderr.write('\n');
  if (line.trim() !== id)
    throw new StartUpError(`the ${what} was not confirmed; nothing was deleted. Type it, or use --yes`);
}
