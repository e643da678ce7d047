import { verifyNotification } from 'usher-receiver';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { answer, TestReceiver } from '../../support/receiver.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
});
afterEach(() => {
  receiver.behaviour = answer(200);
});
afterAll(() => void receiver.close());

describe('a completed order', () => {
  test('is notified once, signed with the client secret', async () => {
    const key = await client.completedOrder();
    const [arrival] = await receiver.waitFor(key);
    const { data } = verifyNotification({
      rawBody: arrival!.rawBody,
      headers: arrival!.headers,
      secret: client.secret,
    });
    expect(data.key).toBe(key);
    const webhook = await usher.webhook(key, 'SUCCESS');
    expect(webhook.attemptCount).toBe(1);
  });
});
