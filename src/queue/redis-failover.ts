import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type RedisOptions, type StandaloneConnectionOptions } from 'ioredis';
import { queueWarnings } from './repeated-warnings.js';

/** Errors of a server that has become a replica. A script reports READONLY inside its own message before Redis 7. */
const NOT_PRIMARY = /\b(READONLY|UNBLOCKED|MASTERDOWN)\b/;

/** Whether a command failed because its server has become a replica. The connection logs that itself. */
export const isFromReplica = (error: unknown): boolean => error instanceof Error && NOT_PRIMARY.test(error.message);

/** For `reconnectOnError` of ioredis. */
type Reaction = 1 | 2;
/** The command that failed is rejected. */
export const REJECT: Reaction = 1;
/** The command that failed is sent again on the new connection. A replica has not executed any part of it. */
export const RESEND: Reaction = 2;

/** Leaves a server that has become a replica, so that the next connection resolves the address or asks the Sentinels again. */
export const leaveReplica =
  (reaction: Reaction): NonNullable<RedisOptions['reconnectOnError']> =>
  (error) => {
    if (!isFromReplica(error)) return false;
    warn();
    return reaction;
  };

/** ioredis's connector for one server, except that it does not accept a replica. Its connector for Sentinels does the same. */
export class PrimaryConnector extends AbstractConnector {
  private readonly options: StandaloneConnectionOptions;

  constructor(options: unknown) {
    super((options as StandaloneConnectionOptions).disconnectTimeout ?? 0);
    this.options = options as StandaloneConnectionOptions;
  }

  /** Called with INFO before a connection is used. After false, ioredis connects again with a growing delay. */
  override check({ role }: { role?: string }): boolean {
    if (!isReplica(role)) return true;
    warn();
    return false;
  }

  override async connect(): Promise<Socket> {
    const { host = 'localhost', port = 6379, tls } = this.options;
    this.connecting = true;
    const stream = tls ? connectTls({ host, port, ...tls }) : connectTcp({ host, port });
    stream.once('error', (error) => (this.firstError = error));
    this.stream = stream;
    return corked(stream);
  }
}

/** Sends the commands of one turn of the event loop together, because each write costs a system call. */
function corked(socket: Socket): Socket {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = (...args: unknown[]): boolean => {
    if (socket.writableCorked === 0) {
      socket.cork();
      process.nextTick(() => socket.uncork());
    }
    return write(...args);
  };
  return socket;
}

export const isReplica = (role: string | undefined): boolean => role === 'slave' || role === 'replica';

function warn(): void {
  queueWarnings.warn(
    'this Redis is a replica now and takes no jobs (failover?); connecting again until it is a primary',
  );
}
