import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { insertOrders } from '../orders/list/support.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { ONE_ATTEMPT, TestUsher } from '../support/usher.js';
import { blocksOf, Shell } from './shell.js';

const PAGE = 'docs/catching-up.md';
const DAY_MS = 86_400_000;

let usher: TestUsher;
let receiver: TestReceiver;
let shell: Shell;
beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await shell.end();
  await usher.stop();
  receiver.close();
});

/** Names instead of values, and of equal entries one: a document and an answer agree in these. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) {
    const shapes = value.map(shapeOf);
    return shapes.filter((shape, at) => shapes.findIndex((other) => isDeepStrictEqual(shape, other)) === at);
  }
  if (value === null || typeof value !== 'object') return typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
}

test('docs/catching-up.md: its commands lose a notification and get it, answer what it says, and its digests are those of the totals', async () => {
  const client = await usher.client(receiver.url);
  for (const currencyCode of ['MYR', 'KWD', 'MYR'])
    await usher.webhook(await client.completedOrder({ currencyCode }), 'SUCCESS');
  // Of the next day, whose orders the day must not have.
  await insertOrders(usher, client, [Date.now() + DAY_MS]);
  shell = new Shell({
    AUTH_URL: usher.running.url,
    CLIENT_ID: client.id,
    CLIENT_SECRET: client.secret,
    NOTIFY_URL: receiver.url,
  });
  const outputs: string[] = [];
  const documented: Record<string, unknown>[] = [];
  for (const { language, code } of blocksOf(PAGE)) {
    if (code.startsWith('stop_receiver')) receiver.behaviour = answer(500);
    if (code.startsWith('start_receiver')) receiver.behaviour = answer(200);
    if (language === 'sh') outputs.push(await shell.paste(patient(code)));
    if (language !== 'text') continue;
    const printed = JSON.parse(outputs.at(-1) ?? '') as Record<string, unknown>;
    expect(shapeOf(printed)).toEqual(shapeOf(JSON.parse(code)));
    documented.push(printed);
  }
  expect(outputs).toContainEqual('The notification is FAILED.\n');
  const [, totals, , resend] = documented;
  expect(totals?.currencies).toEqual([
    { currencyCode: 'KWD', count: 1, payableAmount: 4_300, keysDigest: expect.any(String) },
    { currencyCode: 'MYR', count: 3, payableAmount: 12_900, keysDigest: expect.any(String) },
  ]);
  const digests = totals?.currencies as { currencyCode: string; keysDigest: string }[];
  expect(outputs).toContainEqual(
    digests.map(({ currencyCode, keysDigest }) => `${currencyCode} ${keysDigest}\n`).join(''),
  );
  expect(resend).toMatchObject({ state: 'FINISHED', selected: 1, resent: 1, refused: 0 });
});

/** A reader needs a moment before the progress is asked for; the test waits until it is finished. */
const patient = (code: string): string =>
  code.replace(
    /^usher_get "\/webhook-resends\S*/m,
    (command) => `until ${command} | grep -q FINISHED; do sleep 0.1; done\n${command}`,
  );
