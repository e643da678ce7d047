/** Commands of the documents that the test does not run: how their blocks start, and why. */
export const NOT_RUN: { pages: string[]; starts: string[]; reason: string }[] = [
  {
    pages: ['README.md'],
    starts: ['npm ci && npm run demo'],
    reason: 'CI runs both in a checkout of its own (.ci/run)',
  },
  {
    pages: ['docs/operations/deploying.md'],
    starts: ['test -e .env'],
    reason: 'it needs Docker; test/deploy checks the image and the compose file',
  },
  {
    pages: ['docs/operations/deploying.md'],
    starts: ['kubectl create namespace', 'kubectl -n usher delete'],
    reason: 'it needs a cluster; test/deploy checks the manifests',
  },
  { pages: ['docs/operations/deploying.md'], starts: ['install deploy/systemd'], reason: 'it needs systemd and root' },
  {
    pages: ['docs/embedding.md', 'docs/receiving-node.md', 'packages/receiver/README.md'],
    starts: ['npm install '],
    reason: 'it changes an application of the reader; npm run test:package installs the tarballs',
  },
  {
    pages: ['docs/receiving-shell.md'],
    starts: ['refusal() {'],
    reason: 'it is code of a receiver; languages.spec.ts runs it',
  },
  {
    pages: ['docs/authorisation-code.md'],
    starts: [
      'export USHER_AUTH_URL',
      "printf 'correct",
      'VERIFIER=',
      'CODE=',
      'ANSWER=',
      'curl -s -H "Authorization: Bearer $TOKEN"',
    ],
    reason: 'a browser signs in between the commands; authorisation-code.spec.ts runs them with one',
  },
  {
    pages: ['docs/catching-up.md'],
    starts: ['for _ in $(seq 600)'],
    reason: 'it waits until a receiver has failed; catching-up.spec.ts runs it with one',
  },
  {
    pages: ['docs/internals/chaos.md'],
    starts: ['npm run nightly'],
    reason: 'it takes many minutes, MariaDB and Redis',
  },
  {
    pages: ['docs/internals/performance.md'],
    starts: ['npm ci && npm run bench'],
    reason: 'it measures for half an hour',
  },
  {
    pages: ['docs/operations/backup.md'],
    starts: ['mariadb-dump', "mariadb -e 'CREATE", 'pg_dump', 'kill "$USHER_PID"'],
    reason: 'it dumps and restores the databases of the operator, whose names are examples',
  },
  {
    pages: ['docs/operations/sizing.md'],
    starts: ['mariadb -e "SELECT'],
    reason: 'it needs the three servers of the operator',
  },
  {
    pages: ['docs/operations/egress-proxy.md'],
    starts: ['export WEBHOOK_PROXY'],
    reason: 'the proxy in it is an example; test/webhooks/transport sends through one',
  },
  {
    pages: ['docs/operations/key-rotation.md'],
    starts: ['echo "k2:', 'export USHER_MASTER_KEYS="k2:…'],
    reason: 'the keys are those of the operator; test/clients/keys rotates keys',
  },
  {
    pages: ['docs/operations/logs.md', 'docs/operations/when-things-break.md'],
    starts: ['grep ', 'usher webhook list --reference'],
    reason: 'it searches the log of the operator for a trouble that there was',
  },
];
