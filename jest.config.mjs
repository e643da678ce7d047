export default {
  runner: '<rootDir>/test/runner/runner.mjs',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  // They need programs beside Node: `npm run test:services` and `npm run test:documents` run them.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/services/', '<rootDir>/test/documents/'],
  globalSetup: '<rootDir>/test/runner/global-setup.mjs',
  globalTeardown: '<rootDir>/test/runner/global-teardown.mjs',
  reporters: ['default', '<rootDir>/test/runner/total-reporter.mjs'],
  maxWorkers: 5,
};
