import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/database/embedded/index.js';
import { type Backend, BACKEND, createBackend, type Settings } from '../support/backend.js';
import { freePort } from '../support/ports.js';
import { usher, usherJson } from '../support/process.js';

let backend: Backend;
/** The queue's server is down. */
let settings: Settings;
let clientId: string;
/** Commands use this one; a start of their own would take much longer. */
let embedded: EmbeddedPostgres | undefined;
beforeAll(async () => {
  backend = await createBackend();
  const { DATABASE_URL = '' } = backend.settings;
  if (BACKEND === 'embedded') embedded = await openEmbeddedPostgres(DATABASE_URL.replace('embedded:', ''), 'own');
  settings = { ...backend.settings, QUEUE_URL: `redis://127.0.0.1:${await freePort()}` };
  const create = ['client', 'create', '--name', 'A client', '--notify-url', 'https://client.example/notify'];
  clientId = (await usherJson<{ client_id: string }>(settings, create)).client_id;
});
afterAll(async () => {
  await embedded?.close();
  await backend.drop();
});

describe('while the queue is down,', () => {
  test.each([
    ['client list'],
    ['client show ID'],
    ['client disable ID'],
    ['client enable ID'],
    ['client set-notify-url ID https://client.example/other'],
    ['client rotate-secret ID'],
    ['client finish-rotation ID'],
    ['webhook list'],
    ['keys rotate'],
    ['purge'],
  ])('"%s" works, because it needs no queue', async (line) => {
    const { code, stderr } = await usher(settings, line.replace('ID', clientId).split(' '));
    expect({ code, stderr: stderr.replace(/^(Encrypting|Purging).*\n/gm, '') }).toEqual({ code: 0, stderr: '' });
  });

  test('"order complete" and "webhook resend" leave their notifications to the retry run', async () => {
    const completion = ['--booking-id', 'B', '--transaction-id', 'T'];
    const { stderr } = await usher(settings, ['order', 'complete', 'unknown', ...completion]);
    expect(stderr).toMatch(/^usher: there is no order/);
    expect(await usherJson(settings, ['webhook', 'resend', '--status', 'FAILED'])).toMatchObject({
      resent: 0,
      refused: 0,
    });
  });

  test('"client erase" works, and leaves the jobs, which find no row', async () => {
    await usherJson(settings, ['client', 'disable', clientId]);
    expect(await usherJson(settings, ['client', 'erase', clientId, '--yes'])).toMatchObject({ client_id: clientId });
  });
});
