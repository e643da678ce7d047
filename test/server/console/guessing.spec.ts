import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { AuditLog, FailureCounts } from '../../../src/audit/audit.module.js';
import { auditLines, captureLog } from '../../auth/tokens/support.js';
import { basic, COMPLETION, TestUsher } from '../../support/usher.js';

const OPERATOR = { authorization: basic('ops', 'ops') };
const LIMIT = 5;

let usher: TestUsher;
let audit: AuditLog;
let counts: FailureCounts;
beforeEach(async () => {
  usher = await TestUsher.start({ AUTH_FAILURE_LIMIT: `${LIMIT}/h` });
  audit = usher.running.app.get(AuditLog, { strict: false });
  counts = usher.running.app.get(FailureCounts, { strict: false });
});
afterEach(() => usher.stop());

const opsPage = (password: string) => usher.request('GET', '/ops', { authorization: basic('ops', password) });
const completion = (password: string) =>
  usher.request(
    'POST',
    '/internal/movie-orders/none/complete',
    { authorization: basic('internal', password) },
    COMPLETION,
  );

describe.each([
  ['operator', opsPage],
  ['internal', completion],
] as const)('guessing the password of %s', (holder, request) => {
  const right = holder === 'operator' ? 'ops' : 'internal';

  test('is refused with 429 after too many failures, also with the right password last of many at once', async () => {
    const passwords = [...Array.from({ length: 40 }, (_, n) => `wrong ${n}`), right];
    const answers = await Promise.all(passwords.map(request));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(LIMIT);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(passwords.length - LIMIT);
    expect(Number(answers.at(-1)!.headers.get('retry-after'))).toBeGreaterThan(1);
    expect(answers.at(-1)!.status).toBe(429);
  });

  test('does not count requests without a password, nor successes', async () => {
    for (let n = 0; n < 2 * LIMIT; n += 1) {
      const path = holder === 'operator' ? '/ops' : '/internal/movie-orders/none/complete';
      expect((await usher.request(holder === 'operator' ? 'GET' : 'POST', path, {}, undefined)).status).toBe(401);
      expect((await request(right)).status).toBe(holder === 'operator' ? 200 : 404);
    }
  });

  test('is counted in a metric, and with the address in the audit', async () => {
    const log = captureLog(usher);
    for (let n = 0; n < LIMIT + 2; n += 1) await request('wrong');
    await counts.flush();
    const [event, ...others] = await audit.list({ action: `${holder}.authentication-failed` });
    expect(others).toEqual([]);
    expect(event).toMatchObject({ actor: 'unknown', address: '127.0.0.1', detail: { failed: LIMIT, blocked: 2 } });
    expect(auditLines(log)).toEqual([
      {
        event: `${holder}.authentication-failed`,
        subject: null,
        actor: 'unknown',
        address: '127.0.0.1',
        failed: LIMIT,
        blocked: 2,
      },
    ]);
    if (holder === 'operator') return;
    const { body } = await usher.request('GET', '/ops/metrics', OPERATOR);
    expect(body.text).toContain(`usher_authentication_failures_total{credential="internal"} ${LIMIT + 2}\n`);
    expect(body.text).toContain('usher_authentication_failures_total{credential="operator"} 0\n');
  });
});

describe('the audit of failed authentications', () => {
  test('has one row a client and address, and names only clients that exist', async () => {
    const client = await usher.client();
    const token = (id: string) =>
      usher.request('POST', '/auth/token', { authorization: basic(id, 'wrong') }, { grant_type: 'client_credentials' });
    for (let n = 0; n < 3; n += 1) await token(client.id);
    await token('a-secret-in-the-wrong-field');
    await counts.flush();
    const events = await audit.list({ action: 'client.authentication-failed' });
    const facts = events.map(({ subject, detail }) => ({ subject, failed: detail.failed }));
    expect(facts).toEqual(
      expect.arrayContaining([
        { subject: `client:${client.id}`, failed: 3 },
        { subject: null, failed: 1 },
      ]),
    );
    expect(facts).toHaveLength(2);
    expect(JSON.stringify(events)).not.toContain('wrong-field');
  });

  test('has at most one row for all further callers once a minute has 20, so that guessing cannot fill the table', async () => {
    for (let n = 0; n < 500; n += 1)
      counts.count({
        action: 'client.authentication-failed',
        subject: null,
        address: `192.0.2.${n}`,
        isBlocked: n % 2 === 0,
      });
    await counts.flush();
    const events = await audit.list({ action: 'client.authentication-failed' });
    expect(events).toHaveLength(21);
    const total = events.reduce((sum, { detail }) => sum + Number(detail.failed) + Number(detail.blocked), 0);
    expect(total).toBe(500);
    expect(events.filter(({ address }) => address === null).map(({ detail }) => detail)).toEqual([
      { failed: 240, blocked: 240 },
    ]);
  });

  test('still names the account once a minute has 20 rows, so that its owner can be told', async () => {
    const [action, subject] = ['member.authentication-failed', 'member:guessed'] as const;
    for (let n = 0; n < 60; n += 1) counts.count({ action, subject, address: `192.0.2.${n}`, isBlocked: false });
    await counts.flush(subject);
    const events = await audit.list({ subject, action });
    expect(events.reduce((sum, { detail }) => sum + Number(detail.failed), 0)).toBe(60);
    expect(events).toHaveLength(21);
  });

  test('is written at shutdown, and later if the database does not answer', async () => {
    const failure = {
      action: 'operator.authentication-failed',
      subject: null,
      address: '192.0.2.1',
      isBlocked: false,
    } as const;
    counts.count(failure);
    const { manager } = usher.dataSource;
    await manager.query('ALTER TABLE usher_audit_event RENAME TO usher_hidden');
    await counts.flush();
    await manager.query('ALTER TABLE usher_hidden RENAME TO usher_audit_event');
    counts.count(failure);
    await counts.beforeApplicationShutdown();
    expect((await audit.list({}))[0]).toMatchObject({ address: '192.0.2.1', detail: { failed: 2, blocked: 0 } });
  });
});

test('a process that stops while it writes the failures of a minute waits for their rows', async () => {
  const subject = 'client:guessed';
  counts.count({ action: 'client.authentication-failed', subject, address: null, isBlocked: false });
  const written = counts.flush();
  await counts.beforeApplicationShutdown();
  expect(await audit.list({ subject })).toMatchObject([{ detail: { failed: 1, blocked: 0 } }]);
  await written;
});
