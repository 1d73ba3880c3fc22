// Identity provider of a check: programs sign in as people, with one secret, for one resource.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { Provider } from 'oidc-provider';

const { ISSUER, ADDRESS, AUDIENCE, PEOPLE, CERTIFICATE, KEY } = process.env;
const people = Array.from({ length: Number(PEOPLE) }, (_, number) => ({
  client_id: `person-${number}`,
  client_secret: 'a secret of the check',
  token_endpoint_auth_method: 'client_secret_post',
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
}));
const provider = new Provider(ISSUER, {
  clients: people,
  ttl: { ClientCredentials: 4 * 3600 },
  scopes: ['tools:call'],
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({
        scope: 'tools:call', audience: AUDIENCE, accessTokenTTL: 4 * 3600, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});
createServer({ cert: readFileSync(CERTIFICATE), key: readFileSync(KEY) }, provider.callback()).listen(9911, ADDRESS);
