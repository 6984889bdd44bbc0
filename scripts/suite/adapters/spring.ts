/**
 * Spring Authorization Server: `SPRING` is the jar that `mvn package` makes in the folder `spring` beside this file, below
 * `target`. It exchanges its own tokens alone, so it is started with one of a user. Clients that are workloads elsewhere
 * have secrets here.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { randomId } from "../keys.ts";
import type { Client, Role } from "../parties.ts";
import { startProcess } from "../process.ts";
import type { Adapter } from "../types.ts";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const AGENTS: readonly Role[] = ["planner", "booking", "crew", "outsider"];
const PARTS: readonly Role[] = ["machine", "second", "signer", "pki", "gate", "elsewhere", ...AGENTS];

// biome-ignore format: an entry a line
export const adapter: Adapter = {
  server: "Spring Authorization Server",
  offers: [
    "metadata", "client_credentials", "client_secret_post", "private_key_jwt", "tls_client_auth", "certificate_binding",
    "jwt_access_tokens", "delegation", "nesting", "dpop", "registration", "introspection", "revocation",
  ],
  async start(scene) {
    const port = await scene.freePort();
    const issuer = `https://localhost:${port}`;
    const [subjectToken, { read, write }] = [randomId(), scene.names];
    const roles: Partial<Record<Role, Client>> = Object.fromEntries(
      AGENTS.map((role) => [role, { ...scene.clients.machine, id: `suite-${role}`, secret: randomId() }]),
    );
    scene.pages.set("/keys-of-signer", { body: JSON.stringify(scene.jwksOf(scene.clients.signer)) });
    const clientOf = (role: Role): object => {
      const { id, secret, method } = roles[role] ?? scene.clients[role];
      const grants = ["client_credentials", ...(AGENTS.includes(role) && role !== "outsider" ? [EXCHANGE] : [])];
      return {
        ...{ id, secret, method, grants },
        ...(role === "signer" && { jwks: `${scene.origin}/keys-of-signer` }),
        ...(role === "pki" && { subject: "CN=suite-pki" }),
      };
    };
    const [key, cert] = [scene.write("key.pem", scene.server.key), scene.write("cert.pem", scene.server.cert)];
    const [ca, trust] = [scene.write("ca.pem", scene.ca), join(scene.folder, "trust.p12")];
    const ssl = { certificate: cert, certificatePrivateKey: key, trustCertificate: ca, clientAuth: "want" };
    const properties = {
      suite: { clients: PARTS.map(clientOf), scopes: [read, write], user: "alice", userToken: subjectToken },
      spring: { security: { oauth2: { authorizationserver: { issuer } } } },
      server: { port, address: "127.0.0.1", ssl },
    };
    const store = ["-keystore", trust, "-storepass", "changeit", "-alias", "suite"];
    spawnSync("keytool", ["-importcert", "-noprompt", "-file", ca, ...store]);
    const words = [`-Djavax.net.ssl.trustStore=${trust}`, "-Djavax.net.ssl.trustStorePassword=changeit", "-jar"];
    const settings = { SPRING_APPLICATION_JSON: JSON.stringify(properties) };
    const { stop } = await startProcess(["java", ...words, process.env.SPRING ?? "server-1.jar"], /Started Server/, settings);
    return { issuer, ca: scene.ca, roles, subjectToken, registration: { response_types: undefined }, stop };
  },
};
