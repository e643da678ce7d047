/** Shows the progress of a long command. */
export interface Progress {
  set(done: number, total: number): void;
  end(): void;
}

const STEP = 0.1;

/** Writes to standard error: a bar on a terminal, else a line for every 10 %. With --json it shows nothing. */
export async function startProgress(title: string, asJson: boolean | undefined): Promise<Progress> {
  if (asJson) return { set: () => undefined, end: () => undefined };
  return process.stderr.isTTY ? bar(title) : lines(title);
}

async function bar(title: string): Promise<Progress> {
  // The default export, because a bundler may give a CommonJS package no other.
  const { Presets, SingleBar } = (await import('cli-progress')).default;
  const single = new SingleBar(
    { format: `${title} {bar} {percentage}% | {value}/{total}`, hideCursor: true, stream: process.stderr },
    Presets.shades_classic,
  );
  single.start(0, 0);
  const set = (done: number, total: number): void => {
    single.setTotal(total);
    single.update(done);
  };
  return { set, end: () => single.stop() };
}

function lines(title: string): Progress {
  let shown = 0;
  const set = (done: number, total: number): void => {
    const isStep = done > 0 && (done === total || done - shown >= total * STEP);
    if (!isStep || done === shown) return;
    shown = done;
    process.stderr.write(`${title} ${done}/${total}\n`);
  };
  return { set, end: () => undefined };
}
