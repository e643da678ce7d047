/** The secrets of a deployment, by the names of their files. */
export const SECRETS: Record<string, string> = {
  'database-url': 'mysql://usher:hunter2@db/usher?ssl-mode=VERIFY_IDENTITY',
  'queue-url': 'rediss://:hunter2@queue:6379',
  'master-keys': `k1:${Buffer.alloc(32, 7).toString('base64')}`,
  'ops-password': 'hunter2 hunter2 hunter2',
  'internal-password': 'hunter2 hunter2 orders',
  'metrics-password': 'hunter2 hunter2 metrics',
  'smtp-url': 'smtps://usher:hunter2@mail.example',
};

export const STARTED = {
  url: 'http://10.0.0.1:3000',
  opsUrl: 'http://10.0.0.1:3001',
  firstClient: null,
  firstMember: null,
};
