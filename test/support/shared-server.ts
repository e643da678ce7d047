const listening = (): string[] => process.getActiveResourcesInfo().filter((kind) => kind.endsWith('ServerWrap'));

/** The server of a test process, which a file starts and the runner stops. */
class SharedServer {
  private server: Promise<{ stop(): Promise<void> }> | undefined;

  /** The kinds of the sockets that it listens on, as `process.getActiveResourcesInfo()` has them. */
  listeners: string[] = [];

  open<T extends { stop(): Promise<void> }>(start: () => Promise<T>): Promise<T> {
    this.server ??= this.start(start);
    return this.server as Promise<T>;
  }

  private async start<T extends { stop(): Promise<void> }>(start: () => Promise<T>): Promise<T> {
    const before = listening();
    const server = await start();
    this.listeners = listening();
    for (const kind of before) this.listeners.splice(this.listeners.indexOf(kind), 1);
    return server;
  }

  get isOpen(): boolean {
    return this.server !== undefined;
  }

  async close(): Promise<void> {
    await (await this.server)?.stop();
    this.server = undefined;
    this.listeners = [];
  }
}

export const sharedServer = new SharedServer();
