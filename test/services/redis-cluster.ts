import { eventually } from '../support/eventually.js';
import { OwnRedis } from '../support/own-redis.js';
import { freePort } from '../support/ports.js';

const SLOTS = 16_384;

/** Starts a Redis Cluster of masters without replicas; each has an equal share of the slots. */
export async function startCluster(masters: number): Promise<OwnRedis[]> {
  const busPorts = await Promise.all(Array.from({ length: masters }, freePort));
  const nodes = await Promise.all(
    busPorts.map((busPort) =>
      OwnRedis.start('--cluster-enabled', 'yes', '--cluster-port', String(busPort), '--appendonly', 'yes'),
    ),
  );
  for (const [index, node] of nodes.entries()) {
    const [from, to] = [index, index + 1].map((share) => Math.floor((share * SLOTS) / masters));
    await node.command('CLUSTER', 'ADDSLOTSRANGE', from!, to! - 1);
    await node.command('CLUSTER', 'MEET', '127.0.0.1', nodes[0]!.port, busPorts[0]!);
  }
  await eventually('the cluster is up', async () => {
    const states = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'INFO')));
    return states.every(
      (state) => /cluster_state:ok[^]*cluster_known_nodes:(\d+)/.exec(String(state))?.[1] === String(masters),
    );
  });
  return nodes;
}
