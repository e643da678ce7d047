/** An operator's request cannot be carried out. The message is one line that says why. */
export class ClientError extends Error {}

export class UnknownClientError extends ClientError {
  constructor(id: string) {
    super(`there is no client ${id}; "usher client list" shows all clients`);
  }
}
