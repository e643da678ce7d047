import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the stages showed at one version of the code, in one form. It is written after each stage. */
export class Record {
  #file;
  #version = versionOfCode();
  results = {};

  constructor(folder) {
    this.#file = join(folder, 'record.json');
    mkdirSync(folder, { recursive: true });
  }

  /** Takes over the results of an earlier run of the same code. */
  takeOver() {
    try {
      const { version, results } = JSON.parse(readFileSync(this.#file, 'utf8'));
      if (version === this.#version) this.results = results;
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
  }

  add(name, result) {
    this.results[name] = result;
    writeFileSync(this.#file, `${JSON.stringify({ version: this.#version, results: this.results }, null, 2)}\n`);
  }
}

/** The commit, and a hash of the changes since then if there are any. */
function versionOfCode() {
  const git = (...args) => {
    const { status, stdout, stderr } = spawnSync('git', args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
    if (status !== 0) throw new Error(`git ${args.join(' ')} failed: ${stderr}`);
    return stdout.trim();
  };
  const changes = git('diff', 'HEAD') + git('ls-files', '--others', '--exclude-standard');
  const commit = git('rev-parse', 'HEAD');
  return changes === '' ? commit : `${commit} ${createHash('sha256').update(changes).digest('hex')}`;
}
