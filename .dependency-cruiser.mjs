/** Imports go one way: core ← config ← database ← queue ← limits ← clients ← auth ← orders, webhooks ← purge ← ops ← docs, cli ← app. */
const layers = [
  ['core'],
  ['config'],
  ['audit', 'metrics', 'http', 'database'],
  ['queue'],
  ['limits'],
  ['clients'],
  ['auth'],
  ['orders', 'webhooks'],
  ['purge'],
  ['ops'],
  ['docs'],
  ['app', 'http-server', 'logger', 'migrate', 'serve', 'fault'],
  ['cli', 'run-server', 'announcement', 'main', 'index', 'testing'],
];

const path = (rooms) => `^src/(${rooms.join('|')})(/|\\.)`;

const oneWay = layers.slice(0, -1).map((rooms, level) => ({
  name: `${rooms.join('-and-')}-looks-inwards-only`,
  severity: 'error',
  from: { path: path(rooms) },
  to: { path: path(layers.slice(level + 1).flat()) },
}));

export default {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    ...oneWay,
    {
      name: 'core-and-receiver-need-only-node',
      severity: 'error',
      from: { path: '^src/(core|receiver)/' },
      to: { pathNot: '^src/(core|receiver)/', dependencyTypesNot: ['core'] },
    },
    {
      name: 'webhooks-hear-orders-only-through-the-event',
      severity: 'error',
      from: { path: '^src/webhooks/' },
      to: { path: '^src/orders/', pathNot: '^src/orders/order-completed\\.event\\.ts$' },
    },
    {
      name: 'orders-do-not-know-webhooks',
      severity: 'error',
      from: { path: '^src/orders/' },
      to: { path: '^src/webhooks/' },
    },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, pathNot: '\\.d\\.ts$|^src/(main|cli|index)\\.ts$' },
      to: {},
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};
