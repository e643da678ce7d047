// An HTTP server that only adds a job to BullMQ: POST with a JSON body { key } answers when the job is in the queue.
import { Queue } from 'bullmq';
import fastify from 'fastify';
import { Redis } from 'ioredis';

const { REDIS_URL, KEY_PREFIX } = process.env;
const queue = new Queue('bare', { connection: new Redis(REDIS_URL), prefix: KEY_PREFIX });
const finished = { removeOnComplete: { count: 1_000 }, removeOnFail: { count: 1_000 } };

const server = fastify();
server.post('/complete', async ({ body }) => {
  await queue.add('deliver', { key: body.key }, finished);
  return {};
});
console.log(await server.listen({ port: 0, host: '127.0.0.1' }));
process.once('SIGTERM', () => process.exit());
