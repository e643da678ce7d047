import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Page } from 'playwright-core';

/**
 * Takes a picture of a page if the environment's PICTURES names a folder: `docs` renews those of the documents, and
 * `docs/operations` those of the console there. They are for people, not for the tests.
 */
export async function picture(page: Page, name: string, options: { fullPage?: boolean } = {}): Promise<void> {
  const { PICTURES: folder } = process.env;
  if (!folder) return;
  const path = join(folder, `${name}.png`);
  mkdirSync(dirname(path), { recursive: true });
  await page.screenshot({ path, ...options });
}
