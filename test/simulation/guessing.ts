import { FailureLimit } from '../../src/limits/failure-limit.js';
import { Limiter } from '../../src/limits/limiter.js';
import { TestClock, TestStore } from '../limits/support.js';
import { Random } from '../support/random.js';

const LIMIT = 5;
const WINDOW_MS = 60_000;
const ROUNDS = 12;
/** More than two windows allow, so that the limit is reached even if a window ends meanwhile. */
const BURST = 3 * LIMIT;
/** Longer than a process stays away from a store that failed, and then shares its counts. */
const SHARED_MS = 7_000;

type Answer = 'accepted' | 'wrong' | 'refused';

class Refusal extends Error {}

function refused(error: unknown): Answer {
  if (error instanceof Refusal) return 'refused';
  throw error;
}

/** One process: its limits, and the moments at which it found a secret wrong. */
class Process {
  readonly failedAt: number[] = [];
  private readonly limit: FailureLimit;

  constructor(
    private readonly clock: TestClock,
    store: TestStore,
  ) {
    this.limit = new FailureLimit(new Limiter({ count: LIMIT, seconds: WINDOW_MS / 1_000 }, store, clock));
  }

  /** A request whose secret takes `ms` to check. */
  request(key: string, isRight: boolean, ms: number): Promise<Answer> {
    const check = async (): Promise<boolean> => {
      await new Promise<void>((resolve) => this.clock.after(ms, resolve));
      if (!isRight) this.failedAt.push(this.clock.now());
      return isRight;
    };
    return this.limit
      .run(key, check, () => new Refusal())
      .then((isAccepted) => (isAccepted ? 'accepted' : 'wrong'), refused);
  }
}

/**
 * Plays a schedule of guesses and right secrets at two processes, with crashes of processes and failures of the shared
 * store. Returns what should not have happened.
 */
export async function playGuessing(seed: number): Promise<string[]> {
  const random = Random.of(seed, 'guessing');
  const clock = new TestClock();
  const store = new TestStore(clock);
  const found: string[] = [];
  const processes = [new Process(clock, store), new Process(clock, store)];
  const lives = [...processes];
  let forgotAt = -Infinity;
  const duration = (): number => random.between(0, 50);

  /** Requests at the same moment. None may wait for ever. */
  const atOnce = async (requests: Promise<Answer>[]): Promise<Answer[]> => {
    let answered: Answer[] | null = null;
    void Promise.all(requests).then((answers) => (answered = answers));
    for (let n = 0; n < 100 && !answered; n += 1) await clock.pass(50);
    if (!answered) found.push('requests were never answered');
    return answered ?? [];
  };

  for (let round = 0; round < ROUNDS && found.length === 0; round += 1) {
    await clock.pass(random.between(0, WINDOW_MS / 2));
    if (random.chance(0.2)) {
      const victim = random.between(0, 1);
      processes[victim] = new Process(clock, store);
      lives.push(processes[victim]);
    }
    store.fails = random.chance(0.3);
    if (random.chance(0.1)) {
      store.forget();
      forgotAt = clock.now();
    }
    const [attacked, other] = random.shuffled(processes) as [Process, Process];

    const before = lives.flatMap(({ failedAt }) => failedAt).filter((at) => at > clock.now() - 2 * WINDOW_MS).length;
    const right = await atOnce(Array.from({ length: 4 * LIMIT }, () => other.request('a', true, duration())));
    if (before === 0 && right.includes('refused')) found.push('right secrets were refused without guesses');

    const burst = Array.from({ length: BURST }, () => attacked.request('a', false, duration()));
    const last = attacked.request('a', true, duration());
    const [lastAnswer] = (await atOnce([last, ...burst])) as [Answer];
    if (lastAnswer !== 'refused') found.push('the right secret was accepted after too many guesses');

    const elsewhere = await atOnce(Array.from({ length: 4 * LIMIT }, () => attacked.request('b', true, duration())));
    if (elsewhere.includes('refused')) found.push('a client was refused for guesses at another address');

    await clock.pass(SHARED_MS);
    const [own, others] = await atOnce([attacked, other].map((process) => process.request('a', true, 0)));
    const isShared = !store.fails && clock.now() - forgotAt > 2 * WINDOW_MS;
    if (isShared && own === 'refused' && others !== 'refused') found.push('the other process does not know');
  }
  for (const { failedAt } of lives)
    if (failedAt.some((at) => failedAt.filter((one) => one >= at && one < at + WINDOW_MS).length > 2 * LIMIT))
      found.push('a process checked more guesses than two windows allow');
  return found;
}
