import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The version in Usher's own package.json, which is in one of the folders above this file. */
export const VERSION = versionAbove(__dirname);

function versionAbove(folder: string): string {
  const file = join(folder, 'package.json');
  const { name, version } = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as { name?: string; version?: string })
    : {};
  if (name === 'nest-usher' && version !== undefined) return version;
  return dirname(folder) === folder ? 'unknown' : versionAbove(dirname(folder));
}
