import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ClientSecret } from '../../../../src/clients/client.entity.js';
import { SecretRotation } from '../../../../src/clients/secrets/secret-rotation.js';
import { AttemptView } from '../../../../src/webhooks/webhook-view.js';
import { Webhook, WebhookAttempt } from '../../../../src/webhooks/webhook.entity.js';
import { OperatorBrowser } from '../../../support/operator-browser.js';
import { answer, type Arrival, TestReceiver } from '../../../support/receiver.js';
import { TestUsher } from '../../../support/usher.js';
import { ConsolePages } from '../console-pages.js';

let usher: TestUsher;
let receiver: TestReceiver;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const BOOKING = `O'Brien "x" $HOME \\ \`id\` <b> 🎬 שלום\u200f!`;
const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
const decoded = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name] ?? '');

/** The texts of the page that begin like this, as a browser shows them. */
const preformatted = (page: string, beginning: string): string[] =>
  [...page.matchAll(/<pre>([^<]*)<\/pre>/g)]
    .map(([, text = '']) => decoded(text))
    .filter((text) => text.startsWith(beginning));

/** The headers that a request on the page names, as the receiver got them. */
const asReceived = (request: string, { headers }: Arrival) => {
  const [line, ...fields] = request.split('\n');
  expect(line).toBe(`POST ${receiver.url}`);
  const shown = Object.fromEntries(fields.map((field) => field.split(': '))) as Record<string, string>;
  return [shown, Object.fromEntries(Object.keys(shown).map((name) => [name, headers[name.toLowerCase()]]))] as const;
};

/** A notification of two attempts; before the second one the secret was changed. */
async function changedBetween() {
  const client = await usher.client(receiver.url);
  const rotation = usher.running.app.get(SecretRotation, { strict: false });
  receiver.behaviour = (response, arrival, nth) => {
    if (nth > 1) return answer(200)(response, arrival, nth);
    void rotation.rotate(client.id, 3_600_000).then(() => response.writeHead(500).end());
  };
  const key = await client.order();
  await client.complete(key, { bookingId: BOOKING, transactionId: 'TX-1', qrCode: 'QR-1' });
  const { id } = await usher.webhook(key, 'SUCCESS');
  return { client, key, id, path: `/ops/webhooks/${id}`, arrivals: receiver.of(key), rotation };
}

test('the page of a notification shows what each attempt sent, with the signatures that the receiver got, and stores none of them', async () => {
  const { id, path, arrivals } = await changedBetween();
  const requests = preformatted(await pages.get(path), 'POST ');
  expect([requests.length, arrivals.length]).toEqual([2, 2]);
  for (const [index, request] of requests.entries()) {
    const [shown, received] = asReceived(request, arrivals[index]!);
    expect(shown).toEqual(received);
    expect(Object.keys(shown)).toEqual(
      expect.arrayContaining(['Content-Type', 'User-Agent', 'X-Timestamp', 'X-Nonce-Str', 'X-Signature']),
    );
    expect(Object.keys(shown).includes('X-Signature-Next')).toBe(index === 1);
  }
  const stored = JSON.stringify(await usher.dataSource.manager.findBy(WebhookAttempt, { webhookId: id }));
  expect(stored).toContain(String(arrivals[0]!.headers['x-nonce-str']));
  expect(stored).not.toContain(String(arrivals[0]!.headers['x-signature']));
});

test('the curl command of the page sends the same request', async () => {
  const { key, path, arrivals } = await changedBetween();
  const page = await pages.get(path);
  const [, second = ''] = preformatted(page, 'curl ');
  expect(page.split('data-copy="').map((text) => decoded(text.split('"')[0] ?? ''))).toContain(second);
  execFileSync('sh', ['-c', `${second} -s --max-time 20 >/dev/null &`]);
  const [, sent, again] = await receiver.waitFor(key, 3);
  expect(again!.rawBody).toEqual(sent!.rawBody);
  expect(again!.rawBody.toString()).toContain(JSON.stringify(BOOKING));
  const names = ['x-signature', 'x-signature-next', 'x-nonce-str', 'x-timestamp', 'user-agent', 'content-type'];
  expect(names.map((name) => again!.headers[name])).toEqual(names.map((name) => arrivals[1]!.headers[name]));
});

test('a viewer sees no signature and no curl command', async () => {
  const { path, arrivals } = await changedBetween();
  const { text } = await (await OperatorBrowser.of(usher, 'vera', 'viewer')).get(path);
  expect(preformatted(text, 'POST ')[1]).toContain('X-Signature-Next: hidden from viewers');
  for (const name of ['x-signature', 'x-signature-next'])
    expect(text).not.toContain(String(arrivals[1]!.headers[name]));
  expect(text).not.toContain('curl');
});

test('the page says why a request is not shown: its secret has ended, it was not recorded, or it was deleted', async () => {
  const { client, id, path, rotation, arrivals } = await changedBetween();
  const { manager } = usher.dataSource;
  await rotation.finish(client.id);
  const ended = await pages.get(path);
  expect(ended.match(/Its signature cannot be made again, because the secret has ended/g)).toHaveLength(2);
  expect(ended).not.toContain(String(arrivals[0]!.headers['x-signature']));
  await manager.update(WebhookAttempt, { webhookId: id, number: 1 }, { signedWith: null });
  expect(await pages.get(path)).toContain('Not recorded: the attempt is in progress, was cut off, or');
  await manager.delete(WebhookAttempt, { webhookId: id });
  await manager.update(Webhook, { id }, { body: '', notifyUrl: '', purgedAt: 1 });
  expect(await pages.get(path)).toContain('Deleted because of their age, with what was sent.');
});

test('the API shows clients no request of an attempt', async () => {
  const { client, id } = await changedBetween();
  const { status, body } = await client.call('GET', `/webhooks/${id}`);
  expect(status).toBe(200);
  expect(Object.keys((body.attempts as object[])[0] ?? {})).toEqual(Object.keys(AttemptView.shape));
});

test('the page says that a secret cannot be opened', async () => {
  const { client, path } = await changedBetween();
  await usher.dataSource.manager.update(ClientSecret, { clientId: client.id }, { sealed: 'damaged' });
  expect((await pages.get(path)).split('because the secret cannot be opened')).toHaveLength(3);
});
