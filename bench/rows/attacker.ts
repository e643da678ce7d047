import { type ChildProcess, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { freePort } from '../../test/support/ports.js';
import { atEnd } from '../harness/cleanup.js';
import { inTurn, quantile, type Subject } from '../harness/measure.js';
import { type Check, type Effort, type Figures, figure, type Line, ratio, type Row } from '../harness/row.js';
import { reference } from '../harness/server-process.js';
import { Booth } from '../usher/booth.js';
import { BenchUsher } from '../usher/usher.js';

/** Requests a second: of the attacker, and of the honest client. */
const RATE = 100;
const HONEST_RATE = 50;
const GUESSES = 110;

const P99 = 'p99 ms of the client';
const CPU = 'CPU s a second';
const MEMORY = 'MB more';
const SIGN_IN = 'ms of a right sign-in';

const NOBODY = 'nobody else';
const REDIRECT_URI = 'https://partner.example/callback';
const NAME = 'member@cinema.example';
const PASSWORD = 'correct horse battery';
const NOTHING = '/nothing';

const as404s = (attack: string): string => `${attack}: as many 404s`;

export const attacker: Row = {
  name: 'attacker',
  title: `POST /auth/token at ${HONEST_RATE} a second and sign-ins, MariaDB + Redis, beside one attacker: ${RATE} requests a second, 480 that are not read, or ${GUESSES} guesses at once`,
  plotted: P99,
  async run(effort) {
    const site = await Site.open(effort);
    const paced = { kind: 'paced', rate: RATE };
    const documents = ['/docs/viewer.js', '/docs/openapi.json'];
    const attacks: [name: string, attack: object, of404s: object][] = [
      [
        'API documents, from one address',
        { ...paced, paths: documents, isOneAddress: true },
        { ...paced, paths: [NOTHING], isOneAddress: true },
      ],
      ['API documents that are not read', { kind: 'unread', path: documents[0] }, { kind: 'unread', path: NOTHING }],
      [
        'authorisation requests of a member',
        { ...paced, paths: [site.authorizePath], isMember: true },
        { ...paced, paths: [NOTHING] },
      ],
      ...(['members', 'operators'] as const).map((people): [string, object, object] => [
        `guesses at ${people}`,
        { kind: 'guesses', count: GUESSES, path: people === 'members' ? '/auth/sign-in' : '/ops/sign-in' },
        { kind: 'guesses', count: GUESSES, path: NOTHING },
      ]),
    ];
    const subjects: Subject[] = [
      { name: NOBODY, sample: () => site.round(null) },
      ...attacks.flatMap(([name, attack, of404s]): Subject[] => [
        { name: as404s(name), isReference: true, sample: () => site.round(of404s) },
        { name, sample: () => site.round(attack) },
      ]),
    ];
    const lines = await inTurn(subjects, effort.rounds);
    return { lines, checks: attacks.flatMap(([name]) => checksOf(lines, name)) };
  },
};

const checksOf = (lines: Line[], attack: string): Check[] => [
  {
    what: `${attack}: processor seconds a second`,
    value: figure(lines, CPU, attack) - figure(lines, CPU, NOBODY),
    target: { most: 0.3 },
  },
  { what: `${attack}: MB more`, value: figure(lines, MEMORY, attack), target: { most: 64 } },
  {
    what: `${attack}: p99 against as many 404s`,
    value: ratio(lines, P99, attack, as404s(attack)),
    target: { most: 3 },
  },
  {
    what: `${attack}: ms of a right sign-in beyond the time of two`,
    value: figure(lines, SIGN_IN, attack) - 2 * figure(lines, SIGN_IN, NOBODY),
    target: { most: 1_000 },
  },
];

/** An api process behind a proxy, a client, a member and an operator, each with a browser that signed in before. */
class Site {
  private constructor(
    private readonly booth: Booth,
    private readonly effort: Effort,
    private readonly attacking: ChildProcess,
    private readonly member: Browser,
    private readonly operator: Browser,
    /** The cookies of the member who attacks, from before the first round. */
    private readonly cookie: string,
  ) {}

  static async open(effort: Effort): Promise<Site> {
    const usher = await BenchUsher.prepare('MariaDB + Redis');
    usher.command('client', 'set-application', usher.clientId, '--redirect-uri', REDIRECT_URI);
    for (const kind of ['member', 'operator']) usher.commandWith(PASSWORD, kind, 'create', NAME);
    const port = await freePort();
    const address = `http://127.0.0.1:${port}`;
    Object.assign(usher.settings, { PORT: String(port), USHER_AUTH_URL: address, TRUST_PROXY: '1' });
    const booth = await Booth.of(usher, effort);
    const child = fork(reference('attacker.mjs'), [], { detached: true });
    atEnd(() => child.kill('SIGKILL'));
    const attackingMember = new Browser(address, '/auth/sign-in');
    const [member, operator] = [new Browser(address, '/auth/sign-in'), new Browser(address, '/ops/sign-in')];
    for (const browser of [attackingMember, member, operator]) await browser.signIn(NAME, PASSWORD);
    return new Site(booth, effort, child, member, operator, attackingMember.cookie);
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

  /** The attack, the honest client and right sign-ins side by side. */
  async round(attack: object | null): Promise<Figures> {
    const { server } = this.booth;
    const { seconds } = this.effort;
    const before = await server.used();
    const startedAt = performance.now();
    const isOver = attack && once(this.attacking, 'message');
    const headers = attack && 'isMember' in attack ? { cookie: this.cookie } : {};
    if (attack) this.attacking.send({ ...attack, url: server.url, seconds, headers });
    const times = this.honestTimes(startedAt + seconds * 1_000);
    await sleep((seconds * 1_000) / 2);
    const signInMs = await this.signIn();
    const p99 = quantile(await times, 0.99);
    const after = await server.used();
    const elapsed = (performance.now() - startedAt) / 1_000;
    await isOver;
    return {
      [P99]: p99,
      [CPU]: (after.cpu - before.cpu) / 1e6 / elapsed,
      [MEMORY]: (after.memory - before.memory) / 2 ** 20,
      [SIGN_IN]: signInMs,
    };
  }

  /** Milliseconds of token requests at a steady pace, each from the moment at which it was due. */
  private async honestTimes(until: number): Promise<number[]> {
    const calls: Promise<number>[] = [];
    const timeFrom = async (dueAt: number): Promise<number> => {
      await this.booth.token();
      return performance.now() - dueAt;
    };
    for (let dueAt = performance.now(); dueAt < until; dueAt += 1_000 / HONEST_RATE) {
      await sleep(Math.max(0, dueAt - performance.now()));
      calls.push(timeFrom(dueAt));
    }
    return Promise.all(calls);
  }

  /** Milliseconds until both had signed in: the member and the operator. */
  private async signIn(): Promise<number> {
    const startedAt = performance.now();
    await Promise.all([this.member, this.operator].map((browser) => browser.signIn(NAME, PASSWORD)));
    return performance.now() - startedAt;
  }
}

/** Keeps cookies and sends the form of a sign-in page. */
class Browser {
  private readonly cookies = new Map<string, string>();

  constructor(
    private readonly base: string,
    private readonly signInPath: string,
  ) {}

  get cookie(): string {
    return [...this.cookies].map((pair) => pair.join('=')).join('; ');
  }

  /** What the browser keeps of earlier sign-ins is that it knows the account. */
  async signIn(name: string, password: string): Promise<void> {
    for (const key of this.cookies.keys()) if (!key.includes('known')) this.cookies.delete(key);
    const { text } = await this.send('GET');
    const form = /name="form" value="([^"]*)"/.exec(text)?.[1] ?? '';
    const { status } = await this.send('POST', new URLSearchParams({ form, name, password }).toString());
    if (status >= 400) throw new Error(`a right sign-in at ${this.signInPath} was answered ${status}`);
  }

  private async send(method: 'GET' | 'POST', body: string | null = null) {
    const response = await request(this.base + this.signInPath, {
      method,
      body,
      headers: {
        accept: 'text/html',
        'x-forwarded-for': '192.0.2.1',
        ...(this.cookies.size > 0 && { cookie: this.cookie }),
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
