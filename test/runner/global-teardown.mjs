import { rmSync } from 'node:fs';

export default function teardown() {
  if (process.env.USHER_TEST_FOLDER) rmSync(process.env.USHER_TEST_FOLDER, { recursive: true, force: true });
}
