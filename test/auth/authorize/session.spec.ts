import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MemberSession } from '../../../src/members/member.entity.js';
import { ABSOLUTE_MS } from '../../../src/auth/sign-in/sessions.js';
import { IDLE_MS } from '../../../src/members/member-sessions.js';
import type { TestUsher } from '../../support/usher.js';
import { signedIn, startWithIssuer } from './support.js';

let usher: TestUsher;
beforeAll(async () => {
  usher = await startWithIssuer();
});
afterAll(() => usher.stop());

test('a request extends a session, but never beyond its absolute lifetime', async () => {
  const { browser, owner } = await signedIn(usher);
  const { manager } = usher.dataSource;
  const where = { memberId: owner.id };
  const { createdAt } = await manager.findOneByOrFail(MemberSession, where);
  await manager.update(MemberSession, where, { expiresAt: createdAt + IDLE_MS - 600_000 });
  expect((await browser.get('/auth/connections')).status).toBe(200);
  expect((await manager.findOneByOrFail(MemberSession, where)).expiresAt).toBeGreaterThanOrEqual(createdAt + IDLE_MS);
  const almostOver = createdAt - ABSOLUTE_MS + 300_000;
  await manager.update(MemberSession, where, { createdAt: almostOver, expiresAt: createdAt + 120_000 });
  expect((await browser.get('/auth/connections')).status).toBe(200);
  expect((await manager.findOneByOrFail(MemberSession, where)).expiresAt).toBe(almostOver + ABSOLUTE_MS);
});
