/**
 * node-oidc-provider, in this process: `OIDC_PROVIDER` is the file `lib/index.js` of its package, wherever that is
 * installed. It introspects opaque tokens alone, so `FORMAT=opaque` is a run of its own.
 */
import { createServer } from "node:https";
import type { TLSSocket } from "node:tls";
import type { Client, Role } from "../parties.ts";
import type { Adapter } from "../types.ts";

const { OIDC_PROVIDER = "oidc-provider", FORMAT = "jwt" } = process.env;
const BY_TLS = ["tls_client_auth", "self_signed_tls_client_auth"] as const;
const METHODS = ["private_key_jwt", "client_secret_post", ...BY_TLS] as const;
const on = { enabled: true };
type Ctx = { socket: TLSSocket };

// biome-ignore format: an entry a line
export const adapter: Adapter = {
  server: `node-oidc-provider, ${FORMAT} tokens`,
  offers: [
    "metadata", "client_credentials", "resource", ...METHODS, "certificate_binding", "registration", "management", "dpop",
    ...(FORMAT === "jwt" ? (["jwt_access_tokens"] as const) : (["introspection", "revocation"] as const)),
  ],
  async start(scene) {
    const { Provider, errors } = await import(OIDC_PROVIDER);
    const parts: Role[] = ["machine", "second", "signer", "pki", "pinned", "gate", "elsewhere"];
    const port = await scene.freePort();
    const issuer = `https://localhost:${port}`;
    const { read, write, api, other } = scene.names;
    const clientOf = (one: Client): object => ({
      ...{ client_id: one.id, client_secret: one.secret, token_endpoint_auth_method: one.method },
      ...{ grant_types: ["client_credentials"], response_types: [], redirect_uris: [], scope: `${read} ${write}` },
      ...((one.key ?? one.method === "self_signed_tls_client_auth") && { jwks: scene.jwksOf(one) }),
      ...(one.method === "tls_client_auth" && { tls_client_auth_san_dns: "pki.suite.example", tls_client_certificate_bound_access_tokens: true }),
    });
    const getResourceServerInfo = (_: unknown, resource: string): object => {
      if (![api, other].includes(resource)) throw new errors.InvalidTarget();
      return { scope: `${read} ${write}`, audience: resource, accessTokenFormat: FORMAT };
    };
    const provider = new Provider(issuer, {
      clients: parts.map((role) => clientOf(scene.clients[role])),
      scopes: [read, write], clientAuthMethods: ["client_secret_basic", "none", ...METHODS],
      features: {
        clientCredentials: on, introspection: on, revocation: on, registration: on, registrationManagement: on, dPoP: on,
        resourceIndicators: { ...on, getResourceServerInfo },
        mTLS: {
          ...on, certificateBoundAccessTokens: true, tlsClientAuth: true, selfSignedTlsClientAuth: true,
          getCertificate: ({ socket }: Ctx) => socket.getPeerX509Certificate(),
          certificateAuthorized: ({ socket }: Ctx) => socket.authorized,
          certificateSubjectMatches: ({ socket }: Ctx, _: string, expected: string) =>
            socket.getPeerX509Certificate()?.subjectAltName?.split(", ").includes(`DNS:${expected}`) ?? false,
        },
      },
    });
    const tls = { key: scene.server.key, cert: scene.server.cert, ca: scene.ca, requestCert: true, rejectUnauthorized: false };
    const server = createServer(tls, provider.callback());
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    return { issuer, ca: scene.ca, stop: () => void server.close() };
  },
};
