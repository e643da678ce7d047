import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MembersService } from '../../../src/members/members.service.js';
import { OperatorsService } from '../../../src/operators/operators.service.js';
import type { TestUsher } from '../../support/usher.js';
import { fieldsOf, startWithIssuer, TestBrowser } from '../authorize/support.js';

const PASSWORD = 'correct horse battery';
/** Ten in an hour, and the one of the first minute after them. */
const GUESSES = 11;

let usher: TestUsher;
beforeAll(async () => {
  usher = await startWithIssuer({ TRUST_PROXY: '127.0.0.1' });
});
afterAll(() => usher.stop());

/** A browser at a sign-in page, which sends one form as often as it likes. */
class SignInBrowser extends TestBrowser {
  /** How often {@link send} repeated a request. Each counts as a try. */
  static repeated = 0;
  private form = '';

  private constructor(
    private readonly path: string,
    server: TestUsher,
  ) {
    super(server.running.url);
  }

  static async at(path: string, server = usher): Promise<SignInBrowser> {
    const browser = new SignInBrowser(path, server);
    await browser.open();
    return browser;
  }

  async open(): Promise<void> {
    this.cookies.delete('usher-ops-session');
    this.form = fieldsOf((await this.get(this.path)).text).form!;
  }

  /** Again if a busy machine had no time for it (503). */
  async send(name: string, password: string, address = '192.0.2.1') {
    const headers = { 'x-forwarded-for': address, 'sec-fetch-site': 'same-origin' };
    const fields = { form: this.form, return_to: '', name, password };
    let answer = await this.post(this.path, fields, headers);
    for (; answer.status === 503; SignInBrowser.repeated += 1) answer = await this.post(this.path, fields, headers);
    return answer;
  }
}

const at = (address: number): string => `198.51.100.${address}`;
/**
 * Expects that all but {@link GUESSES}, and one more for each minute that they took, were refused without a check. A guess that
 * was repeated may count twice.
 */
async function expectLimited(send: (n: number) => Promise<{ status: number }>, guesses: number): Promise<void> {
  const begunAt = performance.now();
  const repeatedBefore = SignInBrowser.repeated;
  const answers = await Promise.all(Array.from({ length: guesses }, (_, n) => send(n)));
  const minutes = Math.floor((performance.now() - begunAt) / 60_000);
  const tried = answers.filter(({ status }) => status === 403).length;
  expect(tried).toBeGreaterThanOrEqual(GUESSES - (SignInBrowser.repeated - repeatedBefore));
  expect(tried).toBeLessThanOrEqual(GUESSES + minutes);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(guesses - tried);
}

/** Expects that a page tells of so many tries, and at most of those that were repeated besides. */
function expectTold(text: string, tries: number): void {
  const told = Number(/(\d+) tries/.exec(text)?.[1]);
  expect(told).toBeGreaterThanOrEqual(tries);
  expect(told).toBeLessThanOrEqual(tries + SignInBrowser.repeated);
}

describe.each([
  ['a member', '/auth/sign-in', 'usher-known', MembersService],
  ['an operator', '/ops/sign-in', 'usher-ops-known', OperatorsService],
] as const)('guessing the password of %s', (kind, path, cookie, service) => {
  const accounts = () => usher.running.app.get<MembersService | OperatorsService>(service, { strict: false });
  const create = async (name: string) => {
    const people = accounts();
    if (people instanceof MembersService) await people.create(name, PASSWORD);
    else await people.create({ name, password: PASSWORD, role: 'operator' });
    return name;
  };
  const known = async (name: string): Promise<SignInBrowser> => {
    const browser = await SignInBrowser.at(path);
    expect((await browser.send(name, PASSWORD)).status).toBe(303);
    await browser.open();
    return browser;
  };
  const guesser = async (name: string) => {
    const browser = await SignInBrowser.at(path);
    return (n: number) => browser.send(name, `guess ${n}`, at(n));
  };

  test('ends after ten for all new browsers, and one that signed in before neither notices nor misses it', async () => {
    const name = await create('guessed');
    const own = await known(name);
    await expectLimited(await guesser(name), 60);
    const refused = await (await SignInBrowser.at(path)).send(name.toUpperCase(), PASSWORD, at(61));
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
    const signedIn = await own.send(name, PASSWORD, at(1));
    expect(signedIn.status).toBe(200);
    expectTold(signedIn.text, 60 + 1);
    await own.open();
    expect((await own.send(name, PASSWORD, at(1))).status).toBe(303);
  });

  test('ends alike for a name that nobody has', async () => {
    await expectLimited(await guesser('nobody'), 20);
  });

  test('is not helped by the cookie of another account, an invented or changed one, or one from before a new password', async () => {
    const [name, other] = [await create('cookies'), await create('other')];
    const browser = await SignInBrowser.at(path);
    const cookies = [await known(other), await known(name)].map((owner) => owner.cookies.get(cookie)!);
    await accounts().setPassword(name, PASSWORD);
    cookies.push(`${(await known(name)).cookies.get(cookie)}.x`);
    await expectLimited(await guesser(name), GUESSES + 1);
    for (const value of [...cookies, `${Date.now()}.${'n'.repeat(43)}.${'m'.repeat(43)}`]) {
      browser.cookies.set(cookie, value);
      expect((await browser.send(name, PASSWORD)).status).toBe(429);
    }
  });

  test('with 60 invented names from as many networks does not delay a right one', async () => {
    const name = await create('hurried');
    const [crowd, browser] = [await SignInBrowser.at(path), await SignInBrowser.at(path)];
    let answered = 0;
    const guesses = Array.from({ length: 60 }, (_, n) =>
      crowd.send(`crowd-${n}`, 'a guess', at(n)).finally(() => (answered += 1)),
    );
    await Promise.race(guesses);
    expect((await browser.send(name, PASSWORD)).status).toBe(303);
    expect(answered).toBeLessThan(30);
    await Promise.all(guesses);
  });

  test('is told at the next sign-in, unless it may have been two typing errors of one’s own', async () => {
    const name = await create('told');
    for (const [wrong, status] of [
      [2, 303],
      [3, 200],
      [0, 303],
    ] as const) {
      const guess = await guesser(name);
      await Promise.all(Array.from({ length: wrong }, (_, n) => guess(n)));
      expect((await (await SignInBrowser.at(path)).send(name, PASSWORD)).status).toBe(status);
    }
  });

  test('leaves a cookie that no script, no other site and no other password can use', async () => {
    const browser = await SignInBrowser.at(path);
    const { headers } = await browser.send(await create('cookie'), PASSWORD);
    const set = headers.getSetCookie().find((line) => line.startsWith(`${cookie}=`));
    expect(set).toMatch(/^[\w-]+=\d{13}\.\w{43}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=15552000$/);
  });
});

test('guessing OPS_PASSWORD ends too, except for a browser that signed in with it', async () => {
  const own = await SignInBrowser.at('/ops/sign-in');
  expect((await own.send('ops', 'ops')).status).toBe(303);
  await own.open();
  const stranger = await SignInBrowser.at('/ops/sign-in');
  await expectLimited((n) => stranger.send('ops', `guess ${n}`, at(n)), 20);
  expect((await stranger.send('ops', 'ops')).status).toBe(429);
  expectTold((await own.send('ops', 'ops')).text, 20 + 1);
});

test('60 guesses at members do not delay an operator', async () => {
  await usher.running.app
    .get(OperatorsService, { strict: false })
    .create({ name: 'on-duty', password: PASSWORD, role: 'operator' });
  const [crowd, browser] = [await SignInBrowser.at('/auth/sign-in'), await SignInBrowser.at('/ops/sign-in')];
  let answered = 0;
  const guesses = Array.from({ length: 60 }, (_, n) =>
    crowd.send(`member-${n}`, 'a guess', at(n)).finally(() => (answered += 1)),
  );
  await Promise.race(guesses);
  expect((await browser.send('on-duty', 'a guess')).status).toBe(403);
  expect(answered).toBeLessThan(30);
  await Promise.all(guesses);
});

test('guesses of one network over many names are limited before they are hashed, and do not keep a right password of that network out', async () => {
  const server = await startWithIssuer({ TRUST_PROXY: '127.0.0.1', AUTH_FAILURE_LIMIT: '2/h' });
  await server.running.app.get(MembersService, { strict: false }).create('neighbour', PASSWORD);
  const browser = await SignInBrowser.at('/auth/sign-in', server);
  const address = (subnet: number): string => `2001:db8:1:${subnet}::1`;
  const guesses = await Promise.all(
    Array.from({ length: 25 }, (_, n) => browser.send(`name-${n}`, 'a guess', address(n))),
  );
  // Those for which a busy machine had no time count too, and are sent again.
  expect(guesses.filter(({ status }) => status === 403).length).toBeLessThanOrEqual(20);
  expect(guesses.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(5);
  expect((await browser.send('neighbour', 'a guess', address(1))).status).toBe(429);
  expect((await browser.send('neighbour', PASSWORD, address(1))).status).toBe(303);
  await server.stop();
});

test('guesses with several cookies of one account count together, and leave three tries to each of its browsers', async () => {
  const server = await startWithIssuer({ AUTH_FAILURE_LIMIT: '10/h' });
  await server.running.app.get(MembersService, { strict: false }).create('robbed', PASSWORD);
  const browsers: SignInBrowser[] = [];
  for (let n = 0; n < 3; n += 1) {
    const browser = await SignInBrowser.at('/auth/sign-in', server);
    expect((await browser.send('robbed', PASSWORD)).status).toBe(303);
    await browser.open();
    browsers.push(browser);
  }
  const [own, ...stolen] = browsers;
  const guesses = stolen.flatMap((browser) =>
    Array.from({ length: 16 }, (_, n) => browser.send('robbed', `guess ${n}`)),
  );
  const tried = (await Promise.all(guesses)).filter(({ status }) => status === 403).length;
  expect(tried).toBeGreaterThan(2 * 3);
  expect(tried).toBeLessThanOrEqual(10 + 2 * 3);
  for (let n = 0; n < 2; n += 1) expect((await own!.send('robbed', 'a typing error')).status).toBe(403);
  expect((await own!.send('robbed', PASSWORD)).status).toBe(200);
  await server.stop();
});
