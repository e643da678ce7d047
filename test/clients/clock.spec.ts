import { expect, test } from '@jest/globals';
import { createBackend } from '../support/backend.js';
import { startServer, usherJson } from '../support/process.js';
import { basic } from '../support/usher.js';

/** Sets the clock of a process two days ahead. */
const CLOCK_AHEAD = ['--import', 'data:text/javascript,const now=Date.now;Date.now=()=>now()+172800000;'];

test('a server with a wrong clock uses the database clock for the expiry of an old secret', async () => {
  const { settings, drop } = await createBackend();
  const created = await usherJson<{ client_id: string; client_secret: string }>(settings, [
    'client',
    'create',
    '--name',
    'Clock',
  ]);
  const server = await startServer({ ...settings, LOG_LEVEL: 'silent' }, CLOCK_AHEAD);
  try {
    const statusOf = async (secret: string): Promise<number> => {
      const headers = { authorization: basic(created.client_id, secret), 'content-type': 'application/json' };
      const body = JSON.stringify({ grant_type: 'client_credentials' });
      return (await fetch(`${server.url}/auth/token`, { method: 'POST', headers, body })).status;
    };
    await usherJson(settings, ['client', 'rotate-secret', created.client_id, '--overlap', '1h']);
    expect(await statusOf(created.client_secret)).toBe(200);
    await usherJson(settings, ['client', 'finish-rotation', created.client_id]);
    expect(await statusOf(created.client_secret)).toBe(401);
  } finally {
    await server.end();
    await drop();
  }
});
