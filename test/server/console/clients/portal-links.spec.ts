import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { OperatorBrowser } from '../../../support/operator-browser.js';
import { TestUsher } from '../../../support/usher.js';
import { usherJson } from '../../../support/process.js';
import { ConsolePages } from '../console-pages.js';

let usher: TestUsher;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start();
});
afterAll(() => usher.stop());

const pathOn = (page: string): string => /\/portal\/open\/\w+/.exec(page)![0];

test('an operator hands a new secret over by a link, sees that it was opened, and withdraws another one', async () => {
  const created = await pages.post('/ops/clients', { name: 'Handed over', 'grant.client_credentials': 'yes' });
  const [, secret = '', id = ''] =
    /Client secret<\/dt>\s*<dd><code>(\w{43})<[^]*?\/ops\/clients\/(\w+)\/portal-link/.exec(created.text)!;
  const link = await pages.post(`/ops/clients/${id}/portal-link`, { secret: 'yes', mayChange: 'yes', valid: '24h' });
  expect(link.text).not.toContain(secret);
  const browser = new OperatorBrowser(usher);
  expect((await browser.post(pathOn(link.text), {})).text).toContain(secret);
  expect(await pages.get(`/ops/clients/${id}`)).toMatch(/>opened<[^]*from 127\.0\.0\.1/);

  const other = await pages.post(`/ops/clients/${id}/portal-link`, { valid: '1h' });
  const [, unopened = ''] = /name="link" value="(\w{22})"/.exec(await pages.get(`/ops/clients/${id}`))!;
  const { location } = await pages.post(`/ops/clients/${id}/withdraw-link`, { link: unopened });
  expect(await pages.get(location)).toContain('The link is withdrawn');
  expect((await new OperatorBrowser(usher).post(pathOn(other.text), {})).status).toBe(410);
});

test('the command line makes a link that lets a person read or make changes until it expires', async () => {
  const { id } = await usher.client();
  for (const [options, isAllowed] of [
    [[], false],
    [['--change', '--valid', '1h'], true],
  ] as const) {
    const made = await usherJson<{ url: string }>(usher.settings, ['client', 'portal-link', id, ...options]);
    const browser = new OperatorBrowser(usher);
    await browser.post(pathOn(made.url), {});
    expect((await browser.get('/portal/settings')).text.includes('Set the contact')).toBe(isAllowed);
  }
});
