import { expect } from '@jest/globals';
import { type NewPortalLink, PortalLinks } from '../../../src/portal/portal.js';
import { OperatorBrowser } from '../../support/operator-browser.js';
import type { TestUsher } from '../../support/usher.js';

/** Opens a new link to the portal of a client in a new browser. */
export async function portalOf(
  usher: TestUsher,
  clientId: string,
  given: NewPortalLink = { mayChange: true },
): Promise<OperatorBrowser> {
  const { url } = await usher.running.app.get(PortalLinks, { strict: false }).create(clientId, given);
  const browser = new OperatorBrowser(usher);
  expect(await browser.post(url, {})).toMatchObject({ status: 303, location: '/portal/overview' });
  return browser;
}
