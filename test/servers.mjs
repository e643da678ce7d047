import { connect } from 'node:net';

/** The servers that tests share, and the variables that name other ones. */
const SERVERS = {
  MariaDB: ['TEST_MYSQL_URL', 'mysql://root@127.0.0.1:3306'],
  Redis: ['TEST_REDIS_URL', 'redis://127.0.0.1:6379'],
  Postgres: ['TEST_POSTGRES_URL', 'postgres://postgres@127.0.0.1:5432'],
};

export function postgresUrl() {
  const [variable, fallback] = SERVERS.Postgres;
  return process.env[variable] ?? fallback;
}

/** One line for each server that does not answer. */
export async function silentServers() {
  const lines = await Promise.all(
    Object.entries(SERVERS).map(async ([name, [variable, fallback]]) => {
      const { hostname, port, host } = new URL(process.env[variable] ?? fallback);
      return (await answers(hostname, Number(port)))
        ? []
        : [`Nothing answers at ${host}: start ${name} there, or set ${variable} to another one.`];
    }),
  );
  return lines.flat();
}

function answers(host, port) {
  return new Promise((resolve) => {
    const socket = connect({ host, port }, () => resolve(true));
    socket.on('error', () => resolve(false));
    socket.once('connect', () => socket.end());
  });
}
