import { ignoreClosedOutput } from '../packages/receiver/dist/tools.js';
import { runServer } from './server/serve.js';

ignoreClosedOutput('usher');
void runServer();
