import 'reflect-metadata';
import { Controller, Get, Injectable, Module, UseGuards } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AuthGuard, PassportStrategy } from '@nestjs/passport';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { BasicStrategy } from 'passport-http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { basic, type TestClient, TestUsher } from '../support/usher.js';

/** The Basic strategy of an application: Passport's default name and the application's own users. */
@Injectable()
class StaffStrategy extends PassportStrategy(BasicStrategy) {
  validate(user: string, password: string): string | null {
    return user === 'staff' && password === 'popcorn' ? user : null;
  }
}

@Controller('rota')
@UseGuards(AuthGuard('basic'))
class RotaController {
  @Get()
  rota(): string[] {
    return [];
  }
}

/** Guarded by passport's own middleware with Usher's strategy. Passport knows the strategy of the last Usher. */
@Controller('programme')
@UseGuards(AuthGuard('usher-basic'))
class ProgrammeController {
  @Get()
  programme(): string[] {
    return [];
  }
}

@Module({ providers: [StaffStrategy], controllers: [RotaController, ProgrammeController] })
class StaffModule {}

const STAFF = basic('staff', 'popcorn');

let staff: NestFastifyApplication;
let first: TestUsher;
let second: TestUsher;
let clientOfFirst: TestClient;
let clientOfSecond: TestClient;

beforeAll(async () => {
  first = await TestUsher.start();
  staff = await NestFactory.create<NestFastifyApplication>(StaffModule, new FastifyAdapter(), { logger: false });
  await staff.listen(0, '127.0.0.1');
  second = await TestUsher.start();
  clientOfFirst = await first.client();
  clientOfSecond = await second.client();
});
afterAll(async () => {
  await Promise.all([first.stop(), second.stop(), staff.close()]);
});

const tokenFrom = async (usher: TestUsher, authorization: string): Promise<number> =>
  (await usher.request('POST', '/auth/token', { authorization }, { grant_type: 'client_credentials' })).status;

const statusOf = async (path: string, authorization: string): Promise<number> =>
  (await fetch(`${await staff.getUrl()}${path}`, { headers: { authorization } })).status;
const rotaFor = (authorization: string): Promise<number> => statusOf('/rota', authorization);

test('the application and each Usher accept only their own users, in any order of registration', async () => {
  expect(await tokenFrom(first, clientOfFirst.basic)).toBe(200);
  expect(await tokenFrom(second, clientOfSecond.basic)).toBe(200);
  expect(await rotaFor(STAFF)).toBe(200);
  for (const stranger of [STAFF, clientOfSecond.basic]) expect(await tokenFrom(first, stranger)).toBe(401);
  for (const stranger of [STAFF, clientOfFirst.basic]) expect(await tokenFrom(second, stranger)).toBe(401);
  for (const stranger of [clientOfFirst.basic, clientOfSecond.basic]) expect(await rotaFor(stranger)).toBe(401);
});

test('passport’s AuthGuard accepts Usher’s clients by the name of the strategy', async () => {
  expect(await statusOf('/programme', clientOfSecond.basic)).toBe(200);
  expect(await statusOf('/programme', `Bearer ${clientOfSecond.secret}`)).toBe(401);
  const more = basic(clientOfSecond.id, `${clientOfSecond.secret}:anything`);
  for (const stranger of [STAFF, clientOfFirst.basic, more]) expect(await statusOf('/programme', stranger)).toBe(401);
});
