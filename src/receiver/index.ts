export type { CompletedOrderData } from '../protocol/notification.js';
export { diagnose, type Diagnosis, type DifferingStep } from './diagnosis.js';
export type { Notification } from './notification.js';
export { NonceMemory, type ReplayMemory, verifyOnce } from './replay.js';
export { InvalidNotificationError, type InvalidReason, verifyNotification, type VerifyOptions } from './verify.js';
