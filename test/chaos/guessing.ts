import { Pipeline } from '../support/pipeline.js';
import type { Credentials } from './producers.js';

const GUESSES = 1_500;
/** The default of AUTH_FAILURE_LIMIT, for each minute. */
const LIMIT = 20;

/** The attacks of a run: wrong secrets on one connection without waiting for responses, and the right one last. */
export class Guessing {
  /** What a guesser achieved that must be refused. */
  readonly successes: string[] = [];

  constructor(private readonly client: Credentials) {}

  /** Attacks one process. If a fault ends the connection meanwhile, nothing was reached. */
  async attack(name: string, url: string): Promise<void> {
    const begunAt = performance.now();
    const statuses = await this.statusesAt(url).catch(() => []);
    const minutes = 1 + Math.floor((performance.now() - begunAt) / 60_000);
    if (statuses.length === 0) return;
    const checked = statuses.filter((status) => status === 401).length;
    if (checked > LIMIT * minutes) this.successes.push(`${name} checked ${checked} guesses`);
    if (statuses.at(-1) === 200) this.successes.push(`${name} accepted the right secret after ${GUESSES} wrong ones`);
  }

  private async statusesAt(url: string): Promise<number[]> {
    const pipeline = await Pipeline.open(url);
    try {
      const secrets = Array.from({ length: GUESSES }, (_, n) => `wrong-${n}`);
      pipeline.send([...secrets, this.client.secret].map((secret) => this.tokenRequest(secret)));
      return await pipeline.responses(GUESSES + 1);
    } finally {
      pipeline.close();
    }
  }

  private tokenRequest(secret: string) {
    const credentials = Buffer.from(`${this.client.id}:${secret}`).toString('base64');
    const headers = { Authorization: `Basic ${credentials}`, 'Content-Type': 'application/json' };
    return { path: '/auth/token', headers, body: '{"grant_type":"client_credentials"}' };
  }
}
