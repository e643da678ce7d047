import { Module } from '@nestjs/common';
import { WebhookModule } from '../webhooks/webhook.module.js';
import { AccountController, AccountGuard } from './account.controller.js';
import { ClientAccount } from './client-account.js';

/** {@link ClientAccount} without routes. */
@Module({ imports: [WebhookModule], providers: [ClientAccount], exports: [ClientAccount] })
export class AccountModule {}

/**
 * The routes with which a client reads and changes itself: `GET /client`, `PUT /client/notify-url`,
 * `POST /client/secret/rotate` and `POST /client/secret/finish`. They take the client's id and secret by HTTP Basic.
 */
@Module({ imports: [AccountModule], controllers: [AccountController], providers: [AccountGuard] })
export class ClientRoutesModule {}
