import { InvalidNotificationError, signNotification, verifyNotification } from 'usher-receiver';
import { NotFoundException } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { OAuthRequest } from '../../../src/auth/client-authentication/client-authentication.js';
import { SecretRotation } from '../../../src/clients/secrets/secret-rotation.js';
import { CHECKS, type CheckName } from '../../../packages/receiver/dist/tools.js';
import { Certification } from '../../../src/webhooks/certification/certification.schemas.js';
import type { Brand } from '../../../src/options/brand-options.js';
import { ErrorFilter } from '../../../src/server/error.filter.js';
import { Webhook } from '../../../src/webhooks/webhook.entity.js';
import { usher as run } from '../../support/process.js';
import { type Arrival, answer, type Behaviour, hang, redirectTo, TestReceiver } from '../../support/receiver.js';
import { SHORT_TIMEOUT, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
const receivers: TestReceiver[] = [];
beforeAll(async () => {
  usher = await TestUsher.start(SHORT_TIMEOUT);
});
afterAll(async () => {
  await usher.stop();
  for (const receiver of receivers) receiver.close();
});

async function receiverThat(behaviour: Behaviour): Promise<TestReceiver> {
  const receiver = await TestReceiver.start();
  receiver.behaviour = behaviour;
  receivers.push(receiver);
  return receiver;
}

/** A receiver that does what the documents say, with one rule left out or changed. */
type Verify = (arrival: Arrival, secret: string) => void;
const correct: Verify = ({ rawBody, headers }, secret) => void verifyNotification({ rawBody, headers, secret });

async function clientWith(verify: Verify): Promise<{ client: TestClient; receiver: TestReceiver }> {
  const client = await usher.client();
  const receiver = await receiverThat((response, arrival, nth) => {
    try {
      verify(arrival, client.secret);
      answer(200)(response, arrival, nth);
    } catch (error) {
      answer(error instanceof InvalidNotificationError ? 401 : 500)(response, arrival, nth);
    }
  });
  await usher.clients.setNotifyUrl(client.id, receiver.url);
  return { client, receiver };
}

async function certification(client: TestClient): Promise<Certification> {
  const { status, body } = await client.call('POST', '/sandbox/certifications');
  expect(status).toBe(200);
  return Certification.strict().parse(body);
}

const wrongIn = ({ checks }: Certification): CheckName[] =>
  checks.filter(({ passed }) => !passed).map(({ name }) => name);

const ignoringNext: Verify = ({ rawBody, headers }, secret) =>
  correct({ rawBody, headers: { ...headers, 'x-signature-next': undefined } } as never, secret);

/** As Python's json.dumps() does: it writes what is outside of ASCII with escapes. */
const reserialized: Verify = ({ rawBody, headers }, secret) => {
  const text = JSON.stringify(JSON.parse(rawBody.toString())).replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  verifyNotification({ rawBody: Buffer.from(text), headers, secret });
};

const withoutTolerance: Verify = ({ rawBody, headers }, secret) =>
  void verifyNotification({ rawBody, headers, secret, toleranceSeconds: 30_000 });

const onlyHeaders: Verify = ({ headers }) => {
  const age = Date.now() / 1_000 - Number(headers['x-timestamp']);
  if (age > 300) throw new InvalidNotificationError('too-old', 'old');
};

const refusingRepeats = (): Verify => {
  const seen = new Set<string>();
  return (arrival, secret) => {
    correct(arrival, secret);
    if (seen.has(arrival.key)) throw new InvalidNotificationError('replayed', 'again');
    seen.add(arrival.key);
  };
};

describe('POST /sandbox/certifications', () => {
  test('a correct receiver passes; every notification is marked as a test and leaves no row', async () => {
    const { client, receiver } = await clientWith(correct);
    const result = await certification(client);
    expect(result).toMatchObject({ passed: true, notifyUrl: receiver.url });
    expect(result.checks.map(({ name, responseStatus, remedy }) => [name, responseStatus, remedy])).toEqual(
      CHECKS.map((name) => [name, ['altered', 'stale'].includes(name) ? 401 : 200, null]),
    );
    for (const { headers, rawBody } of receiver.arrivals) {
      expect(headers['x-webhook-test']).toBe('true');
      expect(JSON.parse(rawBody.toString())).toMatchObject({ test: true });
    }
    expect(await usher.dataSource.manager.countBy(Webhook, { clientId: client.id })).toBe(0);
    expect((await client.call('GET', '/webhooks')).body.data).toEqual([]);
  });

  test('sends what it says', async () => {
    const { client, receiver } = await clientWith(correct);
    await certification(client);
    const [valid, repeated, unicode, next, altered, stale] = receiver.arrivals.map((arrival) => {
      const { 'x-timestamp': timestamp, 'x-nonce-str': nonce, ...headers } = arrival.headers as Record<string, string>;
      const signature = signNotification(client.secret, timestamp!, nonce!, arrival.rawBody);
      return { ...arrival, headers, timestamp, nonce, signature };
    });
    expect(repeated!.rawBody.equals(valid!.rawBody)).toBe(true);
    expect([valid, repeated].map((one) => one!.headers['x-webhook-attempt'])).toEqual(['1', '2']);
    expect(repeated!.headers['x-webhook-id']).toBe(valid!.headers['x-webhook-id']);
    expect(repeated!.nonce).not.toBe(valid!.nonce);
    for (const one of [valid, repeated, unicode, stale]) expect(one!.headers['x-signature']).toBe(one!.signature);
    expect(unicode!.rawBody.toString()).toMatch(/[^\x00-\x7f]/);
    expect([next!.headers['x-signature'] === next!.signature, next!.headers['x-signature-next']]).toEqual([
      false,
      next!.signature,
    ]);
    expect(altered!.headers['x-signature']).not.toBe(altered!.signature);
    const original = Buffer.from(altered!.rawBody.toString().replace('"payableAmount":4301', '"payableAmount":4300'));
    const { timestamp = '', nonce = '' } = altered!;
    expect(altered!.headers['x-signature']).toBe(signNotification(client.secret, timestamp, nonce, original));
    expect(Date.now() / 1_000 - Number(stale!.timestamp)).toBeGreaterThanOrEqual(3_600);
  });

  const faults: [fault: string, verify: Verify, wrong: CheckName[], remedy: RegExp][] = [
    ['ignores X-Signature-Next', ignoringNext, ['next-secret'], /X-Signature-Next/],
    ['serialises the body again', reserialized, ['unicode'], /bytes of the body/],
    ['does not look at the time', withoutTolerance, ['stale'], /300 seconds/],
    ['does not verify', onlyHeaders, ['altered'], /verify the signature/],
    ['refuses what it knows', refusingRepeats(), ['repeated'], /deduplicate on data\.key/],
    ['accepts everything', () => undefined, ['altered', 'stale'], /verify the signature/],
    [
      'has another secret',
      (arrival) => correct(arrival, 'another'),
      ['valid', 'repeated', 'unicode', 'next-secret'],
      /HMAC-SHA256/,
    ],
    [
      'fails',
      () => {
        throw new Error('a bug');
      },
      [...CHECKS],
      /receiver’s log/,
    ],
  ];
  test.each(faults)('a receiver that %s is told so', async (_fault, verify, wrong, remedy) => {
    const { client } = await clientWith(verify);
    const result = await certification(client);
    expect([result.passed, wrongIn(result)]).toEqual([false, wrong]);
    expect(result.checks.find(({ passed }) => !passed)?.remedy).toMatch(remedy);
  });

  test('a receiver that does not answer gets one notification, one that redirects is told so', async () => {
    const { client, receiver } = await clientWith(correct);
    receiver.behaviour = hang;
    const result = await certification(client);
    expect([wrongIn(result), receiver.arrivals.length]).toEqual([[...CHECKS], 1]);
    expect(result.checks[1]!.reason).toBe('not sent, because the notification "valid" was not answered');
    receiver.behaviour = redirectTo('http://127.0.0.1:1/');
    expect((await certification(client)).checks[0]!.remedy).toMatch(/redirects are not followed/);
  });

  test('only the registered Notify URL, at most three a minute, not during a rotation', async () => {
    const { client, receiver } = await clientWith(correct);
    const certify = (body?: object) => client.call('POST', '/sandbox/certifications', body);
    expect((await certify({ notifyUrl: receiver.url })).body.detail).toBe(
      'notifyUrl: is not known; this route takes no fields',
    );
    for (const _ of [1, 2, 3]) expect((await certify({})).status).toBe(200);
    const limited = await certify();
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^\d+$/)]);
    expect((await (await usher.client()).call('POST', '/sandbox/certifications')).status).toBe(422);
    await usher.running.app.get(SecretRotation, { strict: false }).rotate(client.id, 60_000);
    expect((await certify()).body).toMatchObject({ status: 409, detail: expect.stringContaining('being changed') });
    expect((await usher.request('POST', '/sandbox/certifications', {})).status).toBe(401);
  });
});

describe('usher certify', () => {
  const certify = (url: string, secret: string, ...more: string[]) =>
    run({ CLIENT_SECRET: secret }, ['certify', url, ...more]);

  test('ends with 0 only if everything is right, and prints what is wrong and what to change', async () => {
    const good = await clientWith(correct);
    const passed = await certify(good.receiver.url, good.client.secret);
    expect([passed.code, passed.stderr]).toEqual([0, '']);
    expect(passed.stdout).toMatch(/right {2}valid +the receiver answered 200\n[^]*\n\nThe receiver passed\.\n$/);
    const bad = await clientWith(withoutTolerance);
    const failed = await certify(bad.receiver.url, bad.client.secret);
    expect([failed.code, failed.stderr]).toEqual([1, '']);
    expect(failed.stdout).toMatch(
      /wrong {2}stale +the receiver answered 200 to a notification that was signed an hour ago/,
    );
    expect(failed.stdout).toMatch(
      /expected: a 4xx\n +refuse a notification whose X-Timestamp[^]*failed 1 of 6 checks\.\n$/,
    );
    const asJson = await certify(bad.receiver.url, bad.client.secret, '--json');
    expect([asJson.code, wrongIn(Certification.strict().parse(JSON.parse(asJson.stdout)))]).toEqual([1, ['stale']]);
  });

  test('refuses production, an invalid URL, and a missing secret', async () => {
    const production = await run({ CLIENT_SECRET: 'x', USHER_ENV: 'production' }, ['certify', 'http://127.0.0.1:1/']);
    expect([production.code, production.stderr]).toEqual([1, expect.stringMatching(/for the sandbox only/)]);
    expect((await certify('here', 'x')).stderr).toMatch(/^usher: the url here is invalid; use a URL like/);
    expect((await certify('http://127.0.0.1:4000/', '')).stderr).toMatch(/client secret is missing/);
  });
});

test('a path below /sandbox is answered outside of a sandbox with where it exists, and in a sandbox as any other', async () => {
  const detail = 'this path does not exist';
  expect((await usher.request('POST', '/sandbox/else', {})).body).toMatchObject({ status: 404, detail });
  let outside = '';
  const response = { header: () => {}, status: () => {}, send: (body: unknown) => void (outside += String(body)) };
  const request = { method: 'POST', url: '/sandbox/certifications', headers: {} } as OAuthRequest;
  new ErrorFilter({} as Brand, [], null, null).answer(new NotFoundException(), request, response);
  expect(JSON.parse(outside)).toMatchObject({ detail: `${detail}; paths below /sandbox exist only in a sandbox` });
});
