import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { SETTINGS } from '../../src/server/settings/server-options.js';
import { loadConfig } from '../../src/server/settings/settings.js';

interface Service {
  environment: Record<string, string>;
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  deploy?: { replicas: number };
  logging?: { driver: string; options: Record<string, string> };
  ports?: string[];
  restart?: string;
  stop_grace_period?: string;
}
const TEXT = readFileSync('docker-compose.yml', 'utf8');
const { services } = parse(TEXT, { merge: true }) as { services: Record<string, Service> };
const USHER = ['api', 'worker', 'migrate'];
/** The Dockerfile sets these; a process in a container has no reason to change them. */
const OF_THE_IMAGE = ['HOST', 'PORT'];

/** What compose makes of a value with these variables. */
function interpolated(value: string, variables: Record<string, string>): string {
  return value.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, operator?: string, rest = '') => {
    const given = variables[name] ?? '';
    if (given === '' && operator === '?') throw new Error(`required variable ${name} is missing a value: ${rest}`);
    return given === '' ? rest : given;
  });
}

const environmentOf = (service: string, variables: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(services[service]!.environment).map(([name, value]) => [
      name,
      interpolated(String(value), variables),
    ]),
  );

const VARIABLES = {
  MYSQL_PASSWORD: 'hunter2',
  USHER_MASTER_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
  OPS_USER: 'ops',
  OPS_PASSWORD: 'hunter2 hunter2 hunter2',
};

test.each(USHER)('compose gives %s settings that Usher accepts', (service) => {
  const config = loadConfig({ HOST: '0.0.0.0', ...environmentOf(service, VARIABLES) });
  expect(config).toMatchObject({ database: { kind: 'mysql' }, queue: { kind: 'redis' } });
});

test('compose passes every documented setting', () => {
  const documented = Object.values(SETTINGS).flatMap(({ variable }) => variable ?? []);
  expect(documented.length).toBeGreaterThan(20);
  for (const service of ['api', 'worker'])
    expect(Object.keys(services[service]!.environment)).toEqual(
      expect.arrayContaining(documented.filter((name) => !OF_THE_IMAGE.includes(name))),
    );
});

test('compose refuses to start without a database password, and no other password has a default', () => {
  const without = { ...VARIABLES, MYSQL_PASSWORD: '' };
  for (const service of [...USHER, 'mysql'])
    expect(() => environmentOf(service, without)).toThrow(
      'required variable MYSQL_PASSWORD is missing a value: set it',
    );
  expect(TEXT).not.toMatch(/(PASSWORD|KEYS):-[^}]/);
});

test.each(Object.keys(services))('the container %s has a read-only file system and no capabilities', (service) => {
  expect(services[service]).toMatchObject({
    read_only: true,
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
  });
});

test('compose starts two workers, and opens the operators’ port of the api on this machine only', () => {
  const { api, worker } = services;
  expect(worker?.deploy).toEqual({ replicas: 2 });
  const { port, opsPort } = loadConfig({ ...environmentOf('api', VARIABLES), HOST: '0.0.0.0' });
  expect(api?.ports).toEqual([port, opsPort].map((one) => `127.0.0.1:${one}:${one}`));
  expect(worker?.ports).toBeUndefined();
});

test.each(Object.keys(services))('the log of the container %s cannot fill the disk', (service) => {
  const { driver, options } = services[service]!.logging!;
  expect({ driver, options }).toEqual({ driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } });
});

test('after a restart of the machine everything but the migration starts again', () => {
  const restarts = Object.entries(services).map(([name, { restart }]) => [name, restart]);
  const expected = Object.keys(services).map((name) => [name, name === 'migrate' ? undefined : 'unless-stopped']);
  expect(restarts).toEqual(expected);
});

test.each(['api', 'worker'])('Docker gives the %s time for SHUTDOWN_DELAY and a running delivery', (service) => {
  expect(services[service]?.stop_grace_period).toBe('60s');
});

test('the image runs Node 24 without root and has no embedded database', () => {
  const dockerfile = readFileSync('Dockerfile', 'utf8');
  expect(dockerfile).toMatch(/^ARG NODE=node:24-/m);
  expect(dockerfile).toMatch(/^USER node$/m);
  expect(dockerfile).toContain("delete peerDependencies['@electric-sql/pglite']");
});
