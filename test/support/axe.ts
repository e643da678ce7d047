import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const SOURCE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
/** WCAG 2.2 up to AA, and what axe-core counts as best practice. */
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/**
 * What axe-core finds wrong on a page: one line for each rule and element. The page must have been opened in a context with
 * `bypassCSP`, because its policy allows no script of a test.
 */
export async function violationsOf(page: Page, excluded: string[] = []): Promise<string[]> {
  await page.addScriptTag({ path: SOURCE });
  const options = { runOnly: { type: 'tag', values: TAGS } };
  const context = { exclude: excluded.map((selector) => [selector]) };
  const script = `axe.run(${JSON.stringify(context)}, ${JSON.stringify(options)})`;
  const { violations } = (await page.evaluate(script)) as AxeResults;
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary = '' }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary}`),
  );
}

/** Whether the page is wider than the screen. */
export const isTooWide = (page: Page): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');
