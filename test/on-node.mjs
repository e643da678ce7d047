/**
 * Runs a command with the newest Node of a major version: node test/on-node.mjs 24 npm test
 * The package registry has the binaries of Node as packages. They are kept in the temporary folder.
 */
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [major = '', command, ...args] = process.argv.slice(2);
if (!/^\d+$/.test(major) || command === undefined) {
  console.error('use: node test/on-node.mjs MAJOR COMMAND [ARGUMENT …], for example 24 npm test');
  process.exit(2);
}

const name = `node-${process.platform}-${process.arch}`;
const folder = join(tmpdir(), `usher-node-${major}`);
const install = ['install', '--silent', '--no-audit', '--no-fund', '--no-save', '--prefix', folder, `${name}@${major}`];
run('npm', install, { ...process.env, NODE_OPTIONS: '' });
const bin = join(folder, 'node_modules', name, 'bin');
const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
run(join(bin, 'node'), ['-p', '"Node " + process.version'], { ...env, NODE_OPTIONS: '' });
run(command, args, env);

function run(program, its, environment) {
  const { status, error } = spawnSync(program, its, { env: environment, stdio: 'inherit' });
  if (status === 0) return;
  console.error(`${program} ${its.join(' ')} ${error ? `did not start: ${error.message}` : `ended with ${status}`}`);
  process.exit(status || 1);
}
