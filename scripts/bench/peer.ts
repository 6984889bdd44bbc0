/**
 * A peer to compare with: oidc-provider, which gives signed tokens (JWT, ES256) for client credentials. It keeps
 * everything in memory and records nothing.
 * Arguments: folder in which oidc-provider is installed, folder of the development profile, port.
 */
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { secureContext } from "../../src/http/tls.ts";

const [folder = "", profile = "", port = ""] = process.argv.slice(2);
const read = (name: string): string => readFileSync(join(profile, name), "utf8");
const API = "https://api.example";
const SCOPE = "trips.read";

const installed = createRequire(join(folder, "package.json")).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(installed).href);
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const provider = new Provider(`https://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: "nightly-report",
      client_secret: read("clients/nightly-report"),
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      id_token_signed_response_alg: "ES256",
    },
  ],
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: "peer", alg: "ES256", use: "sig" }] },
  scopes: [SCOPE],
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => API,
      getResourceServerInfo: () => ({
        scope: SCOPE,
        audience: API,
        accessTokenTTL: 300,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
});
const tls = secureContext(read("tls/key.pem"), read("tls/cert.pem"));
const server = createServer({ ...tls, requestCert: true, rejectUnauthorized: false }, provider.callback());
server.listen(Number(port), "127.0.0.1", () => console.log(`oidc-provider listens on ${port}`));
process.on("SIGTERM", () => process.exit());
