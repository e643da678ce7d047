import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { type Notification, verifyNotification } from 'nest-usher/receiver';

interface Answer {
  status: number;
  // The tests assert its shape.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

/** A client of the API, with a server for its notifications. */
export class ApiClient {
  secret: string;
  token: string;
  readonly notifications: Notification[] = [];
  private readonly server = createServer((request, response) => {
    void this.receive(request).finally(() => response.end());
  });

  constructor(private readonly url: string) {}

  /** Returns its Notify URL. */
  async listen(): Promise<string> {
    await once(this.server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async nextNotification(): Promise<Notification> {
    const [notification] = (await once(this.server, 'notification')) as [Notification];
    return notification;
  }

  async call(method: 'GET' | 'POST', path: string, body?: object): Promise<Answer> {
    const response = await fetch(`${this.url}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, ...(body && { 'content-type': 'application/json' }) },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: text && JSON.parse(text) };
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private async receive(request: IncomingMessage): Promise<void> {
    const rawBody = await buffer(request);
    const notification = verifyNotification({ rawBody, headers: request.headers, secret: this.secret });
    this.notifications.push(notification);
    this.server.emit('notification', notification);
  }
}
