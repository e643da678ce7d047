import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { AppModule } from '../src/app.module';
import { configureApp } from '../src/configure-app';

/** Starts the application at a free port. */
export async function startApp(
  builder = Test.createTestingModule({ imports: [AppModule] }),
): Promise<INestApplication> {
  const module = await builder.compile();
  const app = configureApp(module.createNestApplication());
  await app.listen(0, '127.0.0.1');
  return app;
}
