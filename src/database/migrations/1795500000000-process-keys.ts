import { addsText } from './column-types.js';

/** Which master keys each process has. */
export class ProcessKeys1795500000000 extends addsText('usher_process', 'key_ids') {}
