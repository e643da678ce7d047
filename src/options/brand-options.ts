import { readFileSync } from 'node:fs';
import { ENGLISH, type MemberTexts } from '../values/member-texts.js';
import { remedyFor } from '../values/spelling.js';
import { Fault, type Kind, matching, option, type OptionValues, text } from './option-kinds.js';
import { linkUrl } from './url-kinds.js';

const name = matching(/^(?=.*[\p{L}\p{N}])\P{Cc}{1,60}$/u, 'a name of up to 60 characters, with a letter or digit');

const MAX_LOGO_BYTES = 65_536;
/** How the files begin, by their media subtype. */
const IMAGES = {
  png: /^\x89PNG\r\n\x1a\n/,
  'svg+xml': /^(\xef\xbb\xbf)?\s*<((\?xml|!--|!doctype svg)[^]*<)?svg[\s>]/i,
};

/** The value is a `data:` URL, so that no browser can open the file as a page of this server. */
const logo = text('the path of a readable PNG or SVG file of at most 64 kB', (path) => {
  const content = contentOf(path);
  const bytes = content.toString('latin1');
  const [type] = Object.entries(IMAGES).find(([, beginning]) => beginning.test(bytes)) ?? [];
  return type && bytes.length <= MAX_LOGO_BYTES ? `data:image/${type};base64,${content.toString('base64')}` : null;
});

/** Empty if the file cannot be read. */
function contentOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.of();
  }
}

/** WCAG 2.2 level AA. */
const MIN_CONTRAST = 4.5;

const color = text('a colour like #1f6f3d', (value) => {
  if (!/^#[0-9a-f]{6}$/i.test(value)) return null;
  const contrast = contrastWithWhite(value);
  if (contrast >= MIN_CONTRAST) return value;
  throw new Fault(
    `=${value} has a contrast of ${contrast.toFixed(2)} to the white text on it; use a darker colour, with ${MIN_CONTRAST} or more (WCAG AA)`,
  );
});

/** From 1 to 21 (WCAG 2.2, "contrast ratio" and "relative luminance"). */
function contrastWithWhite(color: string): number {
  const [red = 0, green = 0, blue = 0] = [...Buffer.from(color.slice(1), 'hex')].map((byte) =>
    byte <= 10 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05);
}

/** A text that is left out is English. */
const texts: Kind<MemberTexts> = {
  wanted: 'an object with the texts and their language, like de or pt-BR',
  check: (value) => {
    const given = Object.entries(Object(value) as Partial<MemberTexts>).filter(([, text]) => text !== undefined);
    for (const [name, text] of given) {
      if (!Object.hasOwn(ENGLISH, name))
        throw new Fault(`.${name} is not a text; ${remedyFor(name, Object.keys(ENGLISH))}`);
      if (typeof text !== 'string') throw new Fault(`.${name} is not a string; use a text`);
    }
    const all = Object.fromEntries(given) as Partial<MemberTexts>;
    return /^[a-z]{2,3}(-[a-z\d]{2,8})*$/i.test(all.language ?? '') ? { ...ENGLISH, ...all } : undefined;
  },
  parse: () => ENGLISH,
};

/** The owner of the members' pages. */
export const BRAND = {
  brandName: option('brand.name', 'BRAND_NAME', name, 'Usher', 'what the pages call the cinema'),
  brandLogo: option('brand.logo', 'BRAND_LOGO', logo, null, 'the file of the logo above each page, on white', {
    defaultText: 'the name',
  }),
  brandColor: option(
    'brand.color',
    'BRAND_COLOR',
    color,
    '#1f6f3d',
    'the colour of the main buttons, whose text is white',
  ),
  helpUrl: option('brand.helpUrl', 'BRAND_HELP_URL', linkUrl, null, 'the help, linked below each page'),
  privacyUrl: option(
    'brand.privacyUrl',
    'BRAND_PRIVACY_URL',
    linkUrl,
    null,
    'the privacy notice, linked below each page',
  ),
  forgottenPasswordUrl: option(
    'brand.forgottenPasswordUrl',
    'BRAND_FORGOTTEN_PASSWORD_URL',
    linkUrl,
    null,
    'a link where members get a new password',
  ),
  memberTexts: option(
    'brand.texts',
    null,
    texts,
    'English',
    'the texts [in another language](embedding.md#the-pages-of-your-members)',
    { defaultText: 'English' },
  ),
};

export type Brand = OptionValues<typeof BRAND>;
