export { diagnose, type Diagnosis, type DifferingStep } from './diagnosis.js';
export { type CompletedOrderData, type Notification, NOTIFY_ORDER_COMPLETION } from './notification.js';
export { NonceMemory, type ReplayMemory, verifyOnce } from './replay.js';
export { signatureSteps, type SignatureSteps, signNotification } from './signature.js';
export {
  type FetchHeaders,
  InvalidNotificationError,
  type InvalidReason,
  verifyNotification,
  type VerifyOptions,
} from './verify.js';
