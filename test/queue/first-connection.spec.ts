import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { pipeline } from 'node:stream';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Queue, runMigrations } from 'bullmq';
import pg from 'pg';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/database/embedded/index.js';
import { selectBackendByConnection } from '../../src/queue/postgres-backend.js';
import { postgresSchema, surviveLostConnections } from '../../src/queue/postgres-pool.js';
import { returnFolder, takeFolder } from '../support/embedded-template.js';

const PREFIX = 'first-connection';

let folder: string;
let embedded: EmbeddedPostgres;
/** A Postgres on a port, which answers from `listen()` on. */
let server: Server;
let port: number;

beforeAll(async () => {
  folder = takeFolder();
  embedded = await openEmbeddedPostgres(folder, 'own');
  server = createServer((socket) => {
    if (!('stream' in embedded.connection)) throw new Error('this process owns the database');
    pipeline(socket, embedded.connection.stream(), socket, () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
  server.close();
});
afterAll(async () => {
  server.close();
  await embedded.close();
  returnFolder(folder);
});

test('a queue on Postgres that could not be reached at first takes jobs as soon as it can', async () => {
  const { user, database } = embedded.connection;
  const options = `-c search_path=${postgresSchema(PREFIX)}`;
  const pool = surviveLostConnections(new pg.Pool({ host: '127.0.0.1', port, user, database, options, max: 2 }));
  selectBackendByConnection();
  const queue = new Queue('deliveries', { connection: pool as never, prefix: PREFIX });
  const failures: Error[] = [];
  queue.on('error', (error) => void failures.push(error));
  await expect(queue.add('deliver', {})).rejects.toThrow('ECONNREFUSED');

  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const client = await pool.connect();
  await runMigrations(client, postgresSchema(PREFIX));
  client.release();
  await queue.add('deliver', {});
  expect(await queue.getWaitingCount()).toBe(1);
  await queue.close();
  await pool.end();
});
