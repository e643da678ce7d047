/** Figures of version 0.2.0 before it was made faster, by row and check. They were measured on another machine of two cores. */
export const BEFORE: Record<string, Record<string, string>> = {
  token: {
    'MariaDB + Redis: CPU against a Fastify echo': '43–45',
    'MariaDB + Redis: rate against oidc-provider, Redis': '0.10',
    'embedded: CPU against a Fastify echo': '53',
  },
  order: {
    'MariaDB + Redis: CPU against a Fastify echo': '76',
    'MariaDB + Redis, a listener of the application: CPU against a Fastify echo': '76',
  },
};
