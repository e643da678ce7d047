/** A fault that keeps a command from starting; its message says what to do. */
export class StartUpError extends Error {}
