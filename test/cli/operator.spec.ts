import { beforeAll, expect, test } from '@jest/globals';
import { OperatorBrowser } from '../support/operator-browser.js';
import { usher as run, usherJson } from '../support/process.js';
import { TestUsher } from '../support/usher.js';

interface Shown {
  operator_id: string;
  name: string;
  role: string;
  created_at: string;
  disabled_at: string | null;
}

const PASSWORD = 'a long enough password';

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.shared();
});

const operator = <T = Shown>(args: string[], input?: string) =>
  usherJson<T>(usher.settings, ['operator', ...args], input);
const statusOf = async (password: string): Promise<number> =>
  (await new OperatorBrowser(usher).signIn('alice', password)).status;

test('usher operator creates, lists, disables and enables operators, and sets their role and password', async () => {
  const created = await operator(['create', 'Alice', '--role', 'viewer'], `${PASSWORD}\n`);
  expect(created).toMatchObject({ name: 'alice', role: 'viewer', disabled_at: null });
  expect(await operator<Shown[]>(['list'])).toContainEqual(created);
  expect(await statusOf(PASSWORD)).toBe(303);
  expect((await operator(['disable', 'alice'])).disabled_at).toMatch(/^20\S+Z$/);
  expect(await statusOf(PASSWORD)).toBe(403);
  expect(await operator(['enable', 'ALICE'])).toEqual(created);
  expect(await operator(['set-role', 'alice', 'operator'])).toEqual({ ...created, role: 'operator' });
  await operator(['set-password', 'alice'], 'another password');
  expect(await statusOf(PASSWORD)).toBe(403);
  expect(await statusOf('another password')).toBe(303);
});

test('an error of "usher operator" names the remedy', async () => {
  const faultOf = async (args: string[], input = PASSWORD): Promise<string> => {
    const { code, stderr } = await run(usher.settings, ['operator', ...args], input);
    expect(code).toBe(1);
    return stderr;
  };
  expect(await faultOf(['create', 'short'], 'short')).toContain('the password must have 10 to 200 characters');
  expect(await faultOf(['create', 'ops'])).toContain('operator ops, whom OPS_USER names, already exists');
  expect(await faultOf(['set-password', 'ops'])).toContain('change these settings, and restart Usher');
  expect(await faultOf(['disable', 'nobody'])).toContain('there is no operator nobody');
  expect(await faultOf(['set-role', 'ops', 'root'])).toContain('Allowed choices are viewer, operator');
});
