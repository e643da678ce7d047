import swc from 'unplugin-swc';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Vite's own transformation emits no decorator metadata, so Nest would not know what to inject.
  plugins: [swc.vite({ module: { type: 'es6' } })],
  test: { globals: true, include: ['test/*.e2e-spec.ts'], testTimeout: 30_000, hookTimeout: 30_000 },
});
