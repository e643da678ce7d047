import { answer, named, operations } from '../../http/operation.js';
import { z } from 'zod';
import { ReceiverPackageController } from './receiver-package.js';

const Tarball = named('Tarball', z.string());

export const RECEIVER_PACKAGE_OPERATIONS = operations('Service', ReceiverPackageController, {
  tarball: {
    id: 'getReceiverPackage',
    summary: 'The package usher-receiver, for npm and npx',
    answers: { 200: answer('The tarball.', Tarball, '…', 'application/gzip') },
  },
});
