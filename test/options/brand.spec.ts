import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { resolveOptions } from '../../src/resolve-options.js';
import type { UsherOptions } from '../../src/usher.options.js';
import { ENGLISH } from '../../src/values/member-texts.js';
import { newFolder } from '../support/process.js';
import { optionFaults, options, variableFaults } from './given.js';

const folder = newFolder();

function fileWith(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const brandOf = (brand: object) => resolveOptions({ ...options(), brand } as unknown as UsherOptions);

/** The faults of one value, in the words of the server and of the library. */
const faultsOf = (variable: string, option: string, value: string): [server: string[], library: string[]] => [
  variableFaults({ [variable]: value }),
  optionFaults({ ...options(), brand: { [option]: value } }),
];

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>';
const INVALID = / is invalid; use the path of a readable PNG or SVG file of at most 64 kB$/;

describe('the logo', () => {
  test.each([
    ['a PNG file', 'logo', PNG, 'image/png'],
    ['an SVG file', 'logo.svg', SVG, 'image/svg+xml'],
    ['an SVG file with a prolog', 'a.svg', `\uFEFF<?xml version="1.0"?>\n<!-- by hand -->\n${SVG}`, 'image/svg+xml'],
    ['an SVG file with a script', 'b.svg', '<svg><script>alert(1)</script></svg>', 'image/svg+xml'],
    ['a file of 64 kB', 'c.png', Buffer.concat([PNG], 65_536), 'image/png'],
  ])('can be %s, and becomes a data: URL', (_, name, content, type) => {
    const expected = `data:${type};base64,${Buffer.from(content).toString('base64')}`;
    expect(brandOf({ logo: fileWith(name, content) }).brandLogo).toBe(expected);
  });

  test.each([
    ['a file that is missing', () => join(folder, 'none.svg')],
    ['a folder', () => folder],
    ['a file of more than 64 kB', () => fileWith('large.png', Buffer.concat([PNG], 65_537))],
    ['a JPEG file', () => fileWith('photo.png', Buffer.from('ffd8ffe000104a464946', 'hex'))],
    ['an HTML page', () => fileWith('page.svg', `<html><body>${SVG}</body></html>`)],
    ['an empty file', () => fileWith('empty.svg', '')],
    ['an address', () => 'https://cinema.example/logo.svg'],
  ])('cannot be %s', (_, path) => {
    for (const [fault = '', ...others] of faultsOf('BRAND_LOGO', 'logo', path())) {
      expect(others).toEqual([]);
      expect(fault).toMatch(INVALID);
      expect(fault).toContain(path());
    }
  });
});

describe('the colour', () => {
  test.each(['#000000', '#1f6f3d', '#8A1538', '#767676'])('%s is accepted', (color) => {
    expect(brandOf({ color }).brandColor).toBe(color);
  });

  // The contrasts are those that WCAG's own calculators give.
  test.each([
    ['#777777', '4.48'],
    ['#ffcc00', '1.51'],
    ['#ffffff', '1.00'],
    ['#00ff00', '1.37'],
  ])('%s is refused, because its contrast to white is %s', (color, contrast) => {
    const text = `=${color} has a contrast of ${contrast} to the white text on it; use a darker colour, with 4.5 or more (WCAG AA)`;
    expect(faultsOf('BRAND_COLOR', 'color', color)).toEqual([[`BRAND_COLOR${text}`], [`brand.color${text}`]]);
  });

  test.each(['red', '#1f6', '#1f6f3d;}', 'rgb(0,0,0)'])('%s is refused, because only #rrggbb is taken', (color) => {
    for (const faults of faultsOf('BRAND_COLOR', 'color', color))
      expect(faults).toEqual([expect.stringContaining(' is invalid; use a colour like #1f6f3d')]);
  });
});

describe.each([
  ['BRAND_HELP_URL', 'helpUrl'],
  ['BRAND_PRIVACY_URL', 'privacyUrl'],
  ['BRAND_FORGOTTEN_PASSWORD_URL', 'forgottenPasswordUrl'],
] as const)('%s', (variable, option) => {
  test('is a link of http or https, which stays as it is given', () => {
    for (const url of ['https://cinema.example', 'http://cinema.example/a?b=c#d@e'])
      expect(brandOf({ [option]: url })[option]).toBe(url);
  });

  test.each([
    'javascript:alert(1)',
    'mailto:help@cinema.example',
    '/help',
    'https://user:pw@cinema.example/',
    'ftp://h',
  ])('is not %s', (url) => {
    for (const faults of faultsOf(variable, option, url))
      expect(faults).toEqual([
        expect.stringMatching(/ is invalid; use an http:\/\/ or https:\/\/ URL without credentials$/),
      ]);
  });
});

test('texts of another language have their language, and what they leave out is English', () => {
  const texts = { language: 'pt-BR', signIn: 'Entrar' };
  expect(brandOf({ texts }).memberTexts).toEqual({ ...ENGLISH, ...texts });
  expect(brandOf({}).memberTexts).toEqual(ENGLISH);
  expect(brandOf({ texts: { language: 'ms', signInTitle: undefined } }).memberTexts).toEqual({
    ...ENGLISH,
    language: 'ms',
  });
  for (const language of [undefined, 'de_DE', 'Deutsch', ''])
    expect(optionFaults({ ...options(), brand: { texts: { language } } })).toEqual([
      'brand.texts=[object Object] is invalid; use an object with the texts and their language, like de or pt-BR',
    ]);
});

test.each([
  [{ signinTitle: 'Entrar' }, 'brand.texts.signinTitle is not a text; did you mean signInTitle?'],
  [{ signInTitle: 5 }, 'brand.texts.signInTitle is not a string; use a text'],
  [{ signInTitle: null }, 'brand.texts.signInTitle is not a string; use a text'],
])('texts %j are refused', (texts, fault) => {
  expect(optionFaults({ ...options(), brand: { texts: { language: 'pt-BR', ...texts } } })).toEqual([fault]);
});
