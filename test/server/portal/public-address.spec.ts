import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PortalLinks } from '../../../src/portal/portal.js';
import { OperatorBrowser, type PageAnswer } from '../../support/operator-browser.js';
import { TestUsher } from '../../support/usher.js';

const ORIGIN = 'http://cinema.example';

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start({ USHER_AUTH_URL: `${ORIGIN}/usher`, BRAND_NAME: 'Roxy & Sons' });
});
afterAll(() => usher.stop());

const addressesOf = ({ text }: PageAnswer): string[] =>
  [...text.matchAll(/\s(?:href|action|src)="(\/[^"]*)"/g)].map(([, address = '']) => address);

/** What a proxy passes on, which takes the path of the public address away. */
const passed = (address: string): string => {
  expect(address).toMatch(/^(http:\/\/cinema\.example)?\/usher\/portal/);
  return address.replace(/^.*?\/usher/, '');
};

test('behind a proxy that takes a path away, a link opens the portal, and every address of its pages has the path', async () => {
  const client = await usher.client('http://127.0.0.1:4000/notify');
  const { url } = await usher.running.app.get(PortalLinks, { strict: false }).create(client.id, { mayChange: true });
  const browser = new OperatorBrowser(usher);
  const entry = await browser.get(passed(url));
  const form = /name="form" value="([^"]+)"/.exec(entry.text)![1]!;
  const action = /<form[^]*?action="([^"]+)"/.exec(entry.text)![1]!;
  const opened = await browser.post(passed(action), { form }, { page: null, headers: { origin: ORIGIN } });
  const overview = await browser.get(passed(opened.location!));
  expect(overview.status).toBe(200);
  const addresses = addressesOf(overview);
  expect(addresses.length).toBeGreaterThan(8);
  for (const address of addresses) expect((await browser.get(passed(address))).status).toBeLessThan(400);
  const stranger = await new OperatorBrowser(usher).get('/portal/overview');
  expect(stranger.location).toBe('/usher/portal');
  expect((await browser.get('/portal/overview', { 'usher-live': '1' })).text).toContain('href="/usher/portal/');
});

test('clients and integrators read the name of the cinema; operators read that of the service', async () => {
  const read = async (path: string) => (await new OperatorBrowser(usher).get(path)).text;
  for (const path of ['/portal', '/docs', '/docs/tokens']) {
    const text = await read(path);
    expect({ path, text }).toEqual({ path, text: expect.stringMatching(/<title>[^<]* · Roxy &amp; Sons<\/title>/) });
    expect(text).toMatch(/<\/svg>\s*Roxy &amp; Sons\s*<\/a>/);
  }
  expect(await read('/ops/sign-in')).toMatch(/<title>[^<]* · Usher<\/title>/);
});
