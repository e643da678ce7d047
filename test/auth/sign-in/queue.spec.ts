import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { MAX_WAIT_MS, Passwords } from '../../../src/auth/sign-in/passwords.js';
import { TestClock } from '../../limits/support.js';

const PASSWORD = 'a long password';
const from = (network: string, isKnown = false) => ({ network, isKnown });

let hash: string;
let passwords: Passwords;
let answered: string[];
beforeAll(async () => {
  hash = await new Passwords().hash(PASSWORD);
});
beforeEach(() => {
  passwords = new Passwords();
  answered = [];
});

/** Adds the label to those who were answered, in their order. */
const noted = async (label: string, check: Promise<boolean>): Promise<boolean> => {
  const isRight = await check;
  answered.push(label);
  return isRight;
};
const invented = (network: string) => noted(network, passwords.isRight('a guess', null, from(network)));

test('a password is right only with its own hash, and never without an account', async () => {
  expect(await passwords.isRight(PASSWORD, hash, from('a'))).toBe(true);
  expect(await passwords.isRight('another password', hash, from('a'))).toBe(false);
  expect(await passwords.isRight('', null, from('a'))).toBe(false);
  const busy = [invented('b'), passwords.isRight('another password', hash, from('a'))];
  expect(await Promise.all(busy)).toEqual([false, false]);
});

test('networks take turns: many guesses of one delay another by one', async () => {
  await Promise.all([...Array.from({ length: 8 }, () => invented('crowd')), invented('other')]);
  expect(answered.indexOf('other')).toBeLessThanOrEqual(2);
});

test('a right password waits for one hash, however many networks guess', async () => {
  const guesses = Array.from({ length: 40 }, (_, n) => invented(`network ${n}`));
  const right = [
    noted('known', passwords.isRight(PASSWORD, hash, from('a', true))),
    noted('new browser', passwords.isRight(PASSWORD, hash, from('network 1'))),
  ];
  expect(await Promise.all(right)).toEqual([true, true]);
  expect(answered).toEqual(['network 0', 'known', 'new browser']);
  await Promise.all(guesses);
});

test('the order of answers does not show whether there is an account', async () => {
  const guesses = [
    invented('a'),
    invented('b'),
    noted('account', passwords.isRight('a guess', hash, from('c'))),
    invented('d'),
  ];
  expect(await Promise.all(guesses)).toEqual([false, false, false, false]);
  expect(answered).toEqual(['a', 'b', 'account', 'd']);
});

test('after a guess of a stranger those of others rest for four times as long, and a right password does not', async () => {
  const clock = new TestClock();
  passwords = new Passwords(clock);
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

test('a wrong password for an account rests, and makes others rest, like one for an invented name', async () => {
  const clock = new TestClock();
  passwords = new Passwords(clock);
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

test('what has waited too long in the queue is answered 503, and the queue goes on', async () => {
  const clock = new TestClock();
  passwords = new Passwords(clock);
  const guesses = ['a', 'b', 'c'].map(invented);
  const late = Promise.allSettled(guesses.slice(1));
  await clock.pass(MAX_WAIT_MS);
  for (const guess of await late) expect(guess).toMatchObject({ reason: { status: 503 } });
  expect(await guesses[0]).toBe(false);
  expect(await passwords.isRight(PASSWORD, hash, from('a'))).toBe(true);
});
