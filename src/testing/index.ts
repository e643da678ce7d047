import type { INestApplicationContext } from '@nestjs/common';
import { TokenService } from '../auth/tokens/token.service.js';
import { ClientsService } from '../clients/clients.service.js';

export { RecordingWebhookModule, RecordingWebhooks } from './recording-webhooks.js';

/** Issues a real access token, for routes with BearerGuard. The application must import AuthModule. */
export async function issueAccessToken(application: INestApplicationContext, clientId: string): Promise<string> {
  const client = await application.get(ClientsService, { strict: false }).get(clientId);
  const tokens = application.get(TokenService, { strict: false });
  return (await tokens.token(client, { grant_type: 'client_credentials' })).access_token;
}
