import { beforeAll, expect, test } from '@jest/globals';
import { Client } from '../../src/clients/client.entity.js';
import { basic, TestUsher } from '../support/usher.js';

/** Every character that changes the direction of the text behind it: "Bank\u202Egpj" reads "Bankjpg". */
const DIRECTIONS = [...'\u061C\u200E\u200F\u202A\u202B\u202C\u202D\u202E\u2066\u2067\u2068\u2069'];

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.shared();
});

test('a client gets no name with a character that changes the direction of text', async () => {
  const { id } = await usher.client();
  for (const character of DIRECTIONS) {
    const name = `Bank${character}gpj`;
    const refused = /characters on one line, without characters that change the direction of text$/;
    await expect(usher.clients.create(name, null)).rejects.toThrow(refused);
    await expect(usher.clients.rename(id, name)).rejects.toThrow(refused);
  }
  expect((await usher.clients.rename(id, 'سينما قاعة 3 · קולנוע')).name).toBe('سينما قاعة 3 · קולנוע');
});

test('pages show such characters of an earlier name as replacement characters', async () => {
  const { id } = await usher.client();
  await usher.dataSource.manager.update(Client, { id }, { name: `Bank${DIRECTIONS.join('')}gpj` });
  const operator = { authorization: basic('ops', 'ops'), accept: 'text/html' };
  const { body } = await usher.request('GET', `/ops/clients/${id}`, operator);
  expect(body.text).toContain(`Bank${'\uFFFD'.repeat(DIRECTIONS.length)}gpj`);
  expect(body.text).not.toMatch(/\p{Bidi_Control}/u);
});
