/** One small client, four servers that each offer another way in. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeProfile } from "../dev-profile.ts";
import { claimsOf } from "../http-client.ts";
import { freePorts, startServer } from "../server-process.ts";
import type { Server, SmallClient, WayIn } from "./small-client.ts";
import { startSmallClient } from "./small-client.ts";
import { runOnHost } from "./story.ts";
import { must, scene, show, tell } from "./telling.ts";

const DRAFT = "draft-ietf-oauth-client-id-metadata-document-02";
const LOOPBACK = ["127.0.0.0/8", "::1/128"];
const READ = { targets: ["https://api.example"], scopes: ["trips.read"] };

type Config = { policies: object[]; drafts: string[] } & Record<string, unknown>;

/** Makes an instance whose configuration differs from the development profile in this. */
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

export async function tellOfFourServers(parent: string, closing: (() => unknown)[]): Promise<void> {
  scene("One small client meets four servers, and takes the first way in that each offers");
  const client = await startSmallClient();
  closing.push(() => client.close());
  const reach = {
    clientOrigins: { [client.origin]: { ca: { file: "small-client-ca.pem" }, privateNetworks: LOOPBACK } },
  };
  const nobodyTypes = (): never => {
    throw new Error("the user was asked although there was another way");
  };

  tell("It publishes a metadata document and its keys, and no secret:");
  show({ client_id: client.documentUrl, ...client.metadata });

  const first = join(parent, "first");
  const preRegistered = await startVariant(first, closing, client, () => ({ registration: { mode: "off" } }));
  const secret = readFileSync(join(first, "clients/nightly-report"), "utf8");
  const known = { clientId: "nightly-report", secret };
  await enter(client, "pre-registered", { ...preRegistered, known, askUser: nobodyTypes });

  const byDocument = await startVariant(join(parent, "second"), closing, client, ({ policies, drafts }) => ({
    ...reach,
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
  await enter(client, "metadata document", { ...byDocument, askUser: nobodyTypes });

  const byRegistration = await startVariant(join(parent, "third"), closing, client, ({ policies }) => ({
    ...reach,
    registration: { mode: "open", open: { scopes: ["trips.read"] } },
    policies: [
      ...policies,
      { id: "whoever-registers", allow: "client_credentials", classes: ["open"], ...READ },
    ],
  }));
  await enter(client, "dynamic registration", { ...byRegistration, askUser: nobodyTypes });

  const fourth = join(parent, "fourth");
  const byHand = await startVariant(fourth, closing, client, () => ({ registration: { mode: "off" } }));
  await enter(client, "typed in by the user", {
    ...byHand,
    askUser: async () => {
      const workload = "spiffe://dev.example/crew/small-client";
      const create = ["create", "--method", "client_secret_basic", "--workload", workload, "--json"];
      const made = JSON.parse(await runOnHost("client.ts", fourth, ...create));
      return { clientId: made.client_id, secret: made.client_secret };
    },
  });
}

async function enter(client: SmallClient, expected: WayIn, server: Server): Promise<void> {
  const { wayIn, clientId, answer } = await client.enter(server);
  must(wayIn === expected, `${server.issuer} is entered as ${expected}, not ${wayIn}`);
  must(answer.status === 200, `${wayIn}: ${answer.text}`);
  must(claimsOf(answer.body.access_token).client_id === clientId, "the token is the client's own");
  tell(
    `${server.issuer}: ${wayIn}. It is the client ${clientId} there, and has a token for ${answer.body.scope}.`,
  );
}
