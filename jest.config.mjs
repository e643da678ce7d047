export default {
  runner: '<rootDir>/test/runner/runner.mjs',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  globalSetup: '<rootDir>/test/runner/global-setup.mjs',
  globalTeardown: '<rootDir>/test/runner/global-teardown.mjs',
  reporters: ['default', '<rootDir>/test/runner/total-reporter.mjs'],
  maxWorkers: 4,
  testTimeout: 180_000,
};
