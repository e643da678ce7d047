import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

interface Manifest {
  folder?: string;
  name?: string;
  version?: string;
  /** In Usher's own: which versions of its optional peer dependencies work. */
  optionalVersions?: Record<string, string>;
}

/** The package.json of the package `name`, which is in this folder or above it. Empty if there is none. */
export function manifestAbove(folder: string, name: string): Manifest {
  const file = join(folder, 'package.json');
  const manifest = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Manifest) : {};
  if (manifest.name === name) return { ...manifest, folder };
  return dirname(folder) === folder ? {} : manifestAbove(dirname(folder), name);
}

export const {
  version: VERSION = 'unknown',
  optionalVersions: OPTIONAL_VERSIONS = {},
  folder: PACKAGE_FOLDER = __dirname,
} = manifestAbove(__dirname, 'nest-usher');
