import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ConnectProxy } from '../../support/connect-proxy.js';
import { TestReceiver } from '../../support/receiver.js';
import { ONE_ATTEMPT, type TestClient, TestUsher } from '../../support/usher.js';

const CREDENTIALS = `Basic ${Buffer.from('cinema:hunter2').toString('base64')}`;

let log = '';
let proxy: ConnectProxy;
let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
beforeAll(async () => {
  [proxy, receiver] = await Promise.all([ConnectProxy.start(), TestReceiver.start()]);
  const settings = { WEBHOOK_PROXY: proxy.url('cinema:hunter2').href, ...ONE_ATTEMPT, LOG_LEVEL: 'trace' };
  usher = await TestUsher.start(settings, { write: (line: string) => void (log += line) });
  client = await usher.client(receiver.url);
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
  proxy.close();
});

test('deliveries and test notifications use the proxy, and its errors are reported without the proxy password', async () => {
  const sendTest = async (): Promise<unknown> => (await client.call('POST', '/webhooks/test')).body;
  const { host } = new URL(receiver.url);

  const delivered = await usher.webhook(await client.completedOrder(), 'SUCCESS');
  expect(delivered.log).toMatchObject([{ address: '127.0.0.1', phase: 'body', responseStatus: 200, error: null }]);
  expect(await sendTest()).toMatchObject({ outcome: 'delivered', responseStatus: 200 });
  expect(proxy.targets).toEqual([host]);
  expect(proxy.asked[0]?.headers['proxy-authorization']).toBe(CREDENTIALS);

  proxy.closeWays();
  proxy.answerTo = () => 'HTTP/1.1 407 Proxy Authentication Required\r\n\r\n';
  const error = 'the proxy answered 407: its credentials are missing or wrong';
  const failed = await usher.webhook(await client.completedOrder(), 'FAILED');
  expect(failed.log).toMatchObject([{ address: '127.0.0.1', phase: 'connect', responseStatus: null, error }]);
  expect(await sendTest()).toMatchObject({ outcome: 'unreachable', phase: 'connect', error });

  expect(receiver.arrivals).toHaveLength(2);
  expect(log).toContain(error);
  expect(log + JSON.stringify(failed)).not.toMatch(/hunter2|Y2luZW1hOmh1bnRlcjI/);
});
