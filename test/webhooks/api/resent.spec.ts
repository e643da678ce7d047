import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { answer, TestReceiver } from '../../support/receiver.js';
import { ONE_ATTEMPT, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

interface Seen {
  id: string;
  resentAs: string | null;
}

test('a FAILED notification has the id of the one that followed it, and lists find those without one', async () => {
  const [client, other] = [await usher.client(receiver.url), await usher.client(receiver.url)];
  receiver.behaviour = answer(500);
  const failed = async (of = client) => {
    const key = await of.completedOrder();
    return { key, id: (await usher.webhook(key, 'FAILED')).id };
  };
  const [left, twice, foreign] = [await failed(), await failed(), await failed(other)];
  const { id: second } = await usher.webhooks.resend(twice.id);
  await usher.webhook(twice.key, 'FAILED');
  receiver.behaviour = answer(200);
  const { id: third } = await usher.webhooks.resend(second);
  await usher.webhook(twice.key, 'SUCCESS');

  const list = async (query: string, of = client) => {
    const { status, body } = await of.call('GET', `/webhooks${query}`);
    expect(status).toBe(200);
    return (body.data as Seen[]).map(({ id, resentAs }) => [id, resentAs]);
  };
  const [asThird, asSecond, asFirst, asLeft] = [
    [third, null],
    [second, third],
    [twice.id, third],
    [left.id, null],
  ];
  expect(await list('')).toEqual([asThird, asSecond, asFirst, asLeft]);
  expect(await list('?status=FAILED&resent=false')).toEqual([asLeft]);
  expect(await list('?resent=true')).toEqual([asSecond, asFirst]);
  expect(await list(`?resent=true&referenceId=${encodeURIComponent(twice.key)}&limit=1&cursor=${second}`)).toEqual([
    asFirst,
  ]);
  expect(await list('?resent=false', other)).toEqual([[foreign.id, null]]);
  expect((await client.call('GET', `/webhooks/${twice.id}`)).body).toMatchObject({ resentAs: third });
  expect((await client.call('GET', `/webhooks/${third}`)).body).toMatchObject({ resentAs: null });
  const refused = await client.call('GET', '/webhooks?status=SUCCESS&resent=false');
  expect([refused.status, refused.body.errors]).toEqual([
    400,
    [{ parameter: 'resent', message: 'can only be used with the status FAILED' }],
  ]);
});
