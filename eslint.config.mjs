import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['**/dist/', 'data/', 'coverage/'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strict],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      eqeqeq: 'error',
      'max-lines': ['error', 250],
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only src/server/settings reads the environment.' },
        { object: 'URL', property: 'canParse', message: 'Node 20 answers wrongly; use parseUrl of values/urls.' },
      ],
    },
  },
  {
    files: ['src/server/settings/settings.ts', 'packages/receiver/src/cli.ts', 'test/**/*.ts', 'bench/**/*.ts'],
    rules: { 'no-restricted-properties': 'off', '@typescript-eslint/no-non-null-assertion': 'off' },
  },
  {
    // An application of its own reads its own environment.
    files: ['examples/**/*.ts'],
    rules: { 'no-restricted-properties': 'off' },
  },
  {
    // node:test waits for its tests itself.
    files: ['examples/*/test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', name: 'test', package: 'node:test' }] },
      ],
    },
  },
);
