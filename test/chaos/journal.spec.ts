import { expect, test } from '@jest/globals';
import { readTrace } from './journal.js';

const NONE = { was: null, status: null, attempts_was: null, attempts: null, due_was: null, due: null };
const webhook = (at: number, attempts: number) => ({
  ...NONE,
  ...{ kind: 'webhook', session: 7, webhook: 'w', at, status: 'PENDING', attempts, due: at },
  ...(attempts > 0 && { was: 'PENDING', attempts_was: attempts - 1, due_was: 1 }),
});
const attempt = (at: number) => ({
  ...NONE,
  ...{ kind: 'webhook_attempt', session: 7, webhook: 'w', at, number: 1, started_at: at },
  ...{ duration_ms: null, response_status: null },
});

test.each([
  ['records its attempt first', [attempt(2), webhook(2, 1)]],
  ['changes the webhook first', [webhook(2, 1), attempt(2)]],
])(
  'a claim that %s is one step, also where its session has the number of the one that recorded the webhook',
  async (_, claim) => {
    const trace = await readTrace(() => Promise.resolve([webhook(1, 0), ...claim]));
    expect(trace).toMatchObject([
      { at: 1, row: { before: null } },
      { at: 2, row: { after: { attempts: 1 } }, attempt: { number: 1 } },
    ]);
    expect(trace[0]).not.toHaveProperty('attempt');
  },
);
