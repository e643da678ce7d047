// A bare Fastify server that parses a JSON body and answers with it: the least that an HTTP request costs here.
import fastify from 'fastify';

const server = fastify();
server.post('/auth/token', async (request) => request.body);
console.log(await server.listen({ port: 0, host: '127.0.0.1' }));
process.once('SIGTERM', () => server.close());
