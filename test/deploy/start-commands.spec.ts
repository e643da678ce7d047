import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

/** What comes between `node` and the file that it runs. */
const flagsIn = (path: string, command: RegExp): string[] =>
  (command.exec(readFileSync(path, 'utf8'))?.[1] ?? 'no start command').split(/[\s",]+/).filter(Boolean);

const FLAGS = flagsIn('package.json', /"start": "exec node (.*) bin\/usher\.mjs serve"/);

test('the image and the unit start Node with the flags of npm start', () => {
  expect(flagsIn('Dockerfile', /^CMD \["node"(.*)"dist\/main\.js"\]$/m)).toEqual(FLAGS);
  expect(flagsIn('deploy/systemd/usher@.service', /^ExecStart=\/usr\/bin\/node (.*) dist\/main\.js$/m)).toEqual(FLAGS);
});

test('Node knows these flags', () => {
  expect(FLAGS).toEqual(['--no-memory-reducer', '--no-allocation-site-pretenuring', '--no-parallel-scavenge']);
  expect(spawnSync(process.execPath, [...FLAGS, '--eval', ''], { encoding: 'utf8' })).toMatchObject({
    status: 0,
    stderr: '',
  });
});
