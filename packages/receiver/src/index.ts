export { diagnose, type Diagnosis, type DifferingStep, receivedSteps, type ReceivedSteps } from './diagnosis.js';
export {
  expressReceiver,
  type ExpressMiddleware,
  type ExpressResponse,
  type FastifyScope,
  fastifyReceiver,
  fetchReceiver,
  type FetchResponse,
  NotificationGuard,
} from './middleware.js';
export { type IncomingRequest, type ReceiverOptions, RefusedNotificationError } from './received-request.js';
export { NonceMemory, type ReplayMemory, verifyOnce } from './replay.js';
export { signatureSteps, type SignatureSteps, signNotification } from './signature.js';
export {
  type CompletedOrderData,
  type FetchHeaders,
  InvalidNotificationError,
  type InvalidReason,
  type Notification,
  NOTIFY_ORDER_COMPLETION,
  verifyNotification,
  type VerifyOptions,
} from './verify.js';
