import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ANY_WEBHOOK } from '../../../../src/webhooks/search/webhook-criteria.js';
import { WebhookResend } from '../../../../src/webhooks/undelivered/webhook-resend.entity.js';
import { WebhookResends } from '../../../../src/webhooks/undelivered/webhook-resends.js';
import { eventually } from '../../../support/eventually.js';
import { answer, TestReceiver } from '../../../support/receiver.js';
import { ONE_ATTEMPT, TestUsher } from '../../../support/usher.js';
import { insertFailed, references } from '../../../webhooks/undelivered/support.js';
import { ConsolePages, listedIds, selectionOf, tile, tileOf } from '../console-pages.js';

let usher: TestUsher;
let receiver: TestReceiver;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

/** What makes a page refresh itself. */
const LIVE = '<p class="live"';

test('the page of a resend shows how many arrived and how many failed again until the last one has ended, and counts each once', async () => {
  const client = await usher.client(receiver.url);
  const failed = await insertFailed(client, references('again', 21), 2);
  const filter = { status: 'UNRESOLVED', client: client.id, confirmed: 'yes' };
  const names = ['Selected', 'Sent again', 'Delivered', 'Failed again', 'Pending', 'Left out'];
  /** Sends all that needs somebody again. Returns the path of the request and its page when no notification is pending. */
  const resendAll = async (behaviour: TestReceiver['behaviour']) => {
    receiver.behaviour = behaviour;
    const { location } = await pages.post('/ops/notifications/resend-all', filter);
    const text = await eventually(`${location} has ended`, async () => {
      const page = await pages.finished(location);
      return tile(page, 'Pending') === '0' ? page : null;
    });
    return { location, text, tiles: names.map((name) => tileOf(text, name)) };
  };
  const plain = (...figures: string[]) => figures.map((figure) => ['', figure]);
  const first = await resendAll(answer(500));
  expect(first.tiles).toEqual([...plain('21', '21', '0'), ['bad', '21'], ...plain('0', '0')]);
  // Before, those that were sent again earlier counted as left out: 42 of 21.
  const second = await resendAll(answer(500));
  expect(second.tiles).toEqual([...plain('21', '21', '0'), ['bad', '21'], ...plain('0', '0')]);

  const [, link = ''] = /Failed again<\/dt>\s*<dd class="bad">\s*<a\s+href="([^"]*)"/.exec(second.text) ?? [];
  const listed = listedIds(await pages.get(link.replaceAll('&amp;', '&')));
  expect(listed.sort()).toEqual((await pages.listed('UNRESOLVED', client.id)).sort());
  expect(listed).toHaveLength(21);

  // The same selection again: each has a newer one now.
  const { location } = await pages.post('/ops/notifications/resend', selectionOf(failed.slice(0, 3)));
  const refused = await pages.finished(location);
  expect(tile(refused, 'Left out')).toBe('3');
  expect(refused).toMatch(/Left out, a later one failed<\/dt>\s*<dd>3</);

  const held: (() => void)[] = [];
  receiver.behaviour = (response) => void held.push(() => response.writeHead(200).end());
  const { location: last } = await pages.post('/ops/notifications/resend-all', filter);
  const waiting = await pages.finished(last);
  expect([tile(waiting, 'Sent again'), tile(waiting, 'Pending'), waiting.includes(LIVE)]).toEqual(['21', '21', true]);
  receiver.behaviour = answer(200);
  for (const release of held) release();
  const ended = await eventually('all are delivered', async () => {
    const page = await pages.get(last);
    return tile(page, 'Delivered') === '21' ? page : null;
  });
  expect([tileOf(ended, 'Delivered'), tile(ended, 'Pending'), ended.includes(LIVE)]).toEqual([
    ['good', '21'],
    '0',
    false,
  ]);
  expect(await pages.listed('UNRESOLVED', client.id)).toEqual([]);
});

test('the page of a resend names no number of selected notifications that nobody has counted', async () => {
  const resends = usher.running.app.get(WebhookResends, { strict: false });
  const id = await resends.startFor({ ...ANY_WEBHOOK, clientId: (await usher.client()).id });
  // As if more than 10,000 had been looked at, of which few fit.
  await usher.dataSource.manager.update(WebhookResend, { id }, { selected: null });
  const text = await pages.finished(`/ops/resends/${id}`);
  expect(text).toMatch(/<dt>Selected<\/dt>\s*<dd class="">not counted<\/dd>/);
});
