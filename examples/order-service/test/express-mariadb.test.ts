import { testApplication } from './whole-application.js';

testApplication('mariadb-and-redis', 'express');
