import { diagnose, type Diagnosis } from './diagnosis.js';
import { type ReplayMemory, verifyOnce } from './replay.js';
import { InvalidNotificationError, type Notification, verifyNotification, type VerifyOptions } from './verify.js';

/** Options of all middleware. */
export interface ReceiverOptions {
  /** The client secret, or a function that returns it, for example from a configuration that is loaded later. */
  secret: string | (() => string | Promise<string>);
  /** See {@link VerifyOptions}. Default: 300 seconds. */
  toleranceSeconds?: number;
  /** Refuses a request that was already received. Default: not checked. */
  memory?: ReplayMemory;
  /**
   * Called for each refused request, for your log; the sender gets only the status. While you build the receiver, `diagnose()`
   * explains a wrong signature. It is too much work for every forged request in production.
   */
  onRefused?: (refusal: InvalidNotificationError, diagnose: () => Diagnosis) => void;
}

/** Says in the response only that the request was refused: a forger must not learn why. Frameworks answer with its status. */
export class RefusedNotificationError extends Error {
  /** The properties of an error of the package `http-errors`, which Nest and Express know; Fastify reads `statusCode`. */
  readonly status: number;
  readonly expose = true;

  constructor(readonly statusCode: 401 | 413) {
    super(statusCode === 401 ? 'not a genuine notification' : 'the body is too large');
    this.status = statusCode;
  }
}

/** The largest body that is read, in bytes. A notification has less than 2 KiB. */
export const MAX_BODY_BYTES = 64 * 1_024;

/** @throws RefusedNotificationError if the request is not a genuine notification */
export async function verifiedRequest(
  rawBody: Uint8Array,
  headers: VerifyOptions['headers'],
  { secret: given, toleranceSeconds, memory, onRefused }: ReceiverOptions,
): Promise<Notification> {
  const secret = typeof given === 'string' ? given : await given();
  const options = { rawBody, headers, secret, ...(toleranceSeconds !== undefined && { toleranceSeconds }) };
  try {
    return memory ? await verifyOnce({ ...options, memory }) : verifyNotification(options);
  } catch (error) {
    if (!(error instanceof InvalidNotificationError)) throw error;
    onRefused?.(error, () => diagnose(options) ?? replayed(error));
    throw new RefusedNotificationError(401);
  }
}

/** A replayed request has a valid signature, so `diagnose` finds no fault in it. */
const replayed = ({ reason, message }: InvalidNotificationError): Diagnosis => ({
  reason,
  differs: 'nonce',
  hint: `${message}: its X-Nonce-Str is already stored`,
  steps: null,
});

/**
 * The body as it was received: from a parser that keeps the bytes (`express.raw()`, Nest's `rawBody: true`) or the text, else from
 * the request itself.
 * @throws TypeError if a parser has already replaced the bytes
 */
export async function rawBodyOf(request: IncomingRequest): Promise<Uint8Array> {
  const { rawBody, body } = request;
  if (rawBody instanceof Uint8Array) return rawBody;
  if (body instanceof Uint8Array) return body;
  // Fastify parses plain text to a string. Its request is no stream, and one without a body is not parsed.
  if (typeof body === 'string') return Buffer.from(body);
  if (body === undefined && request[Symbol.asyncIterator] === undefined) return new Uint8Array();
  if (request.readableEnded || request[Symbol.asyncIterator] === undefined) throw new TypeError(ALREADY_PARSED);
  return collect(request as AsyncIterable<Uint8Array>);
}

/** The parts of a request of Express or Fastify that are needed. The types of these packages are not. */
export interface IncomingRequest {
  headers: Record<string, string | string[] | undefined>;
  body?: unknown;
  rawBody?: unknown;
  readableEnded?: boolean;
  notification?: Notification;
  [Symbol.asyncIterator]?: () => AsyncIterator<unknown>;
}

const ALREADY_PARSED =
  'the body was already parsed, so its bytes are gone; in Express put the receiver, or express.raw({ type: "*/*" }) for its path, ' +
  'before express.json(); in Nest set rawBody: true';

/** @throws RefusedNotificationError if the body is too large */
export async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) throw new RefusedNotificationError(413);
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}
