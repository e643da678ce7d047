import { announcement, told } from './announcement.js';
import { loadConfig } from './config.js';
import { reportFault } from './fault.js';
import { createLogger } from './logger.js';
import { type Running, serve } from './serve.js';

/** Serves until a signal ends it. A fault at start is told in one line (or one a setting) and exits 1. */
export async function runServer({ json = false }: { json?: boolean } = {}): Promise<void> {
  try {
    const config = loadConfig();
    const running = await serve(config, createLogger(config, json ? 'stderr' : 'stdout'));
    // First: whoever reads that it runs may end it at once.
    endOnSignal(running);
    process.stdout.write(json ? `${JSON.stringify(announcement(config, running), null, 2)}\n` : told(config, running));
  } catch (error) {
    reportFault(error);
    process.exit(1);
  }
}

/** The first signal drains: no new jobs, sends under way end and are recorded. A second one ends at once. */
function endOnSignal({ app }: Running): void {
  let isEnding = false;
  const end = (signal: NodeJS.Signals): void => {
    if (isEnding) process.exit(130);
    isEnding = true;
    process.stderr.write(`usher: ${signal}: finishing what is under way; again to stop at once\n`);
    app.close().then(
      () => process.exit(0),
      (error: unknown) => {
        reportFault(error);
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, end);
}
