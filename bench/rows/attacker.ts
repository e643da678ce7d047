import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { freePort } from '../../test/chaos/processes.js';
import { atEnd } from '../harness/cleanup.js';
import { inTurn, quantile, type Subject } from '../harness/measure.js';
import { type Check, type Effort, type Figures, figure, type Line, ratio, type Row } from '../harness/row.js';
import { Booth } from '../usher/booth.js';
import { BenchUsher } from '../usher/usher.js';

/** Requests a second: of the attacker, and of the honest client. */
const RATE = 100;
const HONEST_RATE = 50;
/** Guesses in progress at the same time. */
const GUESSES = 110;
const SOCKETS = 48;
const PIPELINED = 10;

const P99 = 'p99 ms of the client';
const CPU = 'CPU s a second';
const MEMORY = 'MB more';
const SIGN_IN = 'ms of a right sign-in';

const NOBODY = 'nobody else';
const CHEAP = 'as many requests for nothing (404)';
const REDIRECT_URI = 'https://partner.example/callback';
const NAME = 'member@cinema.example';
const PASSWORD = 'correct horse battery';

export const attacker: Row = {
  name: 'attacker',
  title: `POST /auth/token at ${HONEST_RATE} a second and sign-ins, MariaDB + Redis, beside one attacker with ${RATE} requests a second`,
  plotted: P99,
  async run(effort) {
    const site = await Site.open(effort);
    const attacks: [name: string, attack: Attack][] = [
      [NOBODY, { rate: 0, act: async () => undefined }],
      [CHEAP, { rate: RATE, act: (n) => site.get(`/nothing/${n}`, addressOf(n)) }],
      [
        'API documents, from one address',
        { rate: RATE, act: (n) => site.get(n % 2 ? '/docs/viewer.js' : '/docs/openapi.json', addressOf(0)) },
      ],
      ['API documents that are not read', { rate: 0, begin: () => site.openUnread(), act: async () => undefined }],
      ['authorisation requests of a member', { rate: RATE, act: () => site.member.get(site.authorizePath) }],
      [`guesses at members, ${GUESSES} at once`, { atOnce: GUESSES, act: (n) => site.guess('/auth/sign-in', n) }],
      [`guesses at operators, ${GUESSES} at once`, { atOnce: GUESSES, act: (n) => site.guess('/ops/sign-in', n) }],
    ];
    const subjects = attacks.map(([name, attack]): Subject => ({
      name,
      ...(name === CHEAP && { isReference: true }),
      sample: () => site.round(attack),
    }));
    const lines = await inTurn(subjects, effort.rounds, 1);
    return { lines, checks: lines.slice(2).flatMap(({ subject }) => checksOf(lines, subject)) };
  },
};

const checksOf = (lines: Line[], subject: string): Check[] => [
  {
    what: `${subject}: processor seconds a second`,
    value: figure(lines, CPU, subject) - figure(lines, CPU, NOBODY),
    target: { most: 0.3 },
  },
  { what: `${subject}: MB more`, value: figure(lines, MEMORY, subject), target: { most: 64 } },
  { what: `${subject}: p99 against 404s`, value: ratio(lines, P99, subject, CHEAP), target: { most: 3 } },
  {
    what: `${subject}: ms of a right sign-in beyond the time of two`,
    value: figure(lines, SIGN_IN, subject) - 2 * figure(lines, SIGN_IN, NOBODY),
    target: { most: 1_000 },
  },
];

/** One address of one network each: 2001:db8:n::1. */
const addressOf = (n: number): string => `2001:db8:${(n % 60_000).toString(16)}::1`;

interface Attack {
  /** Requests a second, at a steady pace; or as many as are answered, with so many in progress. */
  rate?: number;
  atOnce?: number;
  begin?: () => Socket[];
  act: (n: number) => Promise<unknown>;
}

/** An api process behind a proxy, a client, a member with a browser that signed in before, and an operator with one. */
class Site {
  private sent = 0;

  private constructor(
    private readonly booth: Booth,
    private readonly effort: Effort,
    readonly member: Browser,
    private readonly operator: Browser,
  ) {}

  static async open(effort: Effort): Promise<Site> {
    const usher = await BenchUsher.prepare('MariaDB + Redis');
    usher.command('client', 'set-application', usher.clientId, '--redirect-uri', REDIRECT_URI);
    for (const kind of ['member', 'operator']) usher.commandWith(PASSWORD, kind, 'create', NAME);
    const port = await freePort();
    const address = `http://127.0.0.1:${port}`;
    Object.assign(usher.settings, { PORT: String(port), USHER_AUTH_URL: address, TRUST_PROXY: '1' });
    const booth = await Booth.of(usher, effort);
    const site = new Site(booth, effort, new Browser(address, '/auth/sign-in'), new Browser(address, '/ops/sign-in'));
    await site.signIn();
    return site;
  }

  get authorizePath(): string {
    return `/auth/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: this.booth.usher.clientId,
      redirect_uri: REDIRECT_URI,
      state: 's'.repeat(2_000),
      code_challenge: createHash('sha256').update('v'.repeat(43)).digest('base64url'),
      code_challenge_method: 'S256',
    })}`;
  }

  get(path: string, address: string): Promise<unknown> {
    return new Browser(this.booth.server.url, '').get(path, address);
  }

  /** A wrong password for an invented name, from an address of its own. */
  async guess(path: string, n: number): Promise<unknown> {
    return new Browser(this.booth.server.url, path).signIn(`nobody-${n}`, 'not the password', addressOf(n));
  }

  /** Milliseconds until both had signed in: the member and the operator. */
  private async signIn(): Promise<number> {
    const startedAt = performance.now();
    for (const status of await Promise.all([this.member, this.operator].map((one) => one.signIn(NAME, PASSWORD))))
      if (status !== 303) throw new Error(`a right sign-in was answered ${status}`);
    return performance.now() - startedAt;
  }

  openUnread(): Socket[] {
    const { hostname, port } = new URL(this.booth.server.url);
    const once = `GET /docs/viewer.js HTTP/1.1\r\nHost: ${hostname}\r\nX-Forwarded-For: ${addressOf(0)}\r\n\r\n`;
    return Array.from({ length: SOCKETS }, () => {
      const socket = connect(Number(port), hostname).on('error', () => undefined);
      socket.write(once.repeat(PIPELINED));
      return socket.pause();
    });
  }

  /** The attack and the honest client side by side. */
  async round({ rate = 0, atOnce = 0, begin, act }: Attack): Promise<Figures> {
    const { server } = this.booth;
    const until = performance.now() + this.effort.seconds * 1_000;
    const before = await server.used();
    const sockets = begin?.() ?? [];
    let isOver = false;
    const once = (): Promise<unknown> => act(this.sent++).catch(() => undefined);
    const lane = async (): Promise<void> => {
      while (!isOver) await once();
    };
    const paced = every(1_000 / rate, until, once);
    const lanes = Array.from({ length: atOnce }, lane);
    const times: number[] = [];
    const honest = every(1_000 / HONEST_RATE, until, async (dueAt) => {
      await this.booth.token();
      times.push(performance.now() - dueAt);
    });
    await sleep((this.effort.seconds * 1_000) / 2);
    const signInMs = await this.signIn();
    await honest;
    const after = await server.used();
    isOver = true;
    for (const socket of sockets) socket.destroy();
    await Promise.all([paced, ...lanes]);
    const seconds = (performance.now() - until) / 1_000 + this.effort.seconds;
    return {
      [P99]: quantile(times, 0.99),
      [CPU]: (after.cpu - before.cpu) / 1e6 / seconds,
      [MEMORY]: (after.memory - before.memory) / 2 ** 20,
      [SIGN_IN]: signInMs,
    };
  }
}

/** Calls at a steady pace, whether or not earlier ones have ended; waits for all of them. */
async function every(ms: number, until: number, call: (dueAt: number) => Promise<unknown>): Promise<void> {
  const calls: Promise<unknown>[] = [];
  for (let dueAt = performance.now(); dueAt < until; dueAt += ms) {
    await sleep(Math.max(0, dueAt - performance.now()));
    calls.push(call(dueAt));
  }
  await Promise.all(calls);
}

const agent = new Agent({ connections: 256, pipelining: 1 });
atEnd(() => agent.close());

/** Keeps cookies and sends the form of a sign-in page. */
class Browser {
  private readonly cookies = new Map<string, string>();

  constructor(
    private readonly base: string,
    private readonly signInPath: string,
  ) {}

  get(path: string, address = addressOf(1)): Promise<{ status: number; text: string }> {
    return this.send('GET', path, address);
  }

  /** The status of the answer. What the browser keeps of earlier sign-ins is that it knows the account. */
  async signIn(name: string, password: string, address = addressOf(1)): Promise<number> {
    for (const key of this.cookies.keys()) if (!key.includes('known')) this.cookies.delete(key);
    const { text } = await this.get(this.signInPath, address);
    const form = /name="form" value="([^"]*)"/.exec(text)?.[1] ?? '';
    const body = new URLSearchParams({ form, name, password }).toString();
    return (await this.send('POST', this.signInPath, address, body)).status;
  }

  private async send(method: 'GET' | 'POST', path: string, address: string, body: string | null = null) {
    const cookie = [...this.cookies].map((pair) => pair.join('=')).join('; ');
    const response = await request(this.base + path, {
      dispatcher: agent,
      method,
      body,
      headers: {
        accept: 'text/html',
        'x-forwarded-for': address,
        ...(cookie && { cookie }),
        ...(body !== null && { 'content-type': 'application/x-www-form-urlencoded', origin: this.base }),
      },
    });
    for (const line of [response.headers['set-cookie'] ?? []].flat()) {
      const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      this.cookies.set(key, value);
    }
    return { status: response.statusCode, text: await response.body.text() };
  }
}
