/** The effect of a LISTEN or UNLISTEN; the channel '*' means all channels. */
export interface SubscriptionChange {
  readonly listen: boolean;
  readonly channel: string;
}

const TOKEN =
  /--[^\n]*|\/\*[^]*?\*\/|\s+|'(?:[^']|'')*'|\$(\w*)\$[^]*?\$\1\$|"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*|[^]/gu;
const BLANK = /^(?:--|\/\*|\s)/;

/** The LISTEN and UNLISTEN statements in `sql`; comments, strings and function bodies are skipped. */
export function subscriptionChangesIn(sql: string): SubscriptionChange[] {
  if (!/\b(?:un)?listen\b/i.test(sql)) return [];
  return statementsIn(sql).flatMap(([verb = '', channel, ...rest]) => {
    if (channel === undefined || rest.length > 0 || !/^(?:un)?listen$/i.test(verb)) return [];
    return [{ listen: /^listen$/i.test(verb), channel: channelName(channel) }];
  });
}

function statementsIn(sql: string): string[][] {
  const statements: string[][] = [[]];
  for (const [token] of sql.matchAll(TOKEN)) {
    if (token === ';') statements.push([]);
    else if (!BLANK.test(token)) statements.at(-1)?.push(token);
  }
  return statements;
}

function channelName(token: string): string {
  return token.startsWith('"') ? token.slice(1, -1).replaceAll('""', '"') : token.toLowerCase();
}

/** Records which connection listens to which channel of the one session. */
export class Subscriptions<Listener> {
  readonly #listeners = new Map<string, Set<Listener>>();

  /** The session ran the changes itself. Returns the SQL that restores the channels of other listeners. */
  apply(listener: Listener, changes: readonly SubscriptionChange[]): string[] {
    for (const { listen, channel } of changes) {
      if (listen) this.#add(listener, channel);
      else this.#remove(listener, channel);
    }
    if (changes.every(({ listen }) => listen)) return [];
    return [...this.#listeners.keys()].map((channel) => `LISTEN ${quoted(channel)}`);
  }

  /** Returns the SQL that ends the session's subscriptions without a remaining listener. */
  removeListener(listener: Listener): string[] {
    const before = [...this.#listeners.keys()];
    this.#remove(listener, '*');
    return before.filter((channel) => !this.#listeners.has(channel)).map((channel) => `UNLISTEN ${quoted(channel)}`);
  }

  listeners(channel: string): Iterable<Listener> {
    return this.#listeners.get(channel) ?? [];
  }

  #add(listener: Listener, channel: string): void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
  }

  #remove(listener: Listener, channel: string): void {
    const channels = channel === '*' ? [...this.#listeners.keys()] : [channel];
    for (const name of channels) {
      const listeners = this.#listeners.get(name);
      listeners?.delete(listener);
      if (listeners?.size === 0) this.#listeners.delete(name);
    }
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
