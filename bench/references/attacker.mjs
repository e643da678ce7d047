// An attacker, in a process of its own so that it does not slow down the client that is measured. It gets an attack as a message,
// carries it out for `seconds` and answers with a message.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';

const SOCKETS = 48;
const PIPELINED = 10;

const agent = new Agent({ connections: 256, pipelining: 1 });

/** One address of one network each. */
const addressOf = (n) => `2001:db8:${(n % 60_000).toString(16)}::1`;
let sent = 0;

const KINDS = {
  /** `rate` requests a second, all from one address or each from its own. */
  async paced({ url, paths, rate, seconds, headers = {}, isOneAddress = false }) {
    const calls = [];
    const until = performance.now() + seconds * 1_000;
    for (let dueAt = performance.now(); dueAt < until; dueAt += 1_000 / rate) {
      await sleep(Math.max(0, dueAt - performance.now()));
      const n = sent++;
      const own = { 'x-forwarded-for': addressOf(isOneAddress ? 0 : n), accept: 'text/html' };
      calls.push(send(url + paths[n % paths.length], { headers: { ...own, ...headers } }));
    }
    await Promise.all(calls);
  },
  /** Pipelined requests whose answers are not read. */
  async unread({ url, path, seconds }) {
    const { hostname, port } = new URL(url);
    const head = `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nX-Forwarded-For: ${addressOf(0)}\r\n\r\n`;
    const sockets = Array.from({ length: SOCKETS }, () => {
      const socket = connect(Number(port), hostname).on('error', () => undefined);
      socket.write(head.repeat(PIPELINED));
      return socket.pause();
    });
    await sleep(seconds * 1_000);
    for (const socket of sockets) socket.destroy();
  },
  /** Wrong passwords for invented names, all at once, each from an address of its own. */
  async guesses({ url, path, count, seconds }) {
    const guess = async (n) => {
      const from = { 'x-forwarded-for': addressOf(n), accept: 'text/html' };
      const page = await send(url + path, { headers: from });
      const cookie = page.cookies.map((line) => line.split(';')[0]).join('; ');
      const [, form = ''] = /name="form" value="([^"]*)"/.exec(page.text) ?? [];
      const body = new URLSearchParams({ form, name: `nobody-${n}`, password: 'not the password' }).toString();
      const type = { 'content-type': 'application/x-www-form-urlencoded', origin: url, cookie };
      await send(url + path, { method: 'POST', body, headers: { ...from, ...type } });
    };
    const guesses = Array.from({ length: count }, () => guess(sent++));
    await Promise.race([Promise.allSettled(guesses), sleep(seconds * 1_000)]);
  },
};

async function send(url, options) {
  const { headers, body } = await request(url, { dispatcher: agent, ...options });
  const cookies = [headers['set-cookie'] ?? []].flat();
  if (!String(headers['content-type']).startsWith('text/html')) {
    await body.dump();
    return { cookies, text: '' };
  }
  return { cookies, text: await body.text() };
}

process.on('message', async ({ kind, ...attack }) => {
  await KINDS[kind](attack).catch(() => undefined);
  process.send('done');
});
console.log('http://127.0.0.1:0');
