import { eventually } from './eventually.js';
import { OwnRedis, type OwnRedisOptions } from './own-redis.js';
import { TcpProxy } from './tcp-proxy.js';

const PASSWORD = 'sesame';
const GROUP = 'cinema';

type OptionsOf = (member: number) => Promise<OwnRedisOptions>;

/** A primary and its replica, with a password. */
export class RedisPair {
  private constructor(
    readonly nodes: [OwnRedis, OwnRedis],
    private readonly address: TcpProxy,
  ) {}

  /** `optionsOf` gives the further options of each of the two servers. */
  static async start(optionsOf: OptionsOf = async () => ({})): Promise<RedisPair> {
    const prepare = async (node: number): Promise<OwnRedis> => {
      const { args = [], ...options } = await optionsOf(node);
      return OwnRedis.prepare({ password: PASSWORD, args: [...args, '--repl-diskless-sync-delay', '0'], ...options });
    };
    const nodes: [OwnRedis, OwnRedis] = [await prepare(0), await prepare(1)];
    await Promise.all(nodes.map((node) => node.start()));
    const pair = new RedisPair(nodes, await TcpProxy.to(nodes[0].url));
    await follow(nodes[1], nodes[0]);
    return pair;
  }

  /** The address that leads to the primary, like a name or a virtual IP address of an operator. */
  get url(): string {
    return this.address.through(this.nodes[0].url);
  }

  /** The server that takes writes, and the other one. */
  async roles(): Promise<{ primary: OwnRedis; replica: OwnRedis }> {
    const [first, second] = this.nodes;
    return (await replicationOf(first)).includes('role:master')
      ? { primary: first, replica: second }
      : { primary: second, replica: first };
  }

  /** Promotes the replica and demotes the primary. The address leads to the new primary; connections to the old one stay open. */
  async failOver(): Promise<void> {
    const { primary, replica } = await this.roles();
    await replica.command('REPLICAOF', 'NO', 'ONE');
    this.address.redirect(replica.url);
    await follow(primary, replica);
  }

  /** Waits until one server is the primary and the other one has its data. */
  async settled(): Promise<void> {
    await eventually('one server is the primary and the other one its replica', async () => {
      const [first, second] = await Promise.all(this.nodes.map(replicationOf));
      const isReplica = (info = ''): boolean => info.includes('master_link_status:up');
      const isPrimary = (info = ''): boolean => info.includes('role:master');
      return (isPrimary(first) && isReplica(second)) || (isPrimary(second) && isReplica(first));
    });
  }

  async stop(): Promise<void> {
    this.address.close();
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}

const replicationOf = async (node: OwnRedis): Promise<string> => String(await node.command('INFO', 'replication'));

/** Makes a server a replica and waits until it has the data of its primary. */
async function follow(replica: OwnRedis, primary: OwnRedis): Promise<void> {
  await replica.command('REPLICAOF', '127.0.0.1', primary.port);
  await eventually('the replica has the data of its primary', async () =>
    (await replicationOf(replica)).includes('master_link_status:up'),
  );
}

/** Three Sentinels, with a password of their own, that watch a pair and decide which of its servers is the primary. */
export class Sentinels {
  private constructor(private readonly members: OwnRedis[]) {}

  static async watch(pair: RedisPair, optionsOf: OptionsOf = async () => ({})): Promise<Sentinels> {
    const { primary } = await pair.roles();
    const sentinelConfig = [
      `sentinel monitor ${GROUP} 127.0.0.1 ${primary.port} 2`,
      `sentinel auth-pass ${GROUP} ${PASSWORD}`,
      `sentinel down-after-milliseconds ${GROUP} 500`,
      `sentinel failover-timeout ${GROUP} 3000`,
      `sentinel sentinel-pass ${PASSWORD}2`,
    ];
    const prepare = async (member: number): Promise<OwnRedis> =>
      OwnRedis.prepare({ password: `${PASSWORD}2`, sentinelConfig, ...(await optionsOf(member)) });
    const members = await Promise.all([0, 1, 2].map(prepare));
    await Promise.all(members.map((member) => member.start()));
    const sentinels = new Sentinels(members);
    await eventually('the Sentinels know each other and the replica', () => sentinels.areComplete());
    return sentinels;
  }

  get url(): string {
    const hosts = this.members.map(({ port }) => `127.0.0.1:${port}`).join(',');
    return `redis+sentinel://:${PASSWORD}@${hosts}/${GROUP}?sentinel_password=${PASSWORD}2`;
  }

  /** Makes them promote the replica, as for the maintenance of the primary, and waits until they have. */
  async failOver(): Promise<void> {
    const before = await this.primaryPort();
    await eventually('a failover begins', () => this.first.command('SENTINEL', 'FAILOVER', GROUP));
    await this.switchedFrom(before);
  }

  /** Waits until all of them name another primary than the one on this port. */
  async switchedFrom(port: number): Promise<void> {
    await eventually('the Sentinels name another primary', async () => {
      const ports = await Promise.all(this.members.map((member) => primaryPort(member)));
      return ports.every((named) => named !== port);
    });
  }

  primaryPort(): Promise<number> {
    return primaryPort(this.first);
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
  }

  private get first(): OwnRedis {
    return this.members[0] as OwnRedis;
  }

  private async areComplete(): Promise<boolean> {
    const infos = await Promise.all(this.members.map((member) => member.command('INFO', 'sentinel')));
    return infos.every((info) => /status=ok,.*slaves=1,sentinels=3/.test(String(info)));
  }
}

async function primaryPort(sentinel: OwnRedis): Promise<number> {
  const address = (await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', GROUP)) as [string, string];
  return Number(address[1]);
}
