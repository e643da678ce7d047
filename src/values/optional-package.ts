import { StartUpError } from './start-up-error.js';

/**
 * Runs `load`, which imports one or more of the packages that a host installs only if it uses them.
 * @throws StartUpError that names every missing one of them and the command that installs it
 */
export async function loadPackages<T>(names: readonly string[], load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!names.some((name) => isMissing(name, error))) throw error;
    throw new StartUpError(explanation(names.filter((name) => isMissing(name, error) || !isInstalled(name))));
  }
}

/** The same for a single package. */
export const loadPackage = <T>(name: string, load: () => Promise<T>): Promise<T> => loadPackages([name], load);

/** Whether `error` says that this very package is missing, not one that the package itself needs. */
function isMissing(name: string, error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === 'ERR_MODULE_NOT_FOUND' && message.startsWith(`Cannot find package '${name}'`);
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch (error) {
    return !isMissing(name, error);
  }
}

function explanation(missing: string[]): string {
  const packages = missing.length === 1 ? 'the package' : 'the packages';
  const verb = missing.length === 1 ? 'is' : 'are';
  return `${packages} ${missing.join(' and ')} ${verb} not installed; run "npm install ${missing.join(' ')}"`;
}
