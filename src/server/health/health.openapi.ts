import { z } from 'zod';
import { named, operation, type Operation } from '../../http/operation.js';
import { HealthController, notReady } from './health.controller.js';

const Healthy = named('Healthy', z.object({ status: z.literal('ok') }));
const answers = { 200: { description: 'Yes.', schema: Healthy, example: { status: 'ok' } } };

export const HEALTH_OPERATIONS: Operation[] = [
  operation(HealthController, 'live', {
    id: 'isLive',
    tag: 'Service',
    summary: 'Whether the process answers',
    answers,
  }),
  operation(HealthController, 'ready', {
    id: 'isReady',
    tag: 'Service',
    summary: 'Whether the service is ready',
    description:
      'Ready means: the database answers, no migration is missing, and the process is not shutting down. ' +
      'A process of role `worker` also needs a queue that accepts jobs.',
    answers,
    failures: [notReady(['database'])],
  }),
];
