/** Builds and packs both packages: `npm run pack`, or `npm run pack -- FOLDER` for another folder than `packed`. */
import { join, relative, resolve } from 'node:path';
import { pack, ROOT } from './tarballs.mjs';

const [receiver, usher] = pack(resolve(process.argv[2] ?? join(ROOT, 'packed')));
process.stdout.write(`${[receiver, usher].map((path) => relative(process.cwd(), path)).join('\n')}

Neither package is in a registry yet. In the folder of your application:
  npm install ${usher}
In a receiver without Nest:
  npm install ${receiver}
`);
