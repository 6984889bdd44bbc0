/**
 * Keycloak in development mode, with its database in memory: `KEYCLOAK` is the folder of the distribution. What its tokens
 * say and to whom they are told is for the mappers of a realm, which are not set up here.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client, Role } from "../parties.ts";
import { startProcess } from "../process.ts";
import type { Scene } from "../scene.ts";
import type { Adapter } from "../types.ts";

const mapper = (name: string, kind: string, config: object = {}) => ({
  ...{ name, protocol: "openid-connect", protocolMapper: `oidc-${kind}-mapper` },
  config: { "access.token.claim": "true", "introspection.token.claim": "true", ...config },
});

// biome-ignore format: an entry a line
function realmOf({ clients, names, ...scene }: Scene): object {
  const { read, write, api } = names;
  const parts: Role[] = ["machine", "second", "signer", "gate", "elsewhere"];
  const keys = (one: Client) => JSON.stringify(scene.jwksOf(one));
  return {
    realm: "suite", enabled: true, sslRequired: "all",
    clientScopes: [
      { name: "basic", protocol: "openid-connect", protocolMappers: [mapper("sub", "sub"), mapper("api", "audience", { "included.custom.audience": api })] },
      ...[read, write].map((name) => ({ name, protocol: "openid-connect", attributes: { "include.in.token.scope": "true" } })),
    ],
    clients: parts.map((role) => ({
      clientId: clients[role].id, secret: clients[role].secret, protocol: "openid-connect", publicClient: false,
      serviceAccountsEnabled: role !== "gate", standardFlowEnabled: false, directAccessGrantsEnabled: false,
      clientAuthenticatorType: role === "signer" ? "client-jwt" : "client-secret",
      attributes: { "use.jwks.string": "true", "jwks.string": keys(clients[role]), "client.use.lightweight.access.token.enabled": "false" },
      defaultClientScopes: ["basic"], optionalClientScopes: [read, write],
    })),
  };
}

export const adapter: Adapter = {
  server: "Keycloak",
  offers: [...(["metadata", "client_credentials", "client_secret_post", "private_key_jwt", "dpop"] as const)],
  async start(scene) {
    const home = join(scene.folder, "keycloak");
    cpSync(process.env.KEYCLOAK ?? "keycloak", home, { recursive: true });
    mkdirSync(join(home, "data/import"), { recursive: true });
    writeFileSync(join(home, "data/import/suite-realm.json"), JSON.stringify(realmOf(scene)));
    const port = await scene.freePort();
    const words = [
      ...["start-dev", "--db=dev-mem", "--import-realm", `--https-port=${port}`, "--http-enabled=false"],
      `--https-certificate-file=${scene.write("cert.pem", scene.server.cert)}`,
      `--https-certificate-key-file=${scene.write("key.pem", scene.server.key)}`,
      `--hostname=https://localhost:${port}`,
    ];
    const { stop } = await startProcess([join(home, "bin/kc.sh"), ...words], /Listening on/);
    return { issuer: `https://localhost:${port}/realms/suite`, ca: scene.ca, stop };
  },
};
