import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('..', import.meta.url));

/** Installs the packages that only the bench needs, at their locked versions, where they are missing. */
export function installReferences(): void {
  if (existsSync(`${FOLDER}/node_modules/oidc-provider`)) return;
  console.error('installing oidc-provider for the comparison, into bench/node_modules …');
  try {
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: FOLDER, stdio: ['ignore', 'ignore', 'inherit'] });
  } catch {
    throw new Error('oidc-provider could not be installed; run "npm ci" in bench/, or measure other rows with --only');
  }
}
