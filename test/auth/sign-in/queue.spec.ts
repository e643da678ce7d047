import { PassThrough } from 'node:stream';
import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { MAX_WAIT_MS, Passwords } from '../../../src/auth/sign-in/passwords.js';
import type { Operator } from '../../../src/operators/operator.entity.js';
import { OperatorsService } from '../../../src/operators/operators.service.js';
import { TestClock } from '../../limits/support.js';
import { TestUsher } from '../../support/usher.js';
import { fieldsOf, TestBrowser } from '../authorize/support.js';

const PASSWORD = 'a long password';
const from = (network: string, isKnown = false) => ({ network, isKnown });

let hash: string;
/** Of other accounts with the same password. */
let otherHashes: string[];
let clock: TestClock;
let passwords: Passwords;
let answered: string[];
beforeAll(async () => {
  const hashes = Array.from({ length: 6 }, () => new Passwords(10_000).hash(PASSWORD));
  [hash = '', ...otherHashes] = await Promise.all(hashes);
});
const begin = () => {
  clock = new TestClock();
  passwords = new Passwords(10_000, clock);
  answered = [];
};
beforeEach(begin);
afterEach(begin);

/** Adds the label to those who were answered, in their order. */
const noted = async (label: string, check: Promise<boolean>): Promise<boolean> => {
  const isRight = await check;
  answered.push(label);
  return isRight;
};
/** Ends every rest at once: the time of the test's clock does not pass, so no check waits too long. */
const allOf = async (checks: Promise<boolean>[]): Promise<boolean[]> => {
  let isDone = false;
  const ofThisTest = clock;
  const answers = Promise.all(checks).finally(() => (isDone = true));
  while (!isDone && clock === ofThisTest) {
    await new Promise((resolve) => setImmediate(resolve));
    await clock.pass(0);
  }
  return answers;
};
const invented = (network: string) => noted(network, passwords.isRight('a guess', null, from(network)));

test('a password is right only with its own hash, and never without an account', async () => {
  const checks = [
    [PASSWORD, hash],
    ['another password', hash],
    ['', null],
  ] as const;
  for (const [password, of] of checks)
    expect(await allOf([passwords.isRight(password, of, from('a'))])).toEqual([password === PASSWORD]);
  expect(await allOf([invented('b'), passwords.isRight('another password', hash, from('a'))])).toEqual([false, false]);
});

test('networks take turns: many guesses of one delay another by one', async () => {
  await allOf([...Array.from({ length: 8 }, () => invented('crowd')), invented('other')]);
  expect(answered.indexOf('other')).toBeLessThanOrEqual(2);
});

test('a right password waits for one hash, however many networks guess', async () => {
  for (let n = 0; n < 40; n += 1) void invented(`network ${n}`);
  const right = [
    noted('known', passwords.isRight(PASSWORD, hash, from('a', true))),
    noted('new browser', passwords.isRight(PASSWORD, hash, from('network 1'))),
  ];
  expect(await Promise.all(right)).toEqual([true, true]);
  expect(answered).toEqual(['network 0', 'known', 'new browser']);
});

test('the order of answers does not show whether there is an account', async () => {
  const guesses = [
    invented('a'),
    invented('b'),
    noted('account', passwords.isRight('a guess', hash, from('c'))),
    invented('d'),
  ];
  expect(await allOf(guesses)).toEqual([false, false, false, false]);
  expect(answered).toEqual(['a', 'b', 'account', 'd']);
});

test.each([
  ['a known browser', true],
  ['a new browser', false],
])('%s that signs in again and again locks out neither other accounts nor networks', async (_, isKnown) => {
  const signIn = (label: string, of = hash, known = isKnown) =>
    noted(label, passwords.isRight(PASSWORD, of, from(label, known)));
  const crowd = Array.from({ length: 16 }, () => signIn('crowd'));
  const [account = '', known = ''] = otherHashes;
  const others = [signIn('account', account, false), signIn('known', known, true), invented('network')];
  expect(await allOf([...crowd, ...others])).toEqual([...crowd.map(() => true), true, true, false]);
  for (const label of ['account', 'known', 'network']) expect(answered.indexOf(label)).toBeLessThan(8);
});

test('the order of answers does not show whether there is an account, however many other accounts wait', async () => {
  const others = otherHashes.map((of) => passwords.isRight(PASSWORD, of, from('other')));
  const guesses = [invented('a'), noted('account', passwords.isRight('a guess', hash, from('b'))), invented('c')];
  expect(await allOf([...guesses, ...others])).toEqual([false, false, false, ...others.map(() => true)]);
  expect(answered).toEqual(['a', 'account', 'c']);
});

test('after a guess of a stranger, guesses of others wait for four times as long, and a right password does not', async () => {
  const first = invented('a');
  clock.skip(50);
  await first;
  const second = invented('b');
  expect(await noted('right', passwords.isRight(PASSWORD, hash, from('c')))).toBe(true);
  await clock.pass(199);
  expect(answered).toEqual(['a', 'right']);
  await clock.pass(1);
  expect(await second).toBe(false);
});

test('a wrong password for an account waits, and makes others wait, like one for an invented name', async () => {
  const wrong = (label: string) => noted(label, passwords.isRight('a guess', hash, from(label)));
  const first = wrong('account');
  clock.skip(50);
  await first;
  const others = [invented('a'), wrong('other account')];
  expect(await noted('right', passwords.isRight(PASSWORD, hash, from('b', true)))).toBe(true);
  await clock.pass(199);
  expect(answered).toEqual(['account', 'right']);
  await clock.pass(1);
  expect(await others[0]).toBe(false);
  expect(answered).toEqual(['account', 'right', 'a']);
});

test('a right password whose account has its turn is accepted when the turn of its network comes too late', async () => {
  const first = invented('a');
  const right = noted('right', passwords.isRight(PASSWORD, hash, from('b')));
  await first;
  await Promise.all([clock.pass(MAX_WAIT_MS), right]);
  expect(answered).toEqual(['a', 'right']);
});

test('a check that has waited too long in the queue is answered 503, and the queue continues', async () => {
  const guesses = ['a', 'b', 'c'].map(invented);
  const late = Promise.allSettled(guesses.slice(1));
  await clock.pass(MAX_WAIT_MS);
  for (const guess of await late) expect(guess).toMatchObject({ reason: { status: 503 } });
  expect(await guesses[0]).toBe(false);
  expect(await passwords.isRight(PASSWORD, hash, from('a'))).toBe(true);
});

test('a busy queue is answered before the time for the database ends, and is not logged as a fault of it', async () => {
  const log = new PassThrough();
  const usher = await TestUsher.start({ LOG_LEVEL: 'error' }, log);
  const operators = usher.running.app.get(OperatorsService, { strict: false });
  const browser = new TestBrowser(usher.running.url);
  const { form } = fieldsOf((await browser.get('/ops/sign-in')).text);
  // The queue rests for four times as long as this check of a stranger takes, which has 800 times as many passes as others.
  const costly = { disabledAt: null, passwordHash: hash.replace('t=2', 't=1600') } as Operator;
  const check = operators.hasPassword(costly, 'a guess', from('a'));
  const fields = { form: form!, name: 'nobody', password: 'a guess' };
  const { status } = await browser.post('/ops/sign-in', fields, { 'sec-fetch-site': 'same-origin' });
  await check;
  await usher.stop();
  expect(status).toBe(503);
  const logged = String(log.read());
  expect(logged).toContain('the service is busy or starting');
  expect(logged).not.toContain('the database is away');
});
