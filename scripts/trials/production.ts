/** A folder with a server's configuration in the production profile, on a free port of this machine. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Agent } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defined } from "../../src/result.ts";
import { makeProfile } from "../dev-profile.ts";
import { type Answer, basic, postForm, type Sent } from "../http-client.ts";
import { freePorts } from "../server-process.ts";

const CLIENT = "nightly-report";

export type Production = {
  folder: string;
  configFile: string;
  /**
   * Status of one token request, with the right secret or with another one; `agent` keeps its connection, and `authority`
   * (PEM) issued the certificate of the server, if it was replaced.
   */
  token(secret?: string, agent?: Agent, authority?: string): Promise<number>;
  /** The answer to one token request with the right secret, at this port. */
  ask(port: number, agent?: Agent): Promise<Answer>;
  remove(): void;
};

/** The development profile's client, target and rule, without what production does not allow. */
export async function makeProduction(extra: object = {}): Promise<Production> {
  const parent = mkdtempSync(join(tmpdir(), "mandate production "));
  const folder = join(parent, "data");
  const [port = 0] = await freePorts(1);
  const { configFile, issuer } = await makeProfile(folder, { port });
  const config = JSON.parse(readFileSync(configFile, "utf8"));
  const { version, listen, store, keys, clients, targets, policies } = config;
  const rest = {
    targets: targets.slice(-1),
    policies: policies.slice(0, 1),
    audit: { instance: "one" },
    assertionAudience: "issuer",
  };
  // A trial that stops a server does not wait for balancers.
  const at = { ...listen, drainSeconds: 0 };
  const production = { version, issuer, listen: at, store, keys, clients, ...rest, ...extra };
  writeFileSync(configFile, JSON.stringify(production));
  const ca = readFileSync(join(folder, "tls/ca.pem"), "utf8");
  const right = readFileSync(join(folder, "clients", CLIENT), "utf8").trim();
  const ask = (secret: string, sent: Omit<Sent, "headers">): Promise<Answer> =>
    postForm(
      `${issuer}/token`,
      { grant_type: "client_credentials" },
      { ...sent, headers: { authorization: basic(CLIENT, secret) } },
    );
  return {
    ...{ folder, configFile },
    token: async (secret = right, agent, authority = ca) =>
      (await ask(secret, defined<Sent>({ ca: authority, agent }))).status,
    ask: (port, agent) => ask(right, defined<Sent>({ ca, agent, connect: { host: "127.0.0.1", port } })),
    remove: () => rmSync(parent, { recursive: true, force: true }),
  };
}
