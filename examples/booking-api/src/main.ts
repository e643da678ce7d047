import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module';
import { configureApp } from './configure-app';

async function bootstrap() {
  const app = configureApp(await NestFactory.create(AppModule));
  await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
  Logger.log(`Listening at ${await app.getUrl()}`, 'Booking API');
}
void bootstrap();
