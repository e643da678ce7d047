// The least that a queue does: a BullMQ worker that POSTs, with the number of requests at a time that Usher has. It sends
// the headers and the body of a notification; in both, the text ORDER_KEY is replaced by what the job names.
import { createServer } from 'node:http';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'undici';

const { REDIS_URL, KEY_PREFIX, NOTIFICATION, CONCURRENCY } = process.env;
const { url, headers, body, key } = JSON.parse(NOTIFICATION);
const { origin, pathname } = new URL(url);
const pool = new Pool(origin, { connections: Number(CONCURRENCY), pipelining: 1 });

const deliver = async ({ data }) => {
  const response = await pool.request({ method: 'POST', path: pathname, headers, body: body.replace(key, data.key) });
  await response.body.dump();
  if (response.statusCode >= 300) throw new Error(`answered ${response.statusCode}`);
};
const connection = new Redis(REDIS_URL, { maxRetriesPerRequest: null });
const worker = new Worker('bare', deliver, { connection, prefix: KEY_PREFIX, concurrency: Number(CONCURRENCY) });
await worker.waitUntilReady();
// Says only that it is ready.
const server = createServer().listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.once('SIGTERM', () => process.exit());
