/**
 * The layers of src, the top one first. A file imports from its own layer and from those below it, never from one above.
 * docs/internals/map.md describes the rooms.
 */
const LAYERS = [
  ['main', 'cli', 'index', 'testing'],
  ['server'],
  ['usher\\.module'],
  ['retention'],
  ['account'],
  ['orders'],
  ['webhooks'],
  ['members', 'operators', 'portal'],
  ['auth'],
  ['clients'],
  ['http', 'audit', 'events'],
  ['limits'],
  ['queue'],
  ['database'],
  ['telemetry'],
  ['resolve-options'],
  ['usher\\.options'],
  ['options'],
  ['values'],
];

const inside = (names) => `^src/(${names.join('|')})(/|\\.)`;
const nameOf = (layer) => layer.join('-and-').replaceAll('\\', '');

const downwards = LAYERS.slice(1).map((layer, index) => ({
  name: `${nameOf(layer)}-imports-nothing-above-it`,
  severity: 'error',
  from: { path: inside(layer) },
  to: { path: inside(LAYERS.slice(0, index + 1).flat()) },
}));

const WITHOUT_FRAMEWORK = '^src/(values|webhooks/transport)/';

export default {
  forbidden: [
    { name: 'no-circle', severity: 'error', from: {}, to: { circular: true } },
    ...downwards,
    {
      name: 'server-is-imported-by-the-entrances-alone',
      severity: 'error',
      from: { pathNot: '^src/(server|cli)/|^src/(main|cli|index)\\.ts$' },
      to: { path: '^src/server/' },
    },
    {
      name: 'cli-is-imported-by-its-entrance-alone',
      severity: 'error',
      from: { pathNot: '^src/cli(/|\\.ts$)' },
      to: { path: '^src/cli/' },
    },
    {
      name: 'the-receiver-kit-needs-only-node',
      severity: 'error',
      from: { path: '^packages/receiver/' },
      to: { pathNot: '^packages/receiver/', dependencyTypesNot: ['core'] },
    },
    {
      name: 'the-receiver-kit-is-imported-by-its-two-entries-alone',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^packages/', pathNot: '^packages/receiver/dist/(index|tools)\\.js$' },
    },
    {
      name: 'values-need-only-node-semver-and-the-receiver-kit',
      severity: 'error',
      from: { path: '^src/values/' },
      to: {
        pathNot: '^src/values/|^packages/receiver/dist/index\\.js$|^node_modules/semver/',
        dependencyTypesNot: ['core'],
      },
    },
    {
      name: 'transport-needs-only-undici-and-values',
      severity: 'error',
      from: { path: '^src/webhooks/transport/' },
      to: { pathNot: '^src/(values|webhooks/transport)/|(^|/)node_modules/undici/', dependencyTypesNot: ['core'] },
    },
    {
      name: 'no-nest-and-no-typeorm-in-values-and-transport',
      severity: 'error',
      from: { path: WITHOUT_FRAMEWORK },
      to: { path: '(^|/)node_modules/(@nestjs|typeorm|bullmq)/' },
    },
    {
      name: 'the-embedded-database-is-imported-by-its-index-alone',
      severity: 'error',
      from: { pathNot: '^src/database/embedded/' },
      to: { path: '^src/database/embedded/', pathNot: '^src/database/embedded/index\\.ts$' },
    },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, pathNot: '\\.d\\.ts$|^src/(main|cli|index)\\.ts$|/console\\.js$' },
      to: {},
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};
