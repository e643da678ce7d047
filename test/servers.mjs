import { connect } from 'node:net';

/** The servers that tests share, and the variables that name other ones. */
const SERVERS = {
  MariaDB: ['TEST_MYSQL_URL', 'mysql://root@127.0.0.1:3306'],
  Redis: ['TEST_REDIS_URL', 'redis://127.0.0.1:6379'],
  Postgres: ['TEST_POSTGRES_URL', 'postgres://postgres@127.0.0.1:5432'],
};

const urlOf = ([variable, fallback]) => process.env[variable] ?? fallback;

export const mariadbUrl = () => urlOf(SERVERS.MariaDB);
export const redisUrl = () => urlOf(SERVERS.Redis);
export const postgresUrl = () => urlOf(SERVERS.Postgres);

/** One line for each server that does not answer. */
export async function silentServers() {
  const lines = await Promise.all(
    Object.entries(SERVERS).map(async ([name, server]) => {
      const { hostname, port, host } = new URL(urlOf(server));
      return (await answers(hostname, Number(port)))
        ? []
        : [`Nothing answers at ${host}: start ${name} there, or set ${server[0]} to another one.`];
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
