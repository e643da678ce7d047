import 'reflect-metadata';
import { createApplication } from './create-application.js';

const application = await createApplication();
await application.listen(process.env.PORT ?? 3000);
