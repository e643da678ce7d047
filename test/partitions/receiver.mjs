// A receiver that answers 500 to the first attempt of every fourth order and 200 to all others, and prints each arrival.
import { createServer } from 'node:http';

createServer((request, response) => {
  const { 'x-webhook-id': webhook, 'x-webhook-attempt': number } = request.headers;
  const attempt = Number(number);
  const isRefused = attempt === 1 && Number(request.url.split('/').at(-1)) % 4 === 0;
  const status = isRefused ? 500 : 200;
  console.log(JSON.stringify({ webhook, attempt, at: Date.now(), status }));
  request.resume().once('end', () => response.writeHead(status).end());
}).listen(Number(process.argv[2] ?? 8080), '0.0.0.0');
