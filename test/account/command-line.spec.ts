import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { usher as run, usherJson } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;

beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
});
afterAll(() => void receiver.close());

test('client show has grants and the state of the secrets, and no secret', async () => {
  const client = await usher.client(receiver.url);
  const shown = await usherJson<object>(usher.settings, ['client', 'show', client.id]);
  expect(shown).toMatchObject({
    client_id: client.id,
    grants: ['client_credentials', 'refresh_token'],
    redirect_uris: [],
    secrets: [{ expires_at: null, signs: 'X-Signature' }],
  });
  expect(JSON.stringify(shown)).not.toContain(client.secret);
});

test('set-notify-url --test changes the URL only if a sample is accepted there', async () => {
  const client = await usher.client('https://earlier.example/notify');
  const command = ['client', 'set-notify-url', client.id, receiver.url, '--test'];
  receiver.behaviour = answer(500);
  const { code, stderr } = await run(usher.settings, command);
  expect([code, stderr]).toEqual([1, expect.stringContaining('the receiver answered 500')]);
  expect((await usher.clients.get(client.id)).notifyUrl).toBe('https://earlier.example/notify');
  receiver.behaviour = answer(200);
  expect(await usherJson(usher.settings, command)).toMatchObject({ notify_url: receiver.url });
});
