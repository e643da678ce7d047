import { verifyNotification } from 'usher-receiver';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { orderIdOf } from '../../../src/values/identifier.js';
import { TestResult } from '../../../src/webhooks/api/test-notifications.js';
import { diagnosisOf } from '../../../src/webhooks/transport/diagnosis.js';
import { refusingUrl } from '../../support/ports.js';
import { answer, hang, TestReceiver } from '../../support/receiver.js';
import { SHORT_TIMEOUT, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start(SHORT_TIMEOUT);
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

async function result(client: TestClient, body?: object): Promise<TestResult> {
  const answered = await client.call('POST', '/webhooks/test', body);
  expect(answered.status).toBe(200);
  return TestResult.strict().parse(answered.body);
}

const arrivalOf = async (id: string) => {
  const arrival = receiver.arrivals.find(({ headers }) => headers['x-webhook-id'] === id);
  if (!arrival) throw new Error(`no test ${id} arrived`);
  return arrival;
};

describe('POST /webhooks/test', () => {
  test('sends a signed test to the registered Notify URL and returns the result', async () => {
    const client = await usher.client(receiver.url);
    const { id, ...sent } = await result(client);
    expect(sent).toMatchObject({ notifyUrl: receiver.url, outcome: 'delivered', responseStatus: 200, error: null });
    const { headers, rawBody } = await arrivalOf(id);
    expect(headers).toMatchObject({ 'x-webhook-test': 'true', 'x-webhook-attempt': '1' });
    const notification = verifyNotification({ rawBody, headers, secret: client.secret });
    expect(notification).toMatchObject({ eventType: 'NOTIFY_ORDER_COMPLETION', test: true });
    expect(orderIdOf(notification.data.key)).not.toBeNull();
  });

  test('creates no webhook and no order', async () => {
    const client = await usher.client(receiver.url);
    const { id } = await result(client);
    const { data } = JSON.parse(String((await arrivalOf(id)).rawBody)) as { data: { key: string } };
    expect((await client.call('GET', '/webhooks')).body).toEqual({ data: [], nextCursor: null, hasMore: false });
    expect((await client.call('GET', `/webhooks/${id}`)).status).toBe(404);
    expect((await client.call('GET', `/movie-orders/${data.key}`)).status).toBe(404);
  });

  test('sends to the Notify URL in the body, and says what was answered and what to do', async () => {
    const client = await usher.client();
    receiver.behaviour = (response) => void response.writeHead(401).end('wrong signature');
    const shown = await result(client, { notifyUrl: `${receiver.url}/other` });
    expect(shown).toMatchObject({
      notifyUrl: `${receiver.url}/other`,
      outcome: 'refused',
      responseStatus: 401,
      address: '127.0.0.1',
      error: 'the receiver answered 401',
      diagnosis: diagnosisOf('signature-refused'),
      responseSnippet: 'wrong signature',
    });
    receiver.behaviour = answer(200);
  });

  test('reports a receiver that does not answer and one that does not exist', async () => {
    const client = await usher.client();
    receiver.behaviour = hang;
    expect(await result(client, { notifyUrl: receiver.url })).toMatchObject({ outcome: 'timed-out', phase: 'headers' });
    receiver.behaviour = answer(200);
    expect(await result(client, { notifyUrl: await refusingUrl() })).toMatchObject({
      outcome: 'unreachable',
      error: 'connection refused',
      diagnosis: diagnosisOf('connection-refused'),
    });
  });

  test('needs no body, even with a Content-Type header', async () => {
    const client = await usher.client(receiver.url);
    const authorization = `Bearer ${String((await client.token()).body.access_token)}`;
    const headers = { authorization, 'content-type': 'application/json' };
    expect((await usher.request('POST', '/webhooks/test', headers, '')).status).toBe(200);
    expect((await usher.request('POST', '/webhooks/s0000000000000000000000/resend', headers, '')).status).toBe(404);
  });

  test('refuses a Notify URL that registration would refuse, and a request without any Notify URL', async () => {
    const client = await usher.client();
    const metadata = await client.call('POST', '/webhooks/test', { notifyUrl: 'http://169.254.169.254/latest' });
    expect(metadata).toMatchObject({ status: 400, body: { errors: [{ pointer: '#/notifyUrl' }] } });
    expect((await client.call('POST', '/webhooks/test')).status).toBe(422);
  });

  test('accepts ten requests a minute from a client', async () => {
    const client = await usher.client(receiver.url);
    const answers = await Promise.all(Array.from({ length: 12 }, () => client.call('POST', '/webhooks/test', {})));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(2);
    expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});
