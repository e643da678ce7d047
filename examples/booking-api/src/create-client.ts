import { NestFactory } from '@nestjs/core';
import { ClientsService } from 'nest-usher';
import { AppModule } from './app.module';

/** Creates an API client and prints its id and its secret: `npm run client -- NAME NOTIFY_URL`. */
async function createClient([name, notifyUrl]: string[]) {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error'] });
  const { client, secret } = await app.get(ClientsService, { strict: false }).create(name, notifyUrl);
  console.log(`CLIENT_ID=${client.id}\nCLIENT_SECRET=${secret}`);
  await app.close();
}
if (process.argv.length !== 4) {
  console.error('Usage: npm run client -- NAME NOTIFY_URL');
  process.exit(1);
}
void createClient(process.argv.slice(2));
