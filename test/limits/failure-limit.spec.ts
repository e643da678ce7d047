import { expect, test } from '@jest/globals';
import { FailureLimit } from '../../src/limits/failure-limit.js';
import { Limiter } from '../../src/limits/limiter.js';
import { TestClock, TestStore } from './support.js';

const LIMIT = 5;
const WRONG = 'wrong secret';
const fails = () => new Promise<null>((resolve) => setImmediate(() => resolve(null)));
const succeeds = () => new Promise<string>((resolve) => setImmediate(() => resolve('ok')));

function open(clock = new TestClock(), store: TestStore | null = null) {
  const limit = new FailureLimit(new Limiter({ count: LIMIT, seconds: 60 }, store, clock));
  const attempt = (check: () => Promise<string | null>, key = 'a'): Promise<string> =>
    limit.run(key, check, refusal).then(
      (result) => result ?? WRONG,
      (error: Error) => error.message,
    );
  return { clock, attempt };
}

const refusal = (waitSeconds: number): Error => new Error(`wait ${waitSeconds}`);

test('of many failing checks at the same moment only as many run as the limit allows, and a success after them does not run', async () => {
  const { attempt } = open();
  let checked = 0;
  const guess = () => {
    checked += 1;
    return fails();
  };
  const guesses = Array.from({ length: 1_500 }, () => attempt(guess));
  const last = attempt(succeeds);
  const outcomes = await Promise.all(guesses);
  expect(checked).toBe(LIMIT);
  expect(outcomes.filter((outcome) => outcome === WRONG)).toHaveLength(LIMIT);
  expect(await last).toBe('wait 60');
});

test('500 successful checks at the same moment all run, however low the limit', async () => {
  const { attempt } = open();
  const outcomes = await Promise.all(Array.from({ length: 500 }, () => attempt(succeeds)));
  expect(new Set(outcomes)).toEqual(new Set(['ok']));
});

test('successful checks run while failures are below the limit', async () => {
  const { attempt } = open();
  for (let n = 1; n < LIMIT; n += 1) await attempt(fails);
  expect(await Promise.all(Array.from({ length: 50 }, () => attempt(succeeds)))).not.toContain('wait 60');
});

test('checks wait for those before them, and are refused only if these reach the limit', async () => {
  const { attempt } = open();
  const inOrder = [fails, fails, fails, fails, succeeds, succeeds, fails, succeeds];
  expect(await Promise.all(inOrder.map((check) => attempt(check)))).toEqual([
    ...Array.from({ length: 4 }, () => WRONG),
    'ok',
    'ok',
    WRONG,
    'wait 60',
  ]);
});

test('a success is refused if other processes have reached the limit', async () => {
  const clock = new TestClock();
  const store = new TestStore(clock);
  const [one, other] = [open(clock, store), open(clock, store)];
  for (let n = 0; n < LIMIT; n += 1) await one.attempt(fails);
  await clock.pass(1_000);
  const get = store.get.bind(store);
  store.get = (key) => new Promise((resolve) => setImmediate(() => resolve(get(key))));
  // This check ends before the store answers.
  expect(await other.attempt(() => Promise.resolve('ok'))).toMatch(/^wait/);
});

test('an error does not count as a failure, and gives its reservation back', async () => {
  const { attempt } = open();
  const down = () => Promise.reject(new Error('the database is down'));
  for (let n = 0; n < 3 * LIMIT; n += 1) expect(await attempt(down)).toBe('the database is down');
  expect(await attempt(succeeds)).toBe('ok');
});

test('nothing is kept for a key without a check, so that invented keys cannot fill the memory', async () => {
  const limit = new FailureLimit(new Limiter({ count: 1, seconds: 60 }, null, new TestClock()));
  const run = (key: string, check: () => Promise<string | null>) => limit.run(key, check, refusal).catch(() => null);
  await Promise.all([run('a', succeeds), run('b', fails), run('c', fails), run('c', fails), run('c', succeeds)]);
  await run('b', fails);
  expect(limit).toHaveProperty('checks.size', 0);
});

test('other keys are not affected, and the key itself is free after the window', async () => {
  const { clock, attempt } = open();
  for (let n = 0; n < LIMIT; n += 1) await attempt(fails);
  expect(await attempt(succeeds)).toBe('wait 60');
  expect(await attempt(succeeds, 'b')).toBe('ok');
  clock.skip(60_000);
  expect(await attempt(succeeds)).toBe('ok');
});

test('once a limit is reached, checks share the slower limit', async () => {
  const clock = new TestClock();
  const slower = new FailureLimit(new Limiter({ count: 1, seconds: 60 }, null, clock));
  const limit = new FailureLimit(new Limiter({ count: LIMIT, seconds: 3_600 }, null, clock), slower);
  const failed = async (checks: number) => {
    const results = await Promise.allSettled(Array.from({ length: checks }, () => limit.run('a', fails, refusal)));
    return results.filter(({ status }) => status === 'fulfilled').length;
  };
  expect(await failed(60)).toBe(LIMIT + 1);
  clock.skip(59_000);
  expect(await failed(60)).toBe(0);
  clock.skip(1_000);
  expect(await limit.run('a', succeeds, refusal)).toBe('ok');
  expect(await failed(60)).toBe(1);
  clock.skip(3_600_000);
  expect(await failed(60)).toBe(LIMIT + 1);
});
