import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PASSWORD, startWithIssuer, TestBrowser } from '../auth/authorize/support.js';
import type { TestUsher } from '../support/usher.js';
import { blocksOf, Shell } from './shell.js';

let usher: TestUsher;
beforeAll(async () => {
  usher = await startWithIssuer();
});
afterAll(() => usher.stop());

test('the commands of docs/authorisation-code.md lead to an order of the member, also with a query in the redirect URI', async () => {
  const blocks = blocksOf('docs/authorisation-code.md').filter(({ language }) => language === 'sh');
  expect(blocks).toHaveLength(7);
  const [settings, start, create = '', link, code, exchange, order] = blocks.map(({ code }) => code);
  const query = 'from=seat&name=J%20D&to=%2Fhome';
  const shell = new Shell({ ...usher.settings, AUTH_URL: usher.running.url });
  try {
    await shell.paste(`${settings}${start}`);
    expect(await shell.paste(create.replace('/callback', `/callback?${query}`))).toContain('amelie@cinema.example');
    const browser = new TestBrowser(usher.running.url);
    const address = (await shell.paste(link ?? '')).trim();
    expect(new URL(address).searchParams.get('state')).toMatch(/^[0-9a-f]{32}$/);
    expect(new URL(String(new URL(address).searchParams.get('redirect_uri'))).search).toBe(`?${query}`);
    const { location } = await browser.get(address);
    const signedIn = await browser.signIn('amelie@cinema.example', location, PASSWORD);
    // The browser comes back to `usher listen`, which prints the code.
    expect((await fetch(await browser.decide(signedIn.location))).status).toBe(200);
    await shell.paste(code ?? '');
    expect(JSON.parse(await shell.paste(exchange ?? ''))).toMatchObject({ token_type: 'Bearer' });
    expect(JSON.parse(await shell.paste(order ?? ''))).toMatchObject({ status: 'PENDING', totalAmount: 4200 });
  } finally {
    await shell.end();
  }
});
