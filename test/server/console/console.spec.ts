import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import type { Queue } from 'bullmq';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { PURGE_QUEUE } from '../../../src/retention/purge.js';
import { eventually } from '../../support/eventually.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { basic, type TestClient, TestUsher } from '../../support/usher.js';
import { ConsolePages, HOSTILE } from './console-pages.js';

const OPERATOR = { authorization: basic('ops', 'ops') };
const FORM = { ...OPERATOR, 'content-type': 'application/x-www-form-urlencoded' };
let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start({ WEBHOOK_MAX_ATTEMPTS: '2' });
  receiver = await TestReceiver.start();
  client = await usher.client(`${receiver.url}?q=<b>'"`);
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const purges = (): Queue => usher.running.app.get<Queue>(getQueueToken(PURGE_QUEUE), { strict: false });

async function get(path: string): Promise<string> {
  const { status, body } = await usher.request('GET', path, OPERATOR);
  expect({ path, status }).toEqual({ path, status: 200 });
  return String(body.text);
}

async function failedWebhook() {
  receiver.behaviour = (response) => void response.writeHead(500).end(HOSTILE);
  const webhook = await usher.webhook(await client.completedOrder(), 'FAILED');
  receiver.behaviour = answer(200);
  return webhook;
}

/** Sends the same request as a browser for the resend button. */
async function pressResend(id: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${usher.running.url}/ops/webhooks/${id}/resend`, {
    method: 'POST',
    headers: { ...FORM, origin: usher.running.url, 'sec-fetch-site': 'same-origin', ...headers },
    body: '',
    redirect: 'manual',
  });
  return { status: response.status, location: response.headers.get('location'), text: await response.text() };
}

describe('/ops', () => {
  test('says at the top that a queue is paused, by whom, or limited', async () => {
    expect(await get('/ops')).not.toContain('Its jobs wait.');
    for (const queue of ['usher-webhook', 'usher-sandbox-operator'])
      await usher.request('PUT', `/ops/queues/api/queues/${queue}/pause`, OPERATOR);
    await purges().setGlobalConcurrency(1);
    await purges().setGlobalRateLimit(2, 3_000);
    const text = await eventually('the page shows it', async () => {
      const page = await get('/ops');
      return page.includes('Its jobs wait.') ? page : null;
    });
    expect(text).toMatch(
      /usher-webhook<\/a> is paused by operator:ops, <time [^>]*>.+<\/time\s*>\.<\/strong>\s+Its jobs wait\./,
    );
    expect(text).toMatch(
      /usher-purge<\/a> is limited: at most 1 at a time, at most 2 in 3000 ms\.<\/strong>\s+Its jobs wait\./,
    );
    const { body } = await usher.request('GET', '/ops/metrics', OPERATOR);
    for (const [queue, paused, limited] of [
      ['webhook', 1, 0],
      ['retry-run', 0, 0],
      ['purge', 0, 1],
      ['sandbox-operator', 1, 0],
    ] as const) {
      expect(body.text).toContain(`usher_queue_paused{queue="usher-${queue}"} ${paused}\n`);
      expect(body.text).toContain(`usher_queue_limited{queue="usher-${queue}"} ${limited}\n`);
    }
    for (const path of ['/ops', '/ops/health'])
      expect(await get(path)).toMatch(/action="\/ops\/resume-queue"[^]*?value="usher-webhook"/);
    for (const queue of ['usher-webhook', 'usher-sandbox-operator']) {
      const { status, location } = await pages.post('/ops/resume-queue', { queue });
      expect([status, location]).toEqual([303, '/ops?done=resume-queue']);
    }
    expect(await usher.queue.isPaused()).toBe(false);
    // At once, although the page remembers the state of the queues.
    expect(await get('/ops')).not.toContain('is paused');
    const audit = usher.running.app.get(AuditLog, { strict: false });
    expect((await audit.list({ subject: 'queue:usher-webhook', limit: 1 }))[0]).toMatchObject({
      action: 'queue.resumed',
      actor: 'operator:ops',
    });
    expect((await pages.post('/ops/resume-queue', { queue: 'other' })).status).toBe(404);
    expect(await audit.list({ subject: 'queue:other' })).toEqual([]);
    await purges().removeGlobalConcurrency();
    await purges().removeGlobalRateLimit();
  });

  test('opens the one webhook that has this order or id', async () => {
    const { id, referenceId } = await failedWebhook();
    for (const query of [id, referenceId, ` ${id} `])
      expect(await get(`/ops?q=${encodeURIComponent(query)}`)).toContain(`<h1>Notification ${id}</h1>`);
    for (const query of ['none', HOSTILE, '\0', '%', "' OR 1=1 --", 'é'.repeat(300)])
      expect(await get(`/ops?q=${encodeURIComponent(query)}`)).toContain('Nothing was found.');
    expect(await get('/ops?q=a&q=b')).toContain('<h1>Overview</h1>');
  });

  test('runs only the script of the console, loads nothing from elsewhere, and escapes all outside data', async () => {
    const { id } = await failedWebhook();
    for (const path of ['/ops', `/ops/webhooks/${id}`, `/ops?q=${encodeURIComponent(`">${HOSTILE}`)}`]) {
      const { headers, body } = await usher.request('GET', path, OPERATOR);
      const text = String(body.text);
      const scripts = [...text.matchAll(/<script[^]*?<\/script>/g)].map(([script]) => script);
      expect(scripts).toEqual([expect.stringMatching(/^<script src="\/ops\/console\.js\?[\w-]+" defer><\/script>$/)]);
      expect(text.replace(scripts.join(''), '')).not.toMatch(/<script|<img|<b>|<style| style="/i);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toContain("default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'");
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    }
  });
});

test('style and script have addresses of their own content, which browsers keep without asking, also before a sign-in', async () => {
  const { url } = usher.running;
  const signIn = await (await fetch(`${url}/ops/sign-in`)).text();
  expect(signIn).toMatch(/\/ops\/console\.css\?/);
  const page = await get('/ops');
  const addresses = [...page.matchAll(/(?:href|src)="(\/ops\/console\.[^"]+)"/g)].map(([, address = '']) => address);
  expect(addresses).toHaveLength(2);
  for (const address of addresses) {
    const kept = await fetch(url + address);
    expect([kept.status, kept.headers.get('content-encoding')]).toEqual([200, 'gzip']);
    expect(kept.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    const etag = String(kept.headers.get('etag'));
    expect((await fetch(url + address, { headers: { 'if-none-match': etag } })).status).toBe(304);
    // A page of another version asks for it.
    const other = await fetch(url + address.replace(/\?.*/, '?other'));
    expect([other.status, other.headers.get('cache-control')]).toEqual([200, 'no-cache']);
  }
});

test('a refresh gets what is below the heading, compressed, and nothing if it is the same', async () => {
  const live = { ...OPERATOR, accept: 'text/html', 'usher-live': '1' };
  const path = '/ops/notifications';
  const first = await fetch(usher.running.url + path, { headers: live });
  expect(first.headers.get('content-encoding')).toBe('gzip');
  expect(await first.text()).toMatch(/^<div class="body">\s*<h1>Notifications<\/h1>[^]*<\/div>$/);
  // A delivery of an earlier test may change the page between two requests; it is the same in one of the next pairs.
  let etag = String(first.headers.get('etag'));
  await eventually('the page is the same twice', async () => {
    const next = await fetch(usher.running.url + path, { headers: { ...live, 'if-none-match': etag } });
    etag = String(next.headers.get('etag'));
    return next.status === 304;
  });
  const again = { ...live, 'if-none-match': etag };
  await failedWebhook();
  expect((await fetch(usher.running.url + path, { headers: again })).status).toBe(200);
});

describe('/ops/webhooks/:id', () => {
  test('shows every attempt: time, phase reached, address and response', async () => {
    const { id, log } = await failedWebhook();
    const text = await get(`/ops/webhooks/${id}`);
    for (const { startedAt, address } of log) {
      expect(text).toContain(`<time datetime="${startedAt}" title="${startedAt}"`);
      expect(text).toMatch(new RegExp(`status 500 · \\d+ ms · reached body · ${address}`));
    }
    expect(text.match(/the receiver answered 500/g)).toHaveLength(2);
    expect(text).toContain('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;');
  });

  test('answers 404 to an unknown id', async () => {
    for (const id of ['none', '%00', '%F0%9F%98%80']) {
      expect((await usher.request('GET', `/ops/webhooks/${id}`, OPERATOR)).status).toBe(404);
      expect((await pressResend(id)).status).toBe(404);
    }
  });

  test('a FAILED webhook can be resent once by its button', async () => {
    const { id, referenceId } = await failedWebhook();
    expect(await get(`/ops/webhooks/${id}`)).toContain(`action="/ops/webhooks/${id}/resend"`);
    expect((await pressResend(id, { origin: 'https://elsewhere.example' })).status).toBe(403);
    expect((await pressResend(id, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    const { status, location } = await pressResend(id);
    expect(status).toBe(303);
    const resent = await usher.webhook(referenceId, 'SUCCESS');
    expect(location).toBe(`/ops/webhooks/${resent.id}`);
    const shown = await get(location!);
    expect(shown).toContain(`<a href="/ops/webhooks/${id}"`);
    expect(shown).not.toContain('Send again</button>');
    const again = await pressResend(id);
    expect(again.status).toBe(409);
    expect(again.text).toContain('of the same reference is already SUCCESS');
    expect(receiver.of(referenceId)).toHaveLength(3);
  });
});
