export { issueAccessToken } from './issue-access-token.js';
export { RecordingWebhookModule, RecordingWebhooks } from './recording-webhooks.js';
