import { type AddressInfo, connect, createServer } from 'node:net';
import { atEnd } from './cleanup.js';

/** A proxy in front of a database that counts how often clients wait for it. It ends with its row. */
export class RoundTrips {
  /** Requests of clients, each of which an answer follows. */
  count = 0;
  /** Statements of MySQL that made changes lasting; its server only counts those of all its clients. */
  commits = 0;

  private constructor(private readonly port: number) {}

  static async to(databaseUrl: string): Promise<RoundTrips> {
    const { hostname, port } = new URL(databaseUrl);
    const server = createServer((near) => {
      const far = connect(Number(port), hostname).setNoDelay(true);
      near.setNoDelay(true);
      let isAnswered = true;
      let isOpen = false;
      near.on('data', (sent: Buffer) => {
        if (isAnswered) trips.count += 1;
        isAnswered = false;
        isOpen ||= sent.includes('START TRANSACTION');
        // The header of a packet is in front of its text.
        const commits = sent.includes('COMMIT') || (!isOpen && /^.{5}(INSERT|UPDATE)/s.test(sent.toString('latin1')));
        if (!commits) return;
        trips.commits += 1;
        isOpen = false;
      });
      far.on('data', () => (isAnswered = true));
      near.pipe(far).pipe(near);
      for (const socket of [near, far]) socket.on('error', () => [near, far].forEach((one) => one.destroy()));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const trips = new RoundTrips((server.address() as AddressInfo).port);
    atEnd(() => void server.close());
    return trips;
  }

  /** The URL of the same database through this proxy. */
  through(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.hostname = '127.0.0.1';
    url.port = String(this.port);
    return url.href;
  }
}
