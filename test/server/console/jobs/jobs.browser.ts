import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import type { Browser } from 'playwright-core';
import { Consent } from '../../../../src/clients/authorization.entity.js';
import { MembersService } from '../../../../src/members/members.service.js';
import { OperatorsService } from '../../../../src/operators/operators.service.js';
import { Backlog } from '../../../../src/server/health/backlog.js';
import { actor } from '../../../../src/values/actor.js';
import { isTooWide } from '../../../support/axe.js';
import { launchBrowser, picture } from '../../../support/browser.js';
import { eventually } from '../../../support/eventually.js';
import { answer, TestReceiver } from '../../../support/receiver.js';
import { ONE_ATTEMPT, TestClient, TestUsher } from '../../../support/usher.js';
import { ConsolePages } from '../console-pages.js';
import { oldFailures, worstReceiver } from './past.js';
import { Person } from './person.js';

const PASSWORD = 'a password of the tests';

let usher: TestUsher;
let receiver: TestReceiver;
let browser: Browser;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
  browser = await launchBrowser();
  await oldFailures(await clientOf('Old Failures'), receiver.url);
  await worstReceiver(await clientOf('Worst Receiver'));
});
afterAll(async () => {
  await browser.close();
  await usher.stop();
  receiver.close();
});

const service = <Service>(type: new (...args: never[]) => Service): Service =>
  usher.running.app.get(type, { strict: false });

async function clientOf(name: string): Promise<TestClient> {
  const { client, secret } = await usher.clients.create(name, receiver.url);
  return new TestClient(usher, client.id, secret);
}

/** Each makes what it needs, whose names contain `mark`, begins, and checks what it has done. */
const JOBS: [what: string, most: number, job: (person: Person, mark: string) => Promise<void>][] = [
  [
    'seeing why nothing arrived, sending all of it again and seeing the outcome',
    6,
    async (person, mark) => {
      const client = await clientOf(`Popcorn ${mark}`);
      receiver.behaviour = (response) => void response.writeHead(401).end('who are you');
      const keys = await Promise.all([client.completedOrder(), client.completedOrder()]);
      for (const key of keys) await usher.webhook(key, 'FAILED');
      receiver.behaviour = answer(200);
      const counted = new RegExp(`>Popcorn ${mark}</a>[^]*?>2</a>`);
      // What the overview counts is cached for some seconds.
      await eventually('the overview counts both', async () => counted.test(await pages.get('/ops')));
      await person.begin();
      await person.follow('2', person.row(`Popcorn ${mark}`));
      await person.follow(/^…/, person.row('401 or 403').first());
      await person.page.getByText('Usually it computed another signature').waitFor();
      await person.click(person.page.getByRole('link', { name: 'Usher', exact: true }));
      await person.click(person.row(`Popcorn ${mark}`).getByText('Send again', { exact: true }));
      await person.press('Send all of them again');
      for (const key of keys) await usher.webhook(key, 'SUCCESS');
      await person.reload();
      await person.page.locator('.tiles > div', { hasText: 'Delivered' }).getByText('2').waitFor();
    },
  ],
  [
    'replacing a leaked secret',
    4,
    async (person, mark) => {
      const client = await clientOf(`Leaky ${mark}`);
      await person.begin();
      await person.search(`Leaky ${mark}`);
      await person.click(person.page.getByLabel('The integrator gets no token until the new secret is in use'));
      await person.press('Refuse the leaked secret, issue a new one');
      await person.page.getByText('It is not shown again').waitFor();
      expect((await client.token()).status).toBe(401);
    },
  ],
  [
    'setting another Notify URL, which is tried first,',
    2,
    async (person, mark) => {
      const client = await clientOf(`Mover ${mark}`);
      const moved = receiver.urlAt('localhost');
      await person.begin();
      await person.search(`Mover ${mark}`);
      await person.page.getByLabel('Notify URL', { exact: true }).fill(moved);
      await person.press('Set the Notify URL');
      await person.page.getByText('The Notify URL is set').waitFor();
      expect((await usher.clients.get(client.id)).notifyUrl).toBe(moved);
    },
  ],
  [
    'finding the worst receiver and whether it improves',
    2,
    async (person) => {
      await person.begin();
      await person.open('Receivers');
      const first = person.page.locator('tbody').getByRole('row').first();
      expect(await first.textContent()).toMatch(/worst\.example[^]*50 %[^]*was 10 %/);
    },
  ],
  [
    'finding who changed what from what',
    2,
    async (person, mark) => {
      const client = await clientOf(`Changed ${mark}`);
      const moved = receiver.urlAt('localhost');
      await usher.clients.setNotifyUrl(client.id, moved, actor('operator', 'alice', null));
      await person.begin();
      await person.open('Audit');
      const row = (await person.row(`Changed ${mark}`).first().textContent()) ?? '';
      for (const part of ['alice', 'set a Notify URL', receiver.url, moved]) expect(row).toContain(part);
    },
  ],
  [
    'withdrawing the access of one application to a member',
    3,
    async (person, mark) => {
      const member = await service(MembersService).create(`member-${mark}`, PASSWORD);
      const [kept, withdrawn] = [await clientOf(`Kept ${mark}`), await clientOf(`Withdrawn ${mark}`)];
      const { manager } = usher.dataSource;
      for (const { id: clientId } of [kept, withdrawn])
        await manager.insert(Consent, { ownerId: member.id, clientId, givenAt: Date.now() });
      await person.begin();
      await person.search(`member-${mark}`);
      await person.follow(`member-${mark}`);
      await person.choose('Application', `Withdrawn ${mark}`);
      await person.press('Withdraw the access');
      await person.page.getByText('The application cannot act for the member any more').waitFor();
      expect(await manager.findBy(Consent, { ownerId: member.id })).toMatchObject([{ clientId: kept.id }]);
    },
  ],
  [
    'resuming a stuck queue',
    2,
    async (person) => {
      await usher.queue.pause();
      await service(Backlog).queries.queues.clear();
      await person.begin();
      await person.press('Resume');
      await person.page.getByText('The queue is resumed').waitFor();
      expect(await usher.queue.isPaused()).toBe(false);
    },
  ],
  [
    'disabling a colleague who leaves',
    3,
    async (person, mark) => {
      const name = `colleague-${mark}`;
      await service(OperatorsService).create({ name, password: PASSWORD, role: 'operator' });
      await person.begin();
      await person.search(name);
      await person.follow(name);
      await person.press('Disable');
      await person.page.getByRole('button', { name: 'Enable' }).waitFor();
      expect((await service(OperatorsService).get(name)).disabledAt).not.toBeNull();
    },
  ],
  [
    'saving the failures of the last week as a file',
    3,
    async (person) => {
      await person.begin();
      await person.follow('Last 7 days');
      await person.click(person.page.locator('.tiles > div', { hasText: 'Ended FAILED' }).getByRole('link'));
      const file = person.page.waitForEvent('download');
      await person.follow('CSV');
      const lines = await readFile(await (await file).path(), 'utf8');
      expect(lines).toContain('"failed-3-days-ago"');
      expect(lines).not.toContain('"failed-9-days-ago"');
    },
  ],
  [
    'creating a client',
    3,
    async (person, mark) => {
      await person.begin();
      await person.follow('New client');
      await person.page.locator('main input[name=name]').fill(`New ${mark}`);
      await person.page.locator('main input[name=notifyUrl]').fill(receiver.url);
      await person.press('Create the client');
      await person.page.getByText('It is not shown again').waitFor();
      expect(await person.page.locator('#quick-start').textContent()).toContain('CLIENT_SECRET=');
    },
  ],
];

const SETTINGS = [1440, 390].flatMap((width) =>
  (['light', 'dark'] as const).flatMap((colorScheme) =>
    [true, false].map((javaScriptEnabled) => ({ width, colorScheme, javaScriptEnabled })),
  ),
);

describe.each(SETTINGS)('at $width pixels, $colorScheme, scripts $javaScriptEnabled', (setting) => {
  const { width, colorScheme, javaScriptEnabled } = setting;
  const mark = `${width}-${colorScheme}-${javaScriptEnabled ? 'script' : 'plain'}`;
  let person: Person;
  beforeAll(async () => {
    const viewport = { width, height: width < 600 ? 844 : 900 };
    const context = await browser.newContext({ ...setting, viewport });
    person = new Person(await context.newPage(), usher.running.url);
    await person.signIn();
  });
  afterAll(() => person.page.context().close());

  test.each(JOBS)('%s takes at most %i clicks', async (what, most, job) => {
    await job(person, mark);
    await picture(person.page, `jobs/${what.replace(/\W+/g, '-')}-${mark}`, { fullPage: true });
    expect(await isTooWide(person.page)).toBe(false);
    expect(person.clicks).toBeLessThanOrEqual(most);
  });
});
