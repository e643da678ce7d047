import { type INestApplication, ValidationPipe } from '@nestjs/common';

/** What the application and its tests set in the same way. */
export function configureApp(app: INestApplication): INestApplication {
  app.setGlobalPrefix('api');
  app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
  // With it, attempts that are running when SIGTERM comes finish and are recorded.
  return app.enableShutdownHooks();
}
