import { readdir } from 'node:fs/promises';
import { afterAll, expect, test } from '@jest/globals';
import { FolderLock } from '../../../src/database/embedded/folder/folder-lock.js';
import { Folders } from './support.js';

const folders = new Folders();

afterAll(() => folders.clean());

test('exactly one of eight contenders gets the lock, in each of 50 rounds', async () => {
  const folder = await folders.empty();
  for (let round = 0; round < 50; round++) {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => FolderLock.acquire(folder)));
    const locks = outcomes.filter((outcome) => outcome instanceof FolderLock);
    expect(locks).toHaveLength(1);
    for (const outcome of outcomes) if (!(outcome instanceof FolderLock)) outcome.close();
    await locks[0]?.release();
    expect(await readdir(folder)).toEqual([]);
  }
});
