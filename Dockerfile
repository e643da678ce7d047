# syntax=docker/dockerfile:1
ARG NODE=node:24-bookworm-slim

FROM ${NODE} AS build
WORKDIR /usher
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json nest-cli.json ./
COPY packages packages
COPY src src
RUN npm run -s build

FROM ${NODE} AS dependencies
WORKDIR /usher
COPY package.json package-lock.json ./
# An application that embeds Usher brings the peer dependencies, and a checkout has them as devDependencies. The image is
# such an application, so they become its dependencies here, the optional ones too. The lock file decides their versions.
# PGlite stays out: a container's file system is no place for an embedded database.
RUN node -e "const { dependencies, devDependencies, peerDependencies, ...rest } = require('./package.json'); \
  delete peerDependencies['@electric-sql/pglite']; \
  for (const name in peerDependencies) { dependencies[name] = devDependencies[name]; delete devDependencies[name]; } \
  fs.writeFileSync('package.json', JSON.stringify({ ...rest, dependencies, devDependencies }));"
# --ignore-scripts: the `prepare` script would run the build, which fails without devDependencies.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM ${NODE}
# DNS lookups use libuv's thread pool. With the default of 4 threads, one slow name server would block all deliveries.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 UV_THREADPOOL_SIZE=320
WORKDIR /usher
COPY --from=dependencies /usher/node_modules node_modules
COPY --from=build /usher/dist dist
COPY --from=build /usher/packages/receiver packages/receiver
COPY package.json ./
COPY bin bin
COPY docs docs
RUN ln -s /usher/bin/usher.mjs /usr/local/bin/usher
USER node
# 3001: OPS_PORT, where it is set.
EXPOSE 3000 3001
# Checks `live`, not `ready`, because a restart does not help while the database is away.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# docs/internals/performance.md explains the flags.
CMD ["node", "--no-memory-reducer", "--no-allocation-site-pretenuring", "--no-parallel-scavenge", "dist/main.js"]
