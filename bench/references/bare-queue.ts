import { Queue } from 'bullmq';
import { newKeyPrefix, openRedis, REDIS_URL } from '../harness/backend.js';
import type { Receipt } from '../harness/receiver.js';
import { reference, ServerProcess } from '../harness/server-process.js';

/** As Usher's default, WEBHOOK_CONCURRENCY. */
export const CONCURRENCY = '256';
/** Of one connection. */
const HOP_BY_HOP = ['host', 'connection', 'content-length', 'transfer-encoding'];

/** One request as Usher sends it, which the references send too. */
export interface Notification {
  url: string;
  headers: Record<string, string>;
  body: string;
  /** The order's key in the body. */
  key: string;
}

export function notificationOf({ headers, body }: Receipt, url: string): Notification {
  const sent = Object.entries(headers as Record<string, string>).filter(([name]) => !HOP_BY_HOP.includes(name));
  return { url, headers: Object.fromEntries(sent), body, key: keyOf(body) };
}

/** The key of the order that a notification is about. */
export const keyOf = (body: string): string => (JSON.parse(body) as { data: { key: string } }).data.key;

/** A BullMQ worker that only POSTs, and its queue. */
export async function startBareQueue(notification: Notification) {
  const settings = { REDIS_URL, KEY_PREFIX: newKeyPrefix() };
  const queue = new Queue<{ key: string }>('bare', { connection: openRedis(), prefix: settings.KEY_PREFIX });
  const forWorker = { ...settings, NOTIFICATION: JSON.stringify(notification), CONCURRENCY };
  return { queue, settings, worker: await ServerProcess.start(reference('bare-worker.mjs'), forWorker) };
}
