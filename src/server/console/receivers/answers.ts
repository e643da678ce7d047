import { type EntityManager, In } from 'typeorm';
import { type Webhook, WebhookAttempt } from '../../../webhooks/webhook.entity.js';
import { namedClients, type NamedClient } from '../overview/overview-data.js';

/** An attempt that has ended. */
export interface Answer {
  client: NamedClient;
  attempt: WebhookAttempt;
}

/** The attempts at one Notify URL. */
export interface UrlAnswers {
  notifyUrl: string;
  attempts: number;
  failures: number;
  /** The median of their durations. */
  medianMs: number;
  last: WebhookAttempt;
}

export interface Answers {
  /** The newest ones. */
  last: Answer[];
  /** Of each Notify URL. Those with the most failures first. */
  urls: UrlAnswers[];
}

/** The attempts of so many notifications are read. */
export const MAX_NOTIFICATIONS = 100;
const MAX_ANSWERS = 25;
const MAX_URLS = 50;

/** The answers to the newest of these webhooks. */
export async function answersTo(manager: EntityManager, webhooks: Webhook[]): Promise<Answers> {
  // Ids begin with their time, so these are the newest of all clients.
  const newest = [...webhooks].sort((one, other) => (one.id < other.id ? 1 : -1)).slice(0, MAX_NOTIFICATIONS);
  const byId = new Map(newest.map((webhook) => [webhook.id, webhook]));
  const attempts = await manager.find(WebhookAttempt, { where: { webhookId: In([...byId.keys()]) } });
  const ended = attempts
    .filter(({ durationMs }) => durationMs !== null)
    .sort((one, other) => other.startedAt - one.startedAt);
  const named = await namedClients(
    manager,
    newest.map(({ clientId }) => clientId),
  );
  const last = ended.slice(0, MAX_ANSWERS).map((attempt) => ({
    client: named(byId.get(attempt.webhookId)?.clientId ?? ''),
    attempt,
  }));
  return { last, urls: byUrl(ended, ({ webhookId }) => byId.get(webhookId)?.notifyUrl ?? '') };
}

/** `ended` has the newest first. */
function byUrl(ended: WebhookAttempt[], urlOf: (attempt: WebhookAttempt) => string): UrlAnswers[] {
  const groups = new Map<string, [WebhookAttempt, ...WebhookAttempt[]]>();
  for (const attempt of ended) {
    const group = groups.get(urlOf(attempt));
    if (group) group.push(attempt);
    else groups.set(urlOf(attempt), [attempt]);
  }
  return [...groups]
    .map(([notifyUrl, attempts]) => ({
      notifyUrl,
      attempts: attempts.length,
      failures: attempts.filter(({ error }) => error !== null).length,
      medianMs: median(attempts.map(({ durationMs }) => durationMs ?? 0)),
      last: attempts[0],
    }))
    .sort((one, other) => other.failures - one.failures || other.attempts - one.attempts)
    .slice(0, MAX_URLS);
}

function median(values: number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
