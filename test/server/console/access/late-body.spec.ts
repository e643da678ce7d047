import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { OperatorsService } from '../../../../src/operators/operators.service.js';
import { PortalLinks } from '../../../../src/portal/portal.js';
import { OperatorAccess } from '../../../../src/server/console/access/operator-access.js';
import { PortalEntry } from '../../../../src/server/portal/portal-entry.js';
import { eventually } from '../../../support/eventually.js';
import { formOf, OperatorBrowser } from '../../../support/operator-browser.js';
import { TestReceiver } from '../../../support/receiver.js';
import { TestUsher } from '../../../support/usher.js';

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start();
});
afterAll(() => usher.stop());

/** Posts a form whose body follows only when `meanwhile` is done. Returns the status. */
async function postLate(
  browser: OperatorBrowser,
  address: { page: string; path: string },
  fields: Record<string, string>,
  access: OperatorAccess | PortalEntry,
  meanwhile: () => Promise<unknown>,
): Promise<number | undefined> {
  const form = formOf((await browser.get(address.page)).text, address.path)!;
  const body = new URLSearchParams({ form, ...fields }).toString();
  const check = jest.spyOn(access, 'check');
  const request = httpRequest(usher.running.url + address.path, {
    method: 'POST',
    headers: {
      cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': body.length,
      origin: usher.running.url,
    },
  });
  request.flushHeaders();
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  await eventually('the session is checked', () => check.mock.results.length > 0);
  await check.mock.results[0]!.value;
  await meanwhile();
  request.end(body);
  const [response] = await answered;
  response.resume();
  check.mockRestore();
  return response.statusCode;
}

test('a form of the console whose body comes after its operator was disabled changes nothing', async () => {
  const client = await usher.client();
  const browser = await OperatorBrowser.of(usher, 'slow');
  const operators = usher.running.app.get(OperatorsService, { strict: false });
  const page = `/ops/clients/${client.id}`;
  const disable = () => operators.setDisabled('slow', true);
  const access = usher.running.app.get(OperatorAccess, { strict: false });
  expect(await postLate(browser, { page, path: `${page}/rename` }, { name: 'Renamed' }, access, disable)).toBe(401);
  expect((await usher.clients.get(client.id)).name).toBe('A test client');
});

test('an operator who is disabled while the sample is sent changes no Notify URL', async () => {
  const client = await usher.client();
  const browser = await OperatorBrowser.of(usher, 'sampler');
  const operators = usher.running.app.get(OperatorsService, { strict: false });
  const receiver = await TestReceiver.start();
  receiver.behaviour = (response) => void operators.setDisabled('sampler', true).then(() => response.end());
  const page = `/ops/clients/${client.id}`;
  const fields = { notifyUrl: receiver.url, isTested: 'yes' };
  expect((await browser.post(`${page}/notify-url`, fields, { page })).status).toBe(403);
  expect((await usher.clients.get(client.id)).notifyUrl).toBeNull();
  expect(receiver.arrivals).toHaveLength(1);
  receiver.close();
});

test('a form of the portal whose body comes after its link was withdrawn changes nothing', async () => {
  const client = await usher.client();
  const links = usher.running.app.get(PortalLinks, { strict: false });
  const { url } = await links.create(client.id, { mayChange: true });
  const [link] = await links.list(client.id);
  const browser = new OperatorBrowser(usher);
  await browser.post(url, {});
  const address = { page: '/portal/settings', path: '/portal/settings/contact' };
  const entry = usher.running.app.get(PortalEntry, { strict: false });
  const contact = { contact: 'other@partner.example' };
  expect(await postLate(browser, address, contact, entry, () => links.withdraw(client.id, link!.id))).toBe(303);
  expect((await usher.clients.get(client.id)).contact).toBeNull();
});
