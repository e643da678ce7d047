import { addsText } from './column-types.js';

/** What signed each attempt. */
export class SignedWith1795600000000 extends addsText('usher_webhook_attempt', 'signed_with') {}
