export default {
  runner: '<rootDir>/test/runner/runner.mjs',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  // They start and stop servers: `npm run test:services` runs them.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/servers/'],
  globalSetup: '<rootDir>/test/runner/global-setup.mjs',
  globalTeardown: '<rootDir>/test/runner/global-teardown.mjs',
  reporters: ['default', '<rootDir>/test/runner/total-reporter.mjs'],
  maxWorkers: 4,
  testTimeout: 180_000,
};
