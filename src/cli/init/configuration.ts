/** The configuration that `mandate init` writes, made of the answers. */
import { isAbsolute, join, relative, resolve } from "node:path";
import { API_SCOPES, apiAudience } from "../../policy/own-target.ts";
import { defined } from "../../result.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../spec/spiffe/client-auth.ts";
import { parseSpiffeId } from "../../spec/spiffe/id.ts";
import type { FoundProvider } from "./provider.ts";
import { type Answers, APP } from "./questions.ts";

/** The name of the provider in its redirect URI. */
export const PROVIDER = "company";

/** On the user's own computer. */
export const APP_REDIRECT = "http://127.0.0.1/callback";

export type Planned = {
  config: JsonObject;
  /** The clients that get a secret, which is in the file `clients/NAME`. */
  secrets: readonly string[];
};

/** Where the configuration will be, and where the server writes. */
export type Places = { folder: string; data: string };

/** `provider` is what was found out about the provider in the answers. */
export function plan(
  answers: Answers,
  provider: FoundProvider | undefined,
  { folder, data }: Places,
): Planned {
  const { issuer = "", administrator = "" } = answers;
  const place = placeOf(issuer, answers.listen);
  const [api, scopes] = [answers.api ?? "", (answers.scope ?? "").split(" ")];
  const agent = agentOf(answers, api, scopes);
  const app = provider?.client && appOf(provider, api, scopes);
  const admin = callerOf(administrator);
  const secrets = [admin, ...(agent === undefined ? [] : [callerOf(agent.name)])].flatMap(
    ({ clients = [] }) => clients,
  );
  const { "trust-domain": trustDomain } = answers;
  const config = defined<JsonObject>({
    $schema: "./config.schema.json",
    version: 1,
    profile: "production",
    issuer,
    // RFC 10070; the other value is for clients that name the token endpoint.
    assertionAudience: "issuer",
    listen: { ...place, tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } } },
    operations: { host: "127.0.0.1", port: operationsPort(place.port, 0) },
    store: storeOf(answers.store, { folder, data }),
    keys: { encryptionKey: { file: "keys/encryption-key" } },
    audit: { instance: "one", witness: witnessOf({ folder, data }) },
    trustDomains:
      trustDomain === undefined ? undefined : { [trustDomain]: { bundle: bundleOf(answers.bundle, folder) } },
    trustedIssuers: provider && trustedIssuers(provider, agent),
    signIn: provider && signIn(provider),
    clients: {
      ...Object.fromEntries(secrets.map((name) => [name, secretClient(name)])),
      ...agent?.clients,
      ...app?.clients,
    },
    agents: app?.agents,
    targets: (agent ?? app) && [{ names: [api], scopes, ...app?.shown }, ...(agent?.targets ?? [])],
    policies: [
      defined<JsonObject>({
        id: "administrator",
        allow: "client_credentials",
        ...admin,
        targets: [apiAudience(issuer)],
        scopes: [...API_SCOPES],
      }),
      ...(agent === undefined || provider === undefined ? [] : agent.rules(provider)),
      ...(app?.rules ?? []),
    ],
    drafts: trustDomain === undefined ? undefined : [SPIFFE_DRAFT],
  });
  return { config, secrets };
}

const callerOf = (name: string): { actors?: string[]; clients?: string[] } =>
  parseSpiffeId(name).ok ? { actors: [name] } : { clients: [name] };

const secretClient = (name: string): JsonObject => ({
  method: "client_secret",
  secrets: [{ file: `clients/${name}` }],
});

function placeOf(issuer: string, listen: string | undefined): { host: string; port: number } {
  const { hostname, port } = new URL(issuer);
  const [, host, given] = /^(.*):(\d+)$/.exec(listen ?? "") ?? [];
  return {
    host: host?.replace(/^\[(.*)\]$/, "$1") ?? (hostname === "localhost" ? "127.0.0.1" : "0.0.0.0"),
    port: Number(given ?? (port || 443)),
  };
}

/** The port of health and metrics: a thousand from the other one, in the direction that leaves both valid, and the next ones. */
export const operationsPort = (port: number, index: number): number =>
  (port < 64_000 ? port + 1000 : port - 1000) + index;

export const witnessOf = ({ folder, data }: Places): JsonObject => ({
  file: nameOf(join(data, "witness/checkpoints.jsonl"), folder),
});

/** The name of a file as the configuration gives it: relative to its folder, if the file is inside. */
function nameOf(file: string, folder: string): string {
  const name = relative(resolve(folder), resolve(file));
  return name.startsWith("..") || isAbsolute(name) ? resolve(file) : name;
}

const storeOf = (store = "sqlite", { folder, data }: Places): JsonObject =>
  store === "sqlite"
    ? { sqlite: nameOf(join(data, "data/mandate.sqlite"), folder) }
    : { postgres: { file: nameOf(store, folder) } };

const bundleOf = (bundle = "", folder: string): JsonObject =>
  bundle.startsWith("https:") ? { url: bundle } : { file: nameOf(bundle, folder) };

const reachOf = ({ hasAuthority, networks }: FoundProvider): JsonObject =>
  defined<JsonObject>({
    ca: hasAuthority ? { file: "provider-ca.pem" } : undefined,
    privateNetworks: networks.length > 0 ? [...networks] : undefined,
  });

/** ID tokens for the agent's app are accepted, and permit its scopes; without an agent, users only sign in. */
const trustedIssuers = (provider: FoundProvider, agent: ReturnType<typeof agentOf>): JsonObject => ({
  [provider.issuer]: defined<JsonObject>({
    keys: { discover: true, ...reachOf(provider) },
    acceptAs: agent === undefined && provider.client !== undefined ? [] : ["id_token"],
    audiences: agent && [agent.app],
    subjects: "keep",
    scopes: agent && [...agent.scopes],
  }),
});

function signIn(provider: FoundProvider): JsonObject | undefined {
  if (provider.client === undefined) return undefined;
  const { id: clientId, method } = provider.client;
  const clientSecret = method === "private_key_jwt" ? undefined : { file: "keys/provider-secret" };
  const { issuer, idTokenAlg } = provider;
  const reach = reachOf(provider);
  return {
    providers: {
      [PROVIDER]: defined<JsonObject>({ issuer, clientId, method, clientSecret, idTokenAlg, ...reach }),
    },
  };
}

/** An agent that acts for users: it has an SVID, or a client's secret and a token of its own as actor token. */
function agentOf({ agent: name, ...answers }: Answers, api: string, scopes: readonly string[]) {
  if (name === undefined) return undefined;
  const { issuer = "", "agent-client-id": app = "", "trust-domain": domain } = answers;
  const isWorkload = parseSpiffeId(name).ok;
  const workload = isWorkload ? name : `spiffe://${domain ?? new URL(issuer).hostname}/agents/${name}`;
  const acting = { ...secretClient(name), workload, actorAccessToken: true, defaultTarget: app };
  const itself = {
    id: "agent-itself",
    allow: "client_credentials",
    clients: [name],
    targets: [app],
    scopes: ["act"],
  };
  return {
    name,
    app,
    scopes,
    clients: isWorkload ? {} : { [name]: acting },
    // The agent owns the target of its app: ID tokens for it are meant for the agent, and its own token opens no API.
    targets: [{ names: [app], owners: [workload], scopes: ["act"] }],
    rules: (provider: FoundProvider): JsonObject[] => [
      ...(isWorkload ? [] : [itself]),
      {
        id: "agent-for-users",
        allow: "delegation",
        actors: [workload],
        subjects: { issuers: [provider.issuer] },
        subjectToken: { audiences: ["self"] },
        consent: "record",
        targets: [api],
        scopes: [...scopes],
      },
    ],
  };
}

/** An app that asks users for the API, with what its page says. */
function appOf({ issuer }: FoundProvider, api: string, scopes: readonly string[]) {
  const sentences = Object.fromEntries(scopes.map((scope) => [scope, `use "${scope}" of ${api}`]));
  const rule: JsonObject = {
    id: "app-for-users",
    allow: "authorization_code",
    clients: [APP],
    subjects: { issuers: [issuer] },
    targets: [api],
    scopes: [...scopes],
  };
  return {
    clients: { [APP]: { method: "none", redirectUris: [APP_REDIRECT] } },
    agents: { [APP]: { title: "First app" } },
    shown: { people: true, title: api, sentences },
    rules: [rule],
  };
}
