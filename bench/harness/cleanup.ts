/** What has to be undone before the bench ends, the newest last. */
const leftovers: (() => unknown)[] = [];
let cleaning: Promise<void> | undefined;

/** Call it before the process or the database is made, so that an interruption in between leaves nothing behind. */
export function atEnd(undo: () => unknown): void {
  leftovers.push(undo);
}

/** Ends the processes and removes the databases of a row, the newest first. */
export function cleanUp(): Promise<void> {
  cleaning ??= undoAll().finally(() => (cleaning = undefined));
  return cleaning;
}

async function undoAll(): Promise<void> {
  for (let undo = leftovers.pop(); undo; undo = leftovers.pop()) {
    try {
      await undo();
    } catch (error) {
      console.error(`could not clean up: ${(error as Error).message}`);
    }
  }
}
