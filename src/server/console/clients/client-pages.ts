import type { AuditAction, AuditDetail } from '../../../audit/audit-event.entity.js';
import { AuditLog } from '../../../audit/audit.module.js';
import { ClientAccount } from '../../../account/client-account.js';
import { ClientApplications } from '../../../clients/client-applications.js';
import { ClientsService } from '../../../clients/clients.service.js';
import { SecretRotation } from '../../../clients/secrets/secret-rotation.js';
import type { Html } from '../../../http/html.js';
import { checkField, type Texts } from '../../../http/pages/fields.js';
import { forbidden, unprocessable } from '../../../http/problem.js';
import { parseDuration } from '../../../values/duration.js';
import { hostOf } from '../../../values/urls/notify-url.js';
import { TestNotifications } from '../../../webhooks/api/test-notifications.js';
import { digestToken } from '../../../auth/tokens/token.js';
import { OperatorSessions } from '../../../operators/operator-sessions.js';
import { PORTAL_PATH, PortalLinks, PortalSessions } from '../../../portal/portal.js';
import { Certifications } from '../../../webhooks/certification/certification.module.js';
import { DeliveryPauses } from '../../../webhooks/delivery-pauses.js';
import { WebhookList } from '../../../webhooks/search/webhook-list.js';
import { certified, pauseActions, testOutcome } from '../receivers/receiver-parts.js';
import { type Action, definePage, pagesWith, type Visit } from '../../../http/pages/site.js';
import { type ClientDetails, clientDetails } from './clients-data.js';
import { applicationFields, applicationParts, CLIENT_FIELDS, clientPage, settingsPage } from './client-page.js';
import { issued, portalActions } from './clients-pages.js';

/** The page of one client. Each change is made by the service that the command line uses too. */
export const clientPages = pagesWith(
  [
    WebhookList,
    ClientAccount,
    ClientsService,
    ClientApplications,
    SecretRotation,
    TestNotifications,
    DeliveryPauses,
    PortalLinks,
    PortalSessions,
    Certifications,
    AuditLog,
  ],
  (list, account, clients, applications, rotation, tests, pauses, links, sessions, certifications, audit, base) => {
    const operators = base.app.get(OperatorSessions);
    const reader = clientDetails(account, list, audit, base);

    /** The actions that a client has in its portal too. */
    const own = (isOperator: boolean): Record<string, Action<ClientDetails>> => ({
      'notify-url': {
        button: 'Set the Notify URL',
        fields: ({ client: { notifyUrl } }, { query }) => [
          {
            ...CLIENT_FIELDS.notifyUrl,
            value: query.notifyUrl ?? notifyUrl ?? '',
            seen: notifyUrl ?? '',
            isRequired: true,
          },
          ...(isOperator ? [checkField('isTested', TESTED, true)] : []),
        ],
        done: 'The Notify URL is set. Pending notifications still go to the URL that they were made with.',
        run: async ({ notifyUrl = '', isTested }, visit) => {
          const { id, actor } = visit;
          const url = notifyUrl.trim();
          if (isOperator && isTested !== 'yes') await clients.setNotifyUrl(id, url, actor);
          else await account.setNotifyUrl(await clients.get(id), { notifyUrl: url }, actor, () => checkSession(visit));
        },
      },
      test: {
        button: 'Send a test notification to the present URL',
        answer: async (_, visit) => {
          const client = await clients.get(visit.id);
          if (client.notifyUrl === null) throw unprocessable('the client has no Notify URL; set one first');
          const result = await tests.sendTo(client, client.notifyUrl);
          const detail = { host: hostOf(result.notifyUrl), outcome: result.outcome };
          return tested('client.tested', visit, testOutcome(result), detail);
        },
      },
      contact: {
        button: 'Set the contact',
        fields: ({ client }) => [{ ...CLIENT_FIELDS.contact, value: client.contact ?? '', hint: CONTACT_HINT }],
        done: 'The contact is set.',
        run: ({ contact = '' }, visit) => clients.setContact(counted(visit), contact.trim() || null, visit.actor),
      },
      rotate: {
        button: 'Issue a new secret',
        fields: () => [
          { name: 'overlap', label: 'How long both secrets are valid', options: OVERLAPS.rotate, hint: OVERLAP_HINT },
        ],
        confirm: isOperator
          ? 'The integrator will get the new secret from me'
          : 'I will put the new secret into our receiver',
        answer: (fields, visit) => rotate('rotate', fields, visit),
      },
      leaked: {
        button: 'Refuse the leaked secret, issue a new one',
        fields: () => [
          {
            name: 'overlap',
            label: 'How long the leaked secret still signs notifications',
            options: OVERLAPS.leaked,
          },
          checkField('revokeTokens', 'Also revoke all tokens', true),
        ],
        confirm: `${isOperator ? 'The integrator gets' : 'We get'} no token until the new secret is in use`,
        answer: (fields, visit) => rotate('leaked', fields, visit),
      },
      replace: {
        button: 'Replace the new secret, which nobody received',
        confirm: 'Nobody uses the new secret',
        answer: (_, visit) => issue(visit, rotation.replace(counted(visit), visit.actor)),
      },
      'finish-rotation': {
        button: 'End the old secret now',
        confirm: `${isOperator ? 'The integrator uses' : 'We use'} the new secret`,
        done: 'Only the new secret is valid now.',
        run: (_, visit) => rotation.finish(counted(visit), visit.actor),
      },
    });

    /** Throws 403 if the session has ended. A request with HTTP Basic has none. */
    async function checkSession({ clientId, viewer }: Visit) {
      const session = viewer?.session ?? null;
      if (session === null || (await (clientId === null ? operators : sessions).find(session, false))) return;
      throw forbidden('you are no longer signed in, so nothing was changed');
    }

    /** The id of the client, for a change that clients may not make without limit. */
    function counted(visit: Visit) {
      if (visit.clientId !== null) account.countChange(visit.clientId, 'portal');
      return visit.id;
    }

    /** The page with the result of a test. It is not stored, so no other page shows it. */
    async function tested(action: AuditAction, visit: Visit, result: Html, detail: AuditDetail) {
      await audit.record({ action, subject: `client:${visit.id}`, actor: visit.actor, detail });
      return visit.show(result);
    }

    async function rotate(form: keyof typeof OVERLAPS, { overlap = '', revokeTokens }: Texts, visit: Visit) {
      if (!Object.hasOwn(OVERLAPS[form], overlap)) throw unprocessable('choose how long the old secret is used');
      const options = {
        hasLeaked: form === 'leaked',
        revokeTokens: revokeTokens === 'yes',
        keptSession: digestToken(visit.viewer?.session ?? ''),
        actor: visit.actor,
      };
      return issue(visit, rotation.rotate(counted(visit), parseDuration(overlap) ?? 0, options));
    }

    /** No other page may ever show the secret. */
    async function issue(visit: Visit, rotating: ReturnType<SecretRotation['replace']>) {
      const rotated = await rotating;
      const client = await clients.get(visit.id);
      return issued(visit, `New secret of ${client.name}`, { client, ...rotated });
    }

    return [
      definePage({
        path: '/ops/clients/:id',
        read: ({ id }) => reader.read(id),
        show: async (visit, details) => ({
          title: details.client.name,
          body: clientPage(visit, details, await links.list(visit.id)),
        }),
        actions: {
          ...own(true),
          ...portalActions(links),
          rename: {
            button: 'Rename',
            fields: ({ client }) => [{ ...CLIENT_FIELDS.name, value: client.name }],
            done: 'The client has its new name.',
            run: ({ name = '' }, { id, actor }) => clients.rename(id, name.trim(), actor),
          },
          application: {
            button: 'Set grants and redirect URIs',
            fields: ({ client, account, isTrusted }) => applicationParts({ ...client, ...account, isTrusted }),
            done: 'Grants and redirect URIs are set.',
            run: (fields, { id, actor }) => applications.configure(id, applicationFields(fields), actor),
          },
          'revoke-tokens': {
            button: 'Revoke all tokens',
            confirm: 'The client must request new tokens',
            done: 'All tokens are revoked. Within 5 s every process refuses them.',
            run: (_, { id, actor }) => clients.revokeTokens(id, actor),
          },
          ...pauseActions('client', pauses),
          disable: {
            button: 'Disable the client',
            hint: 'Its credentials and its tokens are refused. Pending notifications are still delivered.',
            confirm: 'The client cannot use the API any more',
            done: 'The client is disabled, and its tokens are revoked.',
            run: (_, { id, actor }) => clients.setDisabled(id, true, actor),
          },
          enable: {
            button: 'Enable the client',
            done: 'The client is enabled. It must request new tokens.',
            run: (_, { id, actor }) => clients.setDisabled(id, false, actor),
          },
        },
      }),
      definePage({
        path: `${PORTAL_PATH}/settings`,
        read: ({ id }) => reader.read(id),
        show: (visit, details) => ({ title: 'Settings', body: settingsPage(visit, details) }),
        actions: {
          ...own(false),
          certify: {
            button: 'Certify the receiver',
            answer: async (_, visit) => {
              const result = await certifications.run(visit.id);
              return tested('client.certified', visit, certified(result), { passed: result.passed });
            },
          },
        },
      }),
    ];
  },
);

const TESTED = 'Send a signed sample to it first, and change nothing unless the answer is 2xx';
const OVERLAP_HINT =
  'During this time X-Signature is made with the old secret and X-Signature-Next with the new one, so no notification is lost while the receiver changes its secret.';
const CONTACT_HINT = 'This address gets an e-mail when a Notify URL fails. Leave it empty to send none.';

/** How long the old secret is used, for each form that replaces it. After a leak it only signs. */
const OVERLAPS = {
  rotate: { '24h': '24 hours', '7d': '7 days', '1h': '1 hour', '0s': 'none: the old secret ends at once' },
  leaked: { '60m': '60 minutes', '15m': '15 minutes', '0s': 'not at all' },
};
