import type { Locator, Page } from 'playwright-core';
import { openConsole } from '../../../support/browser.js';

/** An operator at the console, whose clicks are counted. Typing and its Enter are no clicks. */
export class Person {
  clicks = 0;

  constructor(
    readonly page: Page,
    private readonly url: string,
  ) {}

  async signIn(): Promise<void> {
    await openConsole(this.page, `${this.url}/ops`);
    await this.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  }

  /** Where an operator lands after the sign-in; the count begins there. */
  async begin(): Promise<void> {
    await this.page.goto(`${this.url}/ops`);
    this.clicks = 0;
  }

  async click(what: Locator): Promise<void> {
    this.clicks += 1;
    await what.click();
  }

  /** Follows the first link of the content with this text. */
  follow(name: string | RegExp, within: Locator = this.page.locator('main')): Promise<void> {
    return this.click(within.getByRole('link', { name, exact: true }).first());
  }

  press(name: string, within: Locator = this.page.locator('main')): Promise<void> {
    return this.click(within.getByRole('button', { name, exact: true }));
  }

  async choose(label: string, option: string): Promise<void> {
    this.clicks += 1;
    await this.page.getByLabel(label).selectOption(option);
  }

  /** Opens a section; on a phone the menu first. */
  async open(section: string): Promise<void> {
    const menu = this.page.getByRole('button', { name: 'Menu' });
    if (await menu.isVisible()) await this.click(menu);
    await this.click(this.page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: section }));
  }

  async search(text: string): Promise<void> {
    await this.page.getByRole('searchbox').fill(text);
    await this.page.getByRole('searchbox').press('Enter');
  }

  /** Without JavaScript a page is not renewed by itself. */
  async reload(): Promise<void> {
    this.clicks += 1;
    await this.page.reload();
  }

  /** The row of a table, or the card of a phone, that contains a text. */
  row(text: string): Locator {
    return this.page.locator('tbody').getByRole('row').filter({ hasText: text });
  }
}
