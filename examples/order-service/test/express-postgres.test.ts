import { testApplication } from './whole-application.js';

testApplication('postgres', 'express');
