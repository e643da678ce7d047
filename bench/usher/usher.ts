import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { type BackendName, newBackend } from '../harness/backend.js';
import { built, ServerProcess, type Settings } from '../harness/server-process.js';

/** Refuses connections at once. */
const NOWHERE = 'http://127.0.0.1:1024/notify';

/** A new, migrated backend with one client, and processes of the built Usher on it. */
export class BenchUsher {
  private constructor(
    readonly settings: Settings,
    private readonly client: { id: string; secret: string },
  ) {}

  static async prepare(backend: BackendName, notifyUrl = NOWHERE): Promise<BenchUsher> {
    const settings = { ...COMMON, ...(await newBackend(backend)) };
    if (backend !== 'embedded') command(settings, ['migrate']);
    const created = command(settings, ['client', 'create', '--name', 'Bench', '--notify-url', notifyUrl, '--json']);
    const { client_id: id, client_secret: secret } = JSON.parse(created) as Settings;
    return new BenchUsher(settings, { id: id!, secret: secret! });
  }

  command(...args: string[]): string {
    return command(this.settings, args);
  }

  /** A command that reads a password. */
  commandWith(password: string, ...args: string[]): string {
    return command(this.settings, args, `${password}\n`);
  }

  start(role: 'api' | 'worker' | 'all'): Promise<ServerProcess> {
    return ServerProcess.start(built('main.js'), { ...this.settings, USHER_ROLE: role });
  }

  get clientId(): string {
    return this.client.id;
  }

  /** The credentials of the client, as headers. */
  get basic(): Record<string, string> {
    return basic(this.client.id, this.client.secret);
  }

  /** The credentials of an order service. */
  get internal(): Record<string, string> {
    return basic(this.settings.INTERNAL_USER!, this.settings.INTERNAL_PASSWORD!);
  }
}

/** Credentials as headers. */
export const basic = (user: string, password: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

/** Limits are off, because the load comes from one client. */
export const COMMON: Settings = {
  USHER_MASTER_KEYS: `bench:${randomBytes(32).toString('base64')}`,
  OPS_USER: 'ops',
  OPS_PASSWORD: randomBytes(12).toString('hex'),
  INTERNAL_USER: 'order-service',
  INTERNAL_PASSWORD: randomBytes(12).toString('hex'),
  WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true',
  TOKEN_RATE_LIMIT: 'off',
  ORDER_RATE_LIMIT: 'off',
  WEBHOOK_PENDING_LIMIT: 'off',
  LOG_LEVEL: 'warn',
};

const command = (settings: Settings, args: string[], input = ''): string =>
  execFileSync(process.execPath, [built('cli.js'), ...args], {
    env: { PATH: process.env.PATH ?? '', ...settings },
    encoding: 'utf8',
    input,
    stdio: 'pipe',
  });
