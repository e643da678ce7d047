// The least that a delivery costs: a loop that only POSTs. GET /COUNT sends so many notifications and then answers.
import { createServer } from 'node:http';
import { Pool } from 'undici';

const { NOTIFICATION, CONCURRENCY } = process.env;
const { url, headers, body } = JSON.parse(NOTIFICATION);
const { origin, pathname } = new URL(url);
const pool = new Pool(origin, { connections: Number(CONCURRENCY), pipelining: 1 });

const send = async (count) => {
  let left = count;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const response = await pool.request({ method: 'POST', path: pathname, headers, body });
      await response.body.dump();
    }
  };
  await Promise.all(Array.from({ length: Number(CONCURRENCY) }, lane));
};
const server = createServer((request, response) => {
  send(Number(request.url.slice(1))).then(() => response.end('{}'));
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.once('SIGTERM', () => process.exit());
