import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Authorization } from '../../src/auth/authorize/authorization.entity.js';
import { MemberSession } from '../../src/members/member.entity.js';
import { OperatorSession } from '../../src/operators/operator.entity.js';
import { Purge } from '../../src/retention/purge.js';
import { PurgeSchedule } from '../../src/retention/purge.schedule.js';
import { newId } from '../../src/values/identifier.js';
import { TestUsher } from '../support/usher.js';

const DAY_MS = 86_400_000;

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start();
  // A worker would also purge at every full hour.
  await usher.running.app.get(PurgeSchedule, { strict: false }).beforeApplicationShutdown();
});
afterAll(() => usher.stop());

test('sessions are deleted when they have ended, and codes a day later', async () => {
  const { manager } = usher.dataSource;
  const now = Date.now();
  const session = { memberId: newId('sandbox', now), createdAt: 1 };
  await manager.insert(MemberSession, [
    { ...session, digest: 'ended', expiresAt: now - 1_000 },
    { ...session, digest: 'open', expiresAt: now + 600_000 },
  ]);
  const operators = { operatorId: newId('sandbox', now), settingsMac: null, createdAt: 1 };
  await manager.insert(OperatorSession, [
    { ...operators, digest: 'ended', expiresAt: now - 1_000 },
    { ...operators, digest: 'open', expiresAt: now + 600_000 },
  ]);
  const asked = { browserDigest: 'x', clientId: 'client', ownerId: 'owner', redirectUri: 'https://x.example/' };
  const row = { ...asked, codeChallenge: 'x', createdAt: 1 };
  await manager.insert(Authorization, [
    { ...row, formDigest: 'yesterday', expiresAt: now - DAY_MS - 1_000 },
    { ...row, formDigest: 'today', expiresAt: now - DAY_MS + 600_000 },
  ]);
  expect(await usher.running.app.get(Purge, { strict: false }).run()).toMatchObject({
    authorizations: 1,
    memberSessions: 1,
    operatorSessions: 1,
  });
  for (const sessions of [MemberSession, OperatorSession])
    expect((await manager.find(sessions)).map(({ digest }) => digest)).toEqual(['open']);
  expect((await manager.find(Authorization)).map(({ formDigest }) => formDigest)).toEqual(['today']);
});
