// oidc-provider from npm with the client credentials grant. It keeps its tokens in memory, or in Redis if REDIS_URL is set.
import { Redis } from 'ioredis';
import { Provider } from 'oidc-provider';

const { CLIENT_ID, CLIENT_SECRET, REDIS_URL, KEY_PREFIX } = process.env;
const redis = REDIS_URL && new Redis(REDIS_URL);

/** One key for each model, with its lifetime. Other operations are not used by this grant. */
class RedisAdapter {
  constructor(model) {
    this.keyOf = (id) => `${KEY_PREFIX}:${model}:${id}`;
  }
  async upsert(id, payload, expiresIn) {
    await redis.set(this.keyOf(id), JSON.stringify(payload), 'EX', expiresIn);
  }
  async find(id) {
    const payload = await redis.get(this.keyOf(id));
    return payload === null ? undefined : JSON.parse(payload);
  }
  async destroy(id) {
    await redis.del(this.keyOf(id));
  }
}

const provider = new Provider('http://127.0.0.1', {
  ...(redis && { adapter: RedisAdapter }),
  clients: [
    {
      client_id: CLIENT_ID,
      client_secret: CLIENT_SECRET,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
  ],
  features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
});
const server = provider.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.once('SIGTERM', () => process.exit());
