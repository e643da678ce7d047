import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const PACKED = /^(README\.md|LICENSE|test-vectors\.json|dist\/.+\.(js|d\.ts))$/;
const BLOCK_BYTES = 512;

/** What `npm pack` makes of the receiver's package. Its package.json names the service that serves it. */
export function receiverTarball(service: string): Buffer {
  const folder = folderAbove(__dirname, 'packages/receiver');
  const read = (path: string): Buffer => readFileSync(join(folder, path));
  const { scripts: _, ...manifest } = JSON.parse(read('dist/manifest.json').toString()) as { scripts?: object };
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => PACKED.test(path));
  const entries = [
    entryOf('package.json', Buffer.from(JSON.stringify({ ...manifest, service }, null, 2))),
    ...files.map((path) => entryOf(path, read(path))),
  ];
  return gzipSync(Buffer.concat([...entries, Buffer.alloc(2 * BLOCK_BYTES)]));
}

/** The built file and the source that tests run are at different depths. */
function folderAbove(start: string, path: string): string {
  const folder = join(start, path);
  return existsSync(join(folder, 'dist/manifest.json')) ? folder : folderAbove(dirname(start), path);
}

/** A file as tar stores it (POSIX ustar): a header, and the content filled up to whole blocks. */
function entryOf(path: string, content: Buffer): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES);
  const fields = { 0: `package/${path}`, 100: '0000644', 124: octal(content.length), 148: ' '.repeat(8), 257: 'ustar' };
  for (const [offset, text] of Object.entries(fields)) header.write(text, Number(offset));
  // The checksum is over the header with spaces in its place.
  header.write(octal(header.reduce((sum, byte) => sum + byte)).slice(4) + '\0', 148);
  return Buffer.concat([header, content, Buffer.alloc(-content.length & (BLOCK_BYTES - 1))]);
}

const octal = (number: number): string => number.toString(8).padStart(11, '0');
