import { afterEach, describe, expect, test } from '@jest/globals';
import { Receivers, flood, notification } from './receivers.js';

const receivers = new Receivers();
afterEach(() => receivers.close());

const OK = 'HTTP/1.1 200 OK\r\n';

const send = (port: number): ReturnType<ReturnType<Receivers['sender']>['send']> =>
  receivers.sender().send(notification(`http://127.0.0.1:${port}/`));

describe('a 100 Continue that was not requested', () => {
  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
  const FINAL = `${OK}Content-Length: 2\r\n\r\nok`;
  const delivered = { kind: 'delivered', status: 200, snippet: 'ok' };

  test.each([
    ['alone', CONTINUE],
    ['with headers', 'HTTP/1.1 100 Continue\r\nServer: old\r\n\r\n'],
    ['twice', CONTINUE + CONTINUE],
    ['after a 103', `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${CONTINUE}`],
  ])('%s is ignored', async (_name, before) => {
    expect(await send(await receivers.answering(before + FINAL))).toMatchObject(delivered);
  });

  test('that arrives byte by byte is ignored', async () => {
    const port = await receivers.raw((socket) => {
      const bytes = [...(CONTINUE + FINAL)];
      const next = (): void => void socket.write(bytes.shift() ?? '', () => bytes.length > 0 && setImmediate(next));
      socket.setNoDelay(true).once('data', next);
    });
    expect(await send(port)).toMatchObject(delivered);
  });

  test('is ignored on a connection that is used again', async () => {
    let connections = 0;
    const port = await receivers.raw((socket) => {
      connections += 1;
      socket.on('data', () => socket.write(CONTINUE + FINAL));
    });
    const sender = receivers.sender();
    for (let n = 0; n < 3; n += 1)
      expect(await sender.send(notification(`http://127.0.0.1:${port}/`))).toMatchObject(delivered);
    expect(connections).toBe(1);
  });

  test('does not change the text of a body', async () => {
    const port = await receivers.answering(`${CONTINUE}${OK}Content-Length: 12\r\n\r\nHTTP/1.1 100`);
    expect(await send(port)).toMatchObject({ kind: 'delivered', snippet: 'HTTP/1.1 100' });
  });

  test('before a refusal is refused, and without a final response it is unreachable', async () => {
    const refusing = await receivers.answering(`${CONTINUE}HTTP/1.1 500 Error\r\nContent-Length: 0\r\n\r\n`);
    expect(await send(refusing)).toMatchObject({ kind: 'refused', status: 500 });
    const reason = 'connection closed before an answer';
    expect(await send(await receivers.answering(CONTINUE))).toMatchObject({ kind: 'unreachable', reason });
  });

  test('without end does not go on for ever', async () => {
    const port = await receivers.answering('', (socket) => flood(socket, CONTINUE));
    expect(await send(port)).toMatchObject({ kind: 'unreachable', reason: 'too many informational responses' });
  });
});
