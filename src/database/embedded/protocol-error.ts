/** Ends one connection; `code` is the SQLSTATE its client sees. */
export class ProtocolError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}
