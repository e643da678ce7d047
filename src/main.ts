import { ignoreClosedOutput } from './server/fault.js';
import { runServer } from './server/serve.js';

ignoreClosedOutput();
void runServer();
