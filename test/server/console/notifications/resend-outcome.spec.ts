import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../../support/eventually.js';
import { answer, TestReceiver } from '../../../support/receiver.js';
import { ONE_ATTEMPT, TestUsher } from '../../../support/usher.js';
import { insertFailed, references } from '../../../webhooks/undelivered/support.js';
import { ConsolePages, listedIds } from '../console-pages.js';

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

const select = (ids: string[]) => Object.fromEntries(ids.map((id) => [`select.${id}`, 'yes']));
const lists = async (status: string, client: string) =>
  listedIds(await pages.get(`/ops/notifications?status=${status}&client=${client}`));

/** The page of a request to resend, once it is finished. */
const finished = (path: string): Promise<string> =>
  eventually(`${path} is finished`, async () => {
    const text = await pages.get(path);
    return text.includes('>finished</span>') ? text : null;
  });

/** What makes a page refresh itself. */
const LIVE = '<p class="live"';

/** The figure of a tile, and how it stands out. */
const tileOf = (text: string, name: string): (string | undefined)[] =>
  new RegExp(`<dt>${name}</dt>\\s*<dd class="([a-z]*)">(?:<a [^>]*>)?(\\d+)`).exec(text)?.slice(1) ?? [];
const tile = (text: string, name: string): string | undefined => tileOf(text, name)[1];

test('shows how many arrived and how many failed again, until the last one has ended, and counts each once', async () => {
  const client = await usher.client(receiver.url);
  const failed = await insertFailed(client, references('again', 21), 2);
  const filter = { status: 'UNRESOLVED', client: client.id, confirmed: 'yes' };
  const names = ['Selected', 'Sent again', 'Delivered', 'Failed again', 'Pending', 'Left out'];
  /** Sends all that needs somebody again. Returns the path of the request and its page when no notification is pending. */
  const resendAll = async (behaviour: TestReceiver['behaviour']) => {
    receiver.behaviour = behaviour;
    const { location } = await pages.post('/ops/notifications/resend-all', filter);
    const text = await eventually(`${location} has ended`, async () => {
      const page = await finished(location);
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
  expect(listed.sort()).toEqual((await lists('UNRESOLVED', client.id)).sort());
  expect(listed).toHaveLength(21);

  // The same selection again: each has a newer one now.
  const { location } = await pages.post('/ops/notifications/resend', select(failed.slice(0, 3)));
  const refused = await finished(location);
  expect(tile(refused, 'Left out')).toBe('3');
  expect(refused).toMatch(/Left out, a later one failed<\/dt>\s*<dd>3</);

  const held: (() => void)[] = [];
  receiver.behaviour = (response) => void held.push(() => response.writeHead(200).end());
  const { location: last } = await pages.post('/ops/notifications/resend-all', filter);
  const waiting = await finished(last);
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
  expect(await lists('UNRESOLVED', client.id)).toEqual([]);
});
