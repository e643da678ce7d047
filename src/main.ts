import { outliveReaders } from './fault.js';
import { runServer } from './run-server.js';

outliveReaders();
await runServer();
