import { randomBytes } from 'node:crypto';

type Settings = Record<string, string>;
type Usher = (settings: Settings, ...args: string[]) => Promise<string>;

/** Attempts to rotate the master keys while a process lacks them. All must be refused. */
export class KeyRotation {
  /** The attempts that were not refused. */
  readonly successes: string[] = [];

  constructor(
    private readonly settings: Settings,
    private readonly usher: Usher,
  ) {}

  /** The settings of a process that lacks the key. */
  otherKey(): Settings {
    return { USHER_MASTER_KEYS: newKey('other') };
  }

  /** Puts a new key first, as an operator does too early. */
  async tryToRotate(name: string): Promise<void> {
    const keys = `${newKey('new')},${this.settings.USHER_MASTER_KEYS}`;
    const args = ['keys', 'rotate', '--json'];
    await this.usher({ ...this.settings, USHER_MASTER_KEYS: keys }, ...args).then(
      () => this.successes.push(`keys rotated while ${name} lacked them`),
      () => undefined,
    );
  }
}

const newKey = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;
