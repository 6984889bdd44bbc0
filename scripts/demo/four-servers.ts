/** Part two: one client becomes a client of four servers, each of which offers another way. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeProfile } from "../dev-profile.ts";
import { claimsOf } from "../http-client.ts";
import { freePorts, startServer } from "../server-process.ts";
import { runOnHost } from "./host.ts";
import { check, part, print, printJson, step } from "./output.ts";
import { type Server, type SmallClient, startSmallClient, type WayIn } from "./small-client.ts";

const DRAFT = "draft-ietf-oauth-client-id-metadata-document-02";
const LOOPBACK = ["127.0.0.0/8", "::1/128"];
const READ = { targets: ["https://api.example"], scopes: ["trips.read"] };

type Config = { policies: object[]; drafts: string[] } & Record<string, unknown>;

/** Starts a server with the development profile, changed as given. */
async function startVariant(
  folder: string,
  closing: (() => unknown)[],
  client: SmallClient,
  change: (config: Config) => object,
): Promise<{ issuer: string; ca: string }> {
  const [port = 0, idpPort = 0] = await freePorts(2);
  const { configFile, issuer } = await makeProfile(folder, { port, idpPort });
  const config: Config = JSON.parse(readFileSync(configFile, "utf8"));
  writeFileSync(configFile, JSON.stringify({ ...config, ...change(config) }));
  writeFileSync(join(folder, "small-client-ca.pem"), client.ca);
  const server = await startServer(configFile);
  closing.push(() => server.stop());
  return { issuer, ca: readFileSync(join(folder, "tls/ca.pem"), "utf8") };
}

export async function playFourServers(parent: string, closing: (() => unknown)[]): Promise<void> {
  part("Four servers: how a program becomes a client");
  const client = await startSmallClient();
  closing.push(() => client.close());
  const reachable = {
    clientOrigins: { [client.origin]: { ca: { file: "small-client-ca.pem" }, privateNetworks: LOOPBACK } },
  };
  const notAsked = (): never => {
    throw new Error("the user was asked for credentials although there is another way");
  };

  step("One client enters four servers by the first way that each of them offers");
  print("The client publishes this metadata document and its public keys, and has no secret:");
  printJson({ client_id: client.documentUrl, ...client.metadata });

  const first = join(parent, "first");
  const preRegistered = await startVariant(first, closing, client, () => ({ registration: { mode: "off" } }));
  const secret = readFileSync(join(first, "clients/nightly-report"), "utf8");
  const known = { clientId: "nightly-report", secret };
  await enter(client, "pre-registered", { ...preRegistered, known, askUser: notAsked });

  const byDocument = await startVariant(join(parent, "second"), closing, client, ({ policies, drafts }) => ({
    ...reachable,
    clientMetadataDocuments: {},
    drafts: [...drafts, DRAFT],
    policies: [
      ...policies,
      {
        id: "documents-of-this-origin",
        allow: "client_credentials",
        clients: [`${client.origin}/*`],
        ...READ,
      },
    ],
  }));
  await enter(client, "metadata document", { ...byDocument, askUser: notAsked });

  const byRegistration = await startVariant(join(parent, "third"), closing, client, ({ policies }) => ({
    ...reachable,
    registration: { mode: "open", open: { scopes: ["trips.read"] } },
    policies: [
      ...policies,
      { id: "registered-clients", allow: "client_credentials", classes: ["open"], ...READ },
    ],
  }));
  await enter(client, "dynamic registration", { ...byRegistration, askUser: notAsked });

  const fourth = join(parent, "fourth");
  const byHand = await startVariant(fourth, closing, client, () => ({ registration: { mode: "off" } }));
  await enter(client, "credentials from the user", {
    ...byHand,
    askUser: async () => {
      const workload = "spiffe://dev.example/crew/small-client";
      const options = { method: "client_secret_basic", workload };
      const created = JSON.parse(await runOnHost(fourth, "clients create --json", options));
      return { clientId: created.client_id, secret: created.client_secret };
    },
  });
}

async function enter(client: SmallClient, expected: WayIn, server: Server): Promise<void> {
  const { wayIn, clientId, answer } = await client.enter(server);
  check(wayIn === expected, `the way into ${server.issuer} is ${expected}, not ${wayIn}`);
  check(answer.status === 200, `${wayIn}: ${answer.text}`);
  check(claimsOf(answer.body.access_token).client_id === clientId, "the token names the client");
  print(`${wayIn}: it is client ${clientId} and gets a token with scope ${answer.body.scope}`);
}
