import { expect, test } from '@jest/globals';
import { isDatabaseDown } from '../../src/database/errors.js';
import { problemOf } from '../../src/http/error-response.js';
import { NoAnswer, unreachable } from '../../src/values/start-up-error.js';

/** Node's error where a host has several addresses: it has the code of the first one. */
const ofSeveral = (code: string): Error =>
  Object.assign(new AggregateError([failed(code), failed('ECONNREFUSED')]), { code });
const failed = (code: string): Error => Object.assign(new Error(`connect ${code}`), { code });

test.each(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL'])(
  'a database that no connection reaches (%s) is down',
  (code) => {
    for (const error of [failed(code), ofSeveral(code)]) {
      expect(isDatabaseDown(error)).toBe(true);
      expect(problemOf(error).getStatus()).toBe(503);
      expect(unreachable('DATABASE_URL', new URL('mysql://host/usher'), error)).toBeInstanceOf(NoAnswer);
    }
  },
);
