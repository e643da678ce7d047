import { outliveReaders } from './server/fault.js';
import { runServer } from './server/serve.js';

outliveReaders();
await runServer();
