import { type ChildProcess, spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { runCommand } from '../../src/cli/run-command.js';
import { runServer } from '../../src/server/serve.js';
import type { Settings } from './backend.js';
import { eventually } from './eventually.js';
import { type Ended, invoke, newFolder } from './invocation.js';

export { type Ended, newFolder };

/** The code under test, compiled (test/runner/build.mjs). */
export const BUILT = resolve('node_modules/.cache/usher-test');
/**
 * Without the optimising compilers, because these processes end before optimised code would help, and with a young
 * generation that holds most of what a start needs once.
 */
export const SHORT_LIVED = ['--liftoff-only', '--no-opt', '--min-semi-space-size=16', '--max-semi-space-size=32'];
export const CLI = join(BUILT, 'bin/cli.js');

/** Usher in a separate process, with only these settings. */
export class UsherProcess {
  stdout = '';
  stderr = '';
  readonly child: ChildProcess;
  /** Resolves when the process has exited and its outputs are closed. */
  readonly ended: Promise<Ended>;

  /** `entry` is a file of the code under test, or the absolute path of one of another build. */
  constructor(entry: string, args: string[], settings: Settings, nodeOptions: string[] = []) {
    const { PATH = '', HOME = '' } = process.env;
    const env = { PATH, HOME, PORT: '0', ...settings };
    this.child = spawn(process.execPath, [...SHORT_LIVED, ...nodeOptions, resolve(BUILT, 'bin', entry), ...args], {
      env,
      cwd: newFolder(),
    });
    // A command that reads no input may have ended before the test writes to it.
    this.child.stdin?.on('error', () => undefined);
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => void (this.stdout += text));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => void (this.stderr += text));
    this.ended = new Promise((done) => {
      this.child.on('close', (code) => done({ code, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  /** Waits for output that matches, and returns the first match. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    return eventually(`it prints ${pattern}`, () => {
      const found = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
      if (!found && this.child.exitCode !== null) throw new Error(`it ended: ${this.stdout}${this.stderr}`);
      return found;
    });
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }
}

export type ServerProcess = UsherProcess & { url: string };

/** Starts a server and waits until it listens. */
export async function startServer(
  settings: Settings,
  nodeOptions?: string[],
  entry = 'main.js',
): Promise<ServerProcess> {
  const server = new UsherProcess(entry, [], settings, nodeOptions);
  const [, url = ''] = await server.printed(/ at (http:\S+), dashboard/);
  return Object.assign(server, { url });
}

/** Starts a server that is expected to fail, in this process, and waits for its end. */
export const failedStart = (settings: Settings): Promise<Ended> => invoke(settings, '', () => runServer());

/** As {@link failedStart}, in a process of its own, for a start that fails after it has opened connections. */
export const failedProcess = (settings: Settings): Promise<Ended> => new UsherProcess('main.js', [], settings).ended;

/** Runs a command in this process to its end, as an operator would. */
export const usher = (settings: Settings, args: string[], input: string | Buffer = ''): Promise<Ended> =>
  invoke(settings, input, () => runCommand(args));

/** As {@link usher}, in a process of its own. */
export async function usherProcess(settings: Settings, args: string[], input: string | Buffer = ''): Promise<Ended> {
  const command = new UsherProcess('cli.js', args, settings);
  command.child.stdin?.end(input);
  return command.ended;
}

/** Runs a command that must succeed and returns its JSON answer. */
export async function usherJson<T>(settings: Settings, args: string[], input?: string | Buffer): Promise<T> {
  const { code, stdout, stderr } = await usher(settings, [...args, '--json'], input);
  if (code !== 0) throw new Error(`usher ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as T;
}
