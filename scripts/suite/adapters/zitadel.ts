/**
 * zitadel/oidc, a library for servers in Go: `ZITADEL` is the program that `go mod tidy && go build -o zitadel .` makes in
 * the folder `zitadel` beside this file. Agents are no workloads here, but clients with secrets.
 */
import { randomId } from "../keys.ts";
import type { Client, Role } from "../parties.ts";
import { startProcess } from "../process.ts";
import { USERS } from "../scene.ts";
import type { Adapter } from "../types.ts";

const AGENTS: readonly Role[] = ["planner", "booking", "crew", "outsider"];
const BY_SECRET: readonly Role[] = ["machine", "second", "gate", "elsewhere"];

export const adapter: Adapter = {
  server: "zitadel/oidc",
  offers: [
    ...(["client_credentials", "client_secret_post", "jwt_access_tokens", "delegation"] as const),
    ...(["introspection", "revocation"] as const),
  ],
  async start(scene) {
    const { clients, idp, names } = scene;
    const roles: Partial<Record<Role, Client>> = Object.fromEntries(
      AGENTS.map((role) => [role, { ...clients.machine, id: `suite-${role}`, secret: randomId() }]),
    );
    const parts = [...BY_SECRET.map((role) => clients[role]), ...Object.values(roles)];
    const address = `127.0.0.1:${await scene.freePort()}`;
    const issuer = `https://${address}`;
    const suite = {
      ...{ issuer, address, idp: idp.issuer, keys: idp.jwksUri, ca: scene.ca },
      cert: scene.write("cert.pem", scene.server.cert),
      key: scene.write("key.pem", scene.server.key),
      secrets: Object.fromEntries(parts.map(({ id, secret }) => [id, secret])),
      asks: {
        [clients.gate.id]: [names.api, names.booking, names.crew],
        [clients.elsewhere.id]: [names.other],
      },
      ...{ agents: ["suite-planner", "suite-booking", "suite-crew"], users: USERS },
      targets: [names.api, names.other, names.booking, names.crew],
      scopes: [names.read, names.write],
    };
    const program = [process.env.ZITADEL ?? "zitadel"];
    const { stop } = await startProcess(program, /Listening/, { SUITE: JSON.stringify(suite) });
    return { issuer, ca: scene.ca, roles, stop };
  },
};
