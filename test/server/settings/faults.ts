import { ConfigError, loadConfig } from '../../../src/server/settings/settings.js';
import type { Settings } from '../../support/backend.js';

export function faultsOf(settings: Settings): string[] {
  try {
    loadConfig(settings);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}
