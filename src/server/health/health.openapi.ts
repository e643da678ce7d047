import { z } from 'zod';
import { named, type Operation } from '../../http/operation.js';

const Healthy = z.object({ status: z.literal('ok') }).register(named, { id: 'Healthy' });
const answers = { 200: { description: 'Yes.', schema: Healthy, example: { status: 'ok' } } };

export const HEALTH_OPERATIONS: Operation[] = [
  {
    id: 'isLive',
    method: 'get',
    path: '/health/live',
    tag: 'Service',
    summary: 'Whether the process answers',
    security: [],
    answers,
  },
  {
    id: 'isReady',
    method: 'get',
    path: '/health/ready',
    tag: 'Service',
    summary: 'Whether the service is ready',
    description:
      'Ready means: the database answers, no migration is missing, and the process is not shutting down. ' +
      'A process of role `worker` also needs a queue that accepts jobs.',
    security: [],
    answers,
    failures: [{ status: 503, detail: 'the database is not ready' }],
  },
];
