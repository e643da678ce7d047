import { execFileSync } from 'node:child_process';

/** The hosts, each a network namespace. */
export type Host =
  'api' | 'worker-1' | 'worker-2' | 'database' | 'receiver' | 'control' | 'queue' | 'queue-2' | 'queue-3';
export const HOSTS: Host[] = [
  'api',
  'worker-1',
  'worker-2',
  'database',
  'receiver',
  'control',
  'queue',
  'queue-2',
  'queue-3',
];

const PREFIX = `usher-${process.env.USHER_PARTITIONS ?? process.pid}`;
const SWITCH = `${PREFIX}-switch`;

export const addressOf = (host: Host): string => `10.77.0.${HOSTS.indexOf(host) + 10}`;
export const hostOf = (address: string): Host => HOSTS.find((host) => addressOf(host) === address)!;
/** The command that runs another one at a host. */
export const at = (host: Host): string[] => ['ip', 'netns', 'exec', `${PREFIX}-${host}`];

function run([program, ...args]: string[], input = ''): void {
  execFileSync(program!, args, { input, stdio: ['pipe', 'pipe', 'pipe'] });
}

/** Makes the hosts and a bridge that connects them, in namespaces of their own. */
export function connectHosts(): void {
  const ip = (...args: string[]): void => run(['ip', ...args]);
  ip('netns', 'add', SWITCH);
  ip('-n', SWITCH, 'link', 'add', 'bridge', 'type', 'bridge');
  ip('-n', SWITCH, 'link', 'set', 'bridge', 'up');
  for (const host of HOSTS) {
    const name = `${PREFIX}-${host}`;
    ip('netns', 'add', name);
    ip('-n', name, 'link', 'add', 'net', 'type', 'veth', 'peer', 'name', host, 'netns', SWITCH);
    ip('-n', SWITCH, 'link', 'set', host, 'master', 'bridge', 'up');
    ip('-n', name, 'address', 'add', `${addressOf(host)}/24`, 'dev', 'net');
    for (const device of ['lo', 'net']) ip('-n', name, 'link', 'set', device, 'up');
  }
}

/** Deletes the hosts and their network. */
export function disconnectHosts(): void {
  for (const name of [SWITCH, ...HOSTS.map((host) => `${PREFIX}-${host}`)])
    try {
      run(['ip', 'netns', 'delete', name]);
    } catch {
      // It was not made.
    }
}

const inTable = (host: Host, rules: string[]): void =>
  run(
    [...at(host), 'nft', '-f', '-'],
    `table inet fault {\nchain in {\ntype filter hook input priority 0;\n${rules.join('\n')}\n}\n}\n`,
  );

const inMain = (host: Host, action: string, to: Host): void =>
  run([...at(host), 'ip', 'route', action, 'unreachable', `${addressOf(to)}/32`]);
/** The routes that are blocked, so that they can be opened again. */
let blocked: [Host, Host][] = [];

/** `from` cannot send to `to`, because its routes say so. */
export function block(from: Host, to: Host[]): void {
  for (const host of to) {
    inMain(from, 'add', host);
    blocked.push([from, host]);
  }
}

/** What `from` sends does not arrive at `to`. */
export function cut(from: Host, to: Host[]): void {
  for (const host of to) inTable(host, [`ip saddr ${addressOf(from)} drop`]);
}

/** Each packet to `host` is lost with this probability. */
export const lose = (host: Host, percent: number): void => inTable(host, [`numgen random mod 100 < ${percent} drop`]);

/** The link of `host` sends 400 kbit a second at most. */
export function slow(host: Host): void {
  const limit = 'rate 400kbit burst 16kbit latency 2s'.split(' ');
  run([...at(host), 'tc', 'qdisc', 'add', 'dev', 'net', 'root', 'tbf', ...limit]);
}

/** Takes back every fault. */
export function heal(): void {
  for (const [from, to] of blocked) inMain(from, 'delete', to);
  blocked = [];
  for (const host of HOSTS) {
    run([...at(host), 'nft', 'flush', 'ruleset']);
    const shown = execFileSync('ip', [...at(host).slice(1), 'tc', 'qdisc', 'show', 'dev', 'net'], { encoding: 'utf8' });
    if (shown.includes('tbf')) run([...at(host), 'tc', 'qdisc', 'delete', 'dev', 'net', 'root']);
  }
}
