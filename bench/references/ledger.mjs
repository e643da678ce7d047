// The least that a notification costs which is committed before it is sent. As "api" it is an HTTP server: POST with a JSON
// body { key } INSERTs a row and adds its job. As "worker" it SELECTs the body, signs, POSTs and UPDATEs.
import { createHmac, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { Queue, runMigrations, Worker } from 'bullmq';
import fastify from 'fastify';
import { Redis } from 'ioredis';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { Pool } from 'undici';
import { selectBackendByConnection } from '../../dist/queue/postgres-backend.js';

const { DATABASE_URL, QUEUE_URL, QUEUE_PREFIX, NOTIFICATION, CONCURRENCY, LEDGER_ROLE } = process.env;
const { url, body, key } = JSON.parse(NOTIFICATION);
const isPostgres = DATABASE_URL.startsWith('postgres');
const pool = isPostgres ? new pg.Pool({ connectionString: DATABASE_URL }) : mysql.createPool(DATABASE_URL);
const query = async (text, values) => {
  let count = 0;
  const { rows, 0: found } = await pool.query(
    isPostgres ? text.replace(/\?/g, () => `$${(count += 1)}`) : text,
    values,
  );
  return rows ?? found;
};

selectBackendByConnection();
const connection = QUEUE_URL
  ? new Redis(QUEUE_URL, { maxRetriesPerRequest: null })
  : new pg.Pool({ connectionString: DATABASE_URL, options: '-c search_path=ledger' });
const options = { connection, prefix: QUEUE_PREFIX ?? 'ledger' };
const kept = QUEUE_URL ? { count: 1_000 } : { age: 3_600 };
const finished = { attempts: 5, removeOnComplete: kept, removeOnFail: kept };

async function serve() {
  await query(`CREATE TABLE IF NOT EXISTS ledger (id varchar(64) PRIMARY KEY, url varchar(2000) NOT NULL, body text NOT NULL,
    status varchar(10) NOT NULL, attempts int NOT NULL, created_at bigint NOT NULL, finished_at bigint)`);
  if (!QUEUE_URL) {
    const client = await connection.connect();
    await runMigrations(client, 'ledger');
    client.release();
  }
  const queue = new Queue('ledger', options);
  const insert = 'INSERT INTO ledger (id, url, body, status, attempts, created_at) VALUES (?, ?, ?, ?, ?, ?)';
  const server = fastify();
  server.post('/complete', async (request) => {
    const id = request.body.key;
    await query(insert, [id, url, body.replace(key, id), 'PENDING', 0, Date.now()]);
    await queue.add('deliver', { id }, { ...finished, jobId: id });
    return {};
  });
  console.log(await server.listen({ port: 0, host: '127.0.0.1' }));
}

async function work() {
  const { origin, pathname } = new URL(url);
  const receiver = new Pool(origin, { connections: Number(CONCURRENCY), pipelining: 1 });
  const secret = randomBytes(32);
  const deliver = async ({ data: { id } }) => {
    const [row] = await query('SELECT url, body FROM ledger WHERE id = ?', [id]);
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const signature = createHmac('sha256', secret).update(`${timestamp}.${row.body}`).digest('base64');
    const headers = { 'content-type': 'application/json', 'x-timestamp': timestamp, 'x-signature': signature };
    const response = await receiver.request({ method: 'POST', path: pathname, headers, body: row.body });
    await response.body.dump();
    const changes = [response.statusCode < 300 ? 'SUCCESS' : 'FAILED', Date.now(), id];
    await query('UPDATE ledger SET status = ?, attempts = attempts + 1, finished_at = ? WHERE id = ?', changes);
  };
  const worker = new Worker('ledger', deliver, { ...options, concurrency: Number(CONCURRENCY) });
  await worker.waitUntilReady();
  // Says only that it is ready.
  const server = createServer().listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
}

await (LEDGER_ROLE === 'api' ? serve() : work());
process.once('SIGTERM', () => process.exit());
