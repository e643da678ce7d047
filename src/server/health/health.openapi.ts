import { z } from 'zod';
import { answer, named, operations } from '../../http/operation.js';
import { HealthController, notReady } from './health.controller.js';

const Healthy = named('Healthy', z.object({ status: z.literal('ok') }));
const answers = { 200: answer('Yes.', Healthy, { status: 'ok' }) };

export const HEALTH_OPERATIONS = operations('Service', HealthController, {
  live: {
    id: 'isLive',
    summary: 'Whether the process answers',
    answers,
  },
  ready: {
    id: 'isReady',
    summary: 'Whether the service is ready',
    description:
      'Ready means: the database answers, no migration is missing, the process has the master keys of the client secrets, and it is not shutting down. ' +
      'A process of role `worker` also needs a queue that accepts jobs.',
    answers,
    failures: [notReady(['database'])],
  },
});
