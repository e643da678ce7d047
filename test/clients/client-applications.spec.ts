import { expect, test } from '@jest/globals';
import { AuditLog } from '../../src/audit/audit.module.js';
import { ClientApplications } from '../../src/clients/client-applications.js';
import { TestUsher } from '../support/usher.js';

test('changes of one application at the same moment follow one another, and each tells what was before it', async () => {
  const usher = await TestUsher.shared();
  const { id } = await usher.client();
  const applications = usher.running.app.get(ClientApplications, { strict: false });
  await applications.configure(id, { redirectUris: ['https://app.example/'], isTrusted: true });
  const uris = ['https://one.example/', 'https://two.example/', 'https://three.example/'];
  await Promise.all(uris.map((uri) => applications.configure(id, { redirectUris: [uri] })));
  const audit = usher.running.app.get(AuditLog, { strict: false });
  const [last, ...earlier] = await audit.list({ subject: `client:${id}`, action: 'client.application-set', limit: 4 });
  expect(await applications.find(id)).toMatchObject({ redirectUris: [last?.detail?.redirectUris], isTrusted: true });
  const events = [last, ...earlier];
  expect(events.slice(0, 3).map((event) => event?.detail?.redirectUrisBefore)).toEqual(
    events.slice(1).map((event) => event?.detail?.redirectUris),
  );
});
