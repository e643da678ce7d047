import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { startServer } from '../support/process.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';
import { finished, insertFailed, references, resendsOf } from '../webhooks/undelivered/support.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

test('a resend whose worker is killed is finished by the next worker, and every webhook is resent once', async () => {
  const client = await usher.client(receiver.url);
  const keys = references('killed', 750);
  const ids = await insertFailed(client, keys);
  const { body } = await client.call('POST', '/webhooks/resend', { status: 'FAILED' });
  const worker = { ...usher.settings, USHER_ROLE: 'worker' };
  const first = await startServer(worker);
  await eventually('a batch is done', async () => {
    const view = (await client.call('GET', `/webhook-resends/${String(body.id)}`)).body;
    return Number(view.resent) > 0;
  });
  await first.end('SIGKILL');
  const left = (await client.call('GET', `/webhook-resends/${String(body.id)}`)).body;
  expect(left).toMatchObject({ state: 'RUNNING' });
  const second = await startServer(worker);
  expect(await finished(client.call.bind(client), body.id)).toMatchObject({ resent: keys.length, refused: 0 });
  expect(await resendsOf(usher, client)).toEqual(new Map(ids.map((id) => [id, 1])));
  await second.end();
});
