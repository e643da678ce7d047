/** The files and texts in which two hosts differ from the example. */
const USHER_OPTIONS = 'src/usher-options.ts';
const FASTIFY = "import { FastifyAdapter } from '@nestjs/platform-fastify';\n";
const CLS =
  "import type { TransactionHost } from '@nestjs-cls/transactional';\n" +
  "import type { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';\n";

/**
 * The hosts. `edits` are a file, a text in it, and what this host has instead. Without `database` it is on Postgres, without
 * `install` npm installs it.
 */
export const HOSTS = {
  'booking-api': { shape: 'CommonJS, Nest 11, TypeORM 0.3.20, BullMQ 5, Jest 30 with ts-jest, snake naming' },
  'esm-mariadb': {
    shape: 'ES module, Nest 11, TypeORM 0.3.28, BullMQ 5, Jest 29 with ts-jest, typeorm-transactional, MariaDB',
    database: 'mariadb',
    edits: [['src/database/data-source.ts', "'postgres'", "'mariadb'"]],
  },
  'esm-vitest': {
    shape: 'ES module, Nest 12, TypeORM 1, BullMQ 6, Vitest with SWC',
    edits: [['src/database/data-source.ts', "'typeorm-naming-strategies'", "'./snake-naming.strategy'"]],
  },
  webpack: { shape: 'CommonJS, Nest 11, TypeORM 0.3.28, bundled by nest build --webpack' },
  'fastify-cls': {
    shape: 'CommonJS, Nest 11 on Fastify, TypeORM 0.3.28, nestjs-cls with its transactional plugin',
    edits: [
      ['src/main.ts', 'create(AppModule)', 'create(AppModule, new FastifyAdapter())'],
      ['src/main.ts', "import { NestFactory } from '@nestjs/core';\n", `$&${FASTIFY}`],
      ['test/testing-app.ts', 'createNestApplication()', 'createNestApplication(new FastifyAdapter())'],
      ['test/testing-app.ts', "import { Test } from '@nestjs/testing';\n", `${FASTIFY}$&`],
      ['src/app.module.ts', 'getDataSourceToken()]', 'getDataSourceToken(), TransactionHost]'],
      ['src/app.module.ts', 'import { Module }', "import { TransactionHost } from '@nestjs-cls/transactional';\n$&"],
      [USHER_OPTIONS, 'DataSource)', 'DataSource, txHost: TransactionHost<TransactionalAdapterTypeOrm>)'],
      [USHER_OPTIONS, 'database: { dataSource },\n', '$&    currentManager: () => txHost.tx,\n'],
      [USHER_OPTIONS, 'import type { ConfigService }', `${CLS}$&`],
    ],
  },
  pnpm: {
    shape: 'the first one, installed by pnpm with strict peers',
    install: 'npx --yes pnpm@12 install --no-frozen-lockfile --reporter=append-only',
  },
};
