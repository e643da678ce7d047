import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import { ClientApplications } from '../clients/client-applications.js';
import { type Client, type ClientSecret, LEAKED } from '../clients/client.entity.js';
import { ClientsService } from '../clients/clients.service.js';
import { ClientSecrets } from '../clients/secrets/client-secrets.js';
import { SecretRotation } from '../clients/secrets/secret-rotation.js';
import { countRequest, type MinuteLimit } from '../http/minute-limit.js';
import { invalidFields, type Problem, unprocessable, validated } from '../http/problem.js';
import { Limits } from '../limits/limits.module.js';
import { idempotencyKeyErrors } from '../http/idempotency-key.js';
import type { Actor } from '../values/actor.js';
import { requiredId } from '../values/identifier.js';
import { TestNotifications, type TestResult } from '../webhooks/api/test-notifications.js';
import { DeliveryPauses } from '../webhooks/delivery-pauses.js';
import { time } from '../webhooks/webhook-view.js';
import {
  type AccountView,
  type ChangedNotifyUrl,
  NewNotifyUrl,
  type NewSecret,
  RotationRequest,
} from './account-view.js';

const PRESENTED = z.object({ presented: z.array(z.string()) });

/** For each secret of a client, and for its portal: such changes are rare, and each is a row of the audit. */
export const CHANGE_LIMIT: MinuteLimit = {
  name: 'account-changes',
  count: 10,
  what: 'changes of secrets or the contact',
};

/** What a client reads and changes about itself. */
@Injectable()
export class ClientAccount {
  constructor(
    private readonly limits: Limits,
    private readonly clients: ClientsService,
    private readonly applications: ClientApplications,
    private readonly secrets: ClientSecrets,
    private readonly rotation: SecretRotation,
    private readonly tests: TestNotifications,
    private readonly pauses: DeliveryPauses,
  ) {}

  /** 404 for an unknown client. */
  async show(clientId: string): Promise<AccountView> {
    return (await this.read(clientId)).account;
  }

  /** With what only operators see. */
  async read(clientId: string): Promise<{ client: Client; isTrusted: boolean; account: AccountView }> {
    const [client, application, pairs, pause] = await Promise.all([
      this.clients.get(clientId),
      this.applications.find(clientId),
      this.secrets.signingPairs([clientId]),
      this.pauses.find(`client:${clientId}`),
    ]);
    const pair = pairs.get(clientId);
    const account = {
      id: client.id,
      name: client.name,
      notifyUrl: client.notifyUrl,
      grants: client.grantTypes,
      redirectUris: application?.redirectUris ?? [],
      secrets: pair
        ? [stateOf(pair.current, 'X-Signature'), ...(pair.next ? [stateOf(pair.next, 'X-Signature-Next')] : [])]
        : [],
      deliveriesPaused: pause && { since: time(pause.since), reason: pause.reason },
      createdAt: time(client.createdAt),
    };
    return { client, isTrusted: application?.isTrusted ?? false, account };
  }

  /**
   * `input` is a `NewNotifyUrl`. Sends a signed sample to it, and changes the URL only if the answer is 2xx. Pending
   * notifications still go to the URL that they were made with. 400 for a URL that is not allowed, 422 if the sample
   * was not accepted, 429 above the limit of samples. `checkAgain` throws if the caller may not change the client any more: a
   * receiver may take 30 s to answer.
   */
  async setNotifyUrl(
    client: Pick<Client, 'id'>,
    input: unknown,
    actor?: Actor,
    checkAgain?: () => Promise<void>,
  ): Promise<ChangedNotifyUrl> {
    const { notifyUrl } = validated(NewNotifyUrl, input, 'body', (given) =>
      this.clients.notifyUrlErrors(given.notifyUrl),
    );
    requiredId(client?.id, 'the id of the client');
    const test = await this.tests.sendTo(client, notifyUrl);
    if (test.outcome !== 'delivered') throw sampleRefused(test);
    await checkAgain?.();
    await this.clients.setNotifyUrl(client.id, notifyUrl, actor);
    return { notifyUrl, test };
  }

  /**
   * Throws 429 above {@link CHANGE_LIMIT}. `by`: the id of the secret or `portal`, each of which counts apart, so that whoever
   * has a leaked secret cannot keep its owner from replacing it.
   */
  countChange(clientId: string, by: string | null = null): void {
    countRequest(this.limits, CHANGE_LIMIT, `${clientId} ${by ?? ''}`);
  }

  /**
   * Issues a new secret; the old one stays valid for the `overlap` of `input`, 24 hours by default. The same `idempotencyKey` gets the same answer again while
   * both are valid, so that a lost response locks nobody out. 409 while another rotation is in progress. `secretId`: of the
   * secret in the request; 401 if it is no longer valid. See {@link countChange}.
   */
  async rotateSecret(
    clientId: string,
    idempotencyKey: string | undefined,
    actor?: Actor,
    input: unknown = {},
    secretId: string | null = null,
  ): Promise<NewSecret> {
    checkRotationKey(idempotencyKey);
    const { overlap } = validated(RotationRequest, input);
    this.countChange(clientId, secretId);
    const { secret, oldValidUntil } = await this.rotation.rotate(clientId, overlap, {
      repeatKey: idempotencyKey,
      secretId,
      actor,
    });
    return { id: clientId, secret, oldSecretValidUntil: time(oldValidUntil) };
  }

  /**
   * Ends the overlap; only the new secret stays valid. `presented`: the possible readings of the secret in the request;
   * 409 unless one is the new secret. Without a rotation it changes nothing, so that it can be repeated.
   */
  async finishRotation(
    clientId: string,
    presented: string[],
    actor?: Actor,
    secretId: string | null = null,
  ): Promise<AccountView> {
    this.countChange(clientId, secretId);
    await this.rotation.finishWith(clientId, validated(PRESENTED, { presented }).presented, actor);
    this.secrets.forget(clientId);
    return this.show(clientId);
  }
}

export const sampleRefused = (test: TestResult): Problem => {
  const why = `${test.error ?? test.outcome}. ${test.diagnosis?.remedy ?? ''}`.trim();
  return unprocessable(`the Notify URL is unchanged, because it did not accept a sample: ${why}`).including({ test });
};

const stateOf = ({ createdAt, expiresAt, digest }: ClientSecret, signs: 'X-Signature' | 'X-Signature-Next') => ({
  createdAt: time(createdAt),
  expiresAt: time(expiresAt),
  signs,
  hasLeaked: digest === LEAKED,
});

/** Throws 400 for a key that is missing or malformed. */
export function checkRotationKey(key: string | undefined): void {
  const errors = key === undefined ? [MISSING_KEY] : idempotencyKeyErrors(key);
  if (errors.length > 0) throw invalidFields(errors);
}

const MISSING_KEY = {
  header: 'Idempotency-Key',
  message: 'is missing; send a new random one, and send the same again if the answer is lost',
};
