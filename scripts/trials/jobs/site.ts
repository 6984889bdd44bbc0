/**
 * The site of the trial of jobs: three instances in the production profile on one PostgreSQL, a partner's server that
 * honours jobs and has a stream, and the agents, users and operators that ask them.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import postgres from "postgres";
import { DRAFT as DEFERRED_DRAFT } from "../../../src/spec/deferred-token-response.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../../src/spec/identity-chaining.ts";
import { JWT_BEARER_GRANT } from "../../../src/spec/rfc7523.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../../src/spec/spiffe/client-auth.ts";
import { forPeople, NOTES, PRIVATE, WEB_REDIRECT } from "../../../test/support/people.ts";
import { startProvider, type TestProvider } from "../../../test/support/provider.ts";
import { LOOPBACK } from "../../../test/support/web.ts";
import {
  ACCESS_TOKEN,
  EXCHANGE,
  ISSUER,
  JWT,
  JWT_SPIFFE,
  makeSurroundings,
  type Surroundings,
  workload,
} from "../../../test/support/world.ts";
import { type Call, Line, makeCall } from "../../bench/client.ts";
import { type Answer, basic, encodeForm, type Form, type Sent, send } from "../../http-client.ts";
import { freePorts, type ServerProcess, startServer } from "../../server-process.ts";
import { openDatabase } from "../signals/site.ts";

const INSTANCES = 3;
const PARTNER_HOST = "partner.example";
export const PARTNER = `https://${PARTNER_HOST}`;
const ROOM = "https://room.example";
const DATABASE = "MANDATE_TRIAL_DATABASE";
const INSTANCE = "MANDATE_TRIAL_INSTANCE";
/** Longer than a trial takes. */
const PROOF_SECONDS = 3_000;
const TOKEN_SECONDS = 3_000;
/** Of the targets at which a trial sees tokens expire. */
const BRIEF_SECONDS = 15;
const SCOPES = ["notes.read"];

/** Each of them exchanges tokens that are meant for it, so that a chain is as long as their list. */
export const AGENTS = ["planner", "booking", "clerk", "carrier"] as const;
export type AgentName = (typeof AGENTS)[number];
/** What shows a job's id, what sees another one or none, and what asks at each use. */
export const ENDS = [
  "https://api.example",
  "https://pair.example",
  "https://secret.example",
  "vault",
] as const;
export const BRIEF = "brief";
/** Of this one, a user is asked. */
export const ASKED = "asked";
export const TARGETS = [NOTES, ...AGENTS.slice(1), ...ENDS, BRIEF, ASKED, PARTNER];

const CLIENTS = ["web", "gate", "desk", "hotel"] as const;
type ClientName = (typeof CLIENTS)[number];
const idOf = (client: ClientName): string => (client === "web" ? PRIVATE : client);

export type Site = {
  provider: TestProvider;
  instances: readonly ServerProcess[];
  partner: ServerProcess;
  /** Like an instance, but alone and on SQLite. */
  alone: ServerProcess;
  /** Ends an instance as a crash would, and starts it again. */
  kill(index: number): Promise<void>;
  ask(at: ServerProcess, path: string, sent?: Partial<Sent>): Promise<Answer>;
  /** A request of the operator's desk. */
  manage(at: ServerProcess, path: string, body?: object): Promise<Record<string, unknown>>;
  userToken(sub: string): Promise<string>;
  /** Calls of which every part may be used again and again. */
  exchange(by: AgentName, token: { own: string } | { users: string }, target: string, more?: Parts): Call;
  as(client: ClientName, path: string, form: Parts): Call;
  byAgent(by: AgentName, form: Parts): Call;
  redeem(grant: string): Call;
  line(at: ServerProcess): Line;
  /** Those that a step has opened. */
  closeLines(): void;
  /** The identifiers of the access tokens of the job that are on record. */
  recorded(job: string): Promise<readonly string[]>;
  close(): Promise<void>;
};

export type Parts = Record<string, string>;

export async function openJobSite(): Promise<Site> {
  const provider = await startProvider();
  const secrets = Object.fromEntries(CLIENTS.map((name) => [name, randomBytes(32).toString("base64url")]));
  const files = { "provider.pem": provider.ca, ...secrets };
  const [partnerPort = 0] = await freePorts(1);
  const there = await makeSurroundings(configurePartner(partnerPort), { host: PARTNER_HOST, files });
  const here = await makeSurroundings(configure(provider, partnerPort), {
    files: { ...files, "partner.pem": there.ca },
  });
  const database = await openDatabase(here);
  const owner = postgres(database.owned, { max: 1, onnotice: () => {} });
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const instances: ServerProcess[] = [];
  const lines: Line[] = [];
  const start = (index: number): Promise<ServerProcess> =>
    startServer(here.configFile, {
      environment: { [INSTANCE]: `one-${index + 1}`, [DATABASE]: database.serving },
    });
  for (let index = 0; index < INSTANCES; index++) instances.push(await start(index));
  const [first = assert.fail()] = instances;
  const ask: Site["ask"] = (at, path, sent = {}) =>
    send(`${ISSUER}${path}`, { ...sent, ca: here.ca, agent, connect: { host: "127.0.0.1", port: at.port } });
  writeFileSync(join(there.folder, "home.json"), (await ask(first, "/jwks")).text);
  const partner = await startServer(there.configFile);
  const alone = await startServer(onSqlite(here), { environment: { [INSTANCE]: "alone" } });
  const svids = new Map<AgentName, string>();
  for (const one of AGENTS) svids.set(one, await here.svid(one, { expSeconds: PROOF_SECONDS }));
  const secretOf = (client: ClientName): string => basic(idOf(client), secrets[client] ?? "");
  const byAgent: Site["byAgent"] = (by, form) => {
    const svid = svids.get(by) ?? "";
    const proof = { client_assertion_type: JWT_SPIFFE, client_assertion: svid };
    return makeCall(new URL(`${ISSUER}/token`), { ...proof, ...form });
  };
  const tokenOfDesk = async (at: ServerProcess): Promise<string> => {
    const form: Form = { grant_type: "client_credentials", audience: `${ISSUER}/api` };
    const headers = {
      authorization: secretOf("desk"),
      "content-type": "application/x-www-form-urlencoded",
    };
    const { body, text } = await ask(at, "/token", { method: "POST", body: encodeForm(form), headers });
    return `Bearer ${body.access_token ?? assert.fail(text)}`;
  };
  const desks = { instances: await tokenOfDesk(first), alone: await tokenOfDesk(alone) };
  const ca = { [PARTNER]: there.ca, [ISSUER]: here.ca };
  return {
    ...{ provider, instances, partner, alone, ask, byAgent },
    async kill(index) {
      await instances[index]?.stop("SIGKILL");
      instances[index] = await start(index);
    },
    async manage(at, path, body) {
      const authorization = at === alone ? desks.alone : desks.instances;
      const headers = { authorization, "content-type": "application/json" };
      const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
      const answer = await ask(at, path, { ...sent, headers });
      assert.ok(answer.status < 300, `${path}: ${answer.text}`);
      return answer.body;
    },
    userToken: (sub) =>
      provider.userToken(sub, ISSUER, {
        scope: SCOPES.join(" "),
        exp: Math.floor(Date.now() / 1000) + PROOF_SECONDS,
      }),
    exchange(by, token, target, more = {}) {
      const subject =
        "own" in token
          ? { subject_token: token.own, subject_token_type: ACCESS_TOKEN }
          : { subject_token: token.users, subject_token_type: JWT };
      const actor = { actor_token: svids.get(by) ?? "", actor_token_type: JWT };
      return byAgent(by, { grant_type: EXCHANGE, ...subject, ...actor, audience: target, ...more });
    },
    as: (client, path, form) =>
      makeCall(new URL(path, client === "hotel" ? PARTNER : ISSUER), form, secretOf(client)),
    redeem: (assertion) =>
      makeCall(new URL(`${PARTNER}/token`), { grant_type: JWT_BEARER_GRANT, assertion }, secretOf("hotel")),
    line({ port }) {
      const line = new Line({
        host: "127.0.0.1",
        port,
        ca: ca[port === partner.port ? PARTNER : ISSUER] ?? "",
      });
      lines.push(line);
      return line;
    },
    closeLines() {
      for (const line of lines.splice(0)) line.close();
    },
    recorded: async (job) =>
      (await owner<{ jti: string }[]>`select jti from token where job_id = ${job}`).map(({ jti }) => jti),
    async close() {
      agent.destroy();
      await Promise.all([...instances, alone, partner].map((server) => server.stop("SIGKILL")));
      await owner.end();
      await removeAll([here, there]);
      await database.end();
      await provider.close();
    },
  };
}

/** The configuration of one that shares no store, and so tells no partner. */
function onSqlite({ folder, configFile }: Surroundings): string {
  const { signals: _, ...base } = JSON.parse(readFileSync(configFile, "utf8"));
  const file = join(folder, "alone.json");
  writeFileSync(file, JSON.stringify({ ...base, store: { sqlite: "alone.sqlite" } }));
  return file;
}

const removeAll = (all: readonly Surroundings[]) => Promise.all(all.map((one) => one.remove()));

const secretIn = (file: string) => ({ method: "client_secret_basic", secrets: [{ file }] });
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
const MUCH = {
  ...{ requestsPerSecondByClient: 100_000, pagesPerMinuteBySource: 100_000 },
  ...{ failuresPerMinuteByClient: 100_000, failuresPerMinuteBySource: 100_000 },
};

function configure(provider: TestProvider, partnerPort: number): object {
  const people = forPeople(provider);
  const works = {
    ...{ allow: "delegation", actors: AGENTS.map(workload), scopes: SCOPES },
    ...{ subjects: { issuers: [provider.issuer, ISSUER] }, lifetimeSeconds: TOKEN_SECONDS },
    ...{ subjectToken: { audiences: [ISSUER, "self"] }, ...implied },
  };
  const [shown, paired, hidden, asking] = ENDS;
  const [user, ...chain] = AGENTS;
  return {
    ...people,
    profile: "production",
    store: { postgres: { env: DATABASE } },
    audit: { instance: { env: INSTANCE } },
    trustedIssuers: provider.trusted({ acceptAs: ["id_token", "jwt"] }),
    clients: {
      [PRIVATE]: {
        ...secretIn("web"),
        redirectUris: [WEB_REDIRECT],
        grantTypes: ["authorization_code", "refresh_token"],
      },
      gate: secretIn("gate"),
      desk: { ...secretIn("desk"), defaultTarget: `${ISSUER}/api` },
    },
    targets: [
      ...people.targets.map((one) => ({ ...one, owners: [workload(user)] })),
      ...chain.map((name) => ({ names: [name], owners: [workload(name)] })),
      { names: [shown] },
      { names: [paired], job: "pairwise" },
      { names: [hidden], job: "hidden" },
      { names: [asking], job: "hidden", checks: "introspection" },
      { names: [BRIEF] },
      { names: [ASKED], title: "what a user is asked for", sentences: { "notes.read": "read your notes" } },
      { kind: "partner", issuer: PARTNER, jobs: "honours", clients: { [workload(user)]: "hotel" } },
    ].map((one) => ({ scopes: SCOPES, ...one, ...("names" in one && { introspectors: ["gate"] }) })),
    policies: [
      ...people.policies.map((rule) => ({ ...rule, clients: [PRIVATE], refresh: true })),
      { ...works, id: "works", targets: [...chain, ...ENDS] },
      { ...works, id: "briefly", targets: [BRIEF], lifetimeSeconds: BRIEF_SECONDS },
      { ...works, id: "asks", targets: [ASKED], consent: "record", acknowledge: undefined, askUser: true },
      { ...works, id: "there", targets: [PARTNER], issues: "grant", lifetimeSeconds: 300 },
      {
        ...{ id: "desk", allow: "client_credentials", clients: ["desk"], lifetimeSeconds: 3_600 },
        ...{ targets: [`${ISSUER}/api`], scopes: ["job:manage", "token:revoke"] },
      },
    ],
    signals: {
      streams: {
        partner: {
          ...{ audience: PARTNER, targets: [PARTNER], url: `https://localhost:${partnerPort}/signals/home` },
          ...{ ca: { file: "partner.pem" }, privateNetworks: LOOPBACK },
        },
      },
    },
    limits: MUCH,
    drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT, DEFERRED_DRAFT],
  };
}

const configurePartner = (port: number): object => ({
  profile: "production",
  listen: {
    ...{ drainSeconds: 0, host: "127.0.0.1", port },
    tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
  },
  trustDomains: {},
  trustedIssuers: {
    [ISSUER]: {
      ...{ keys: { file: "home.json" }, subjects: { prefix: "home:" }, grants: { scopes: SCOPES } },
      ...{ acceptAs: [], jobs: true, signals: { name: "home" } },
    },
  },
  clients: { hotel: secretIn("hotel") },
  targets: [{ names: [ROOM], scopes: SCOPES, introspectors: ["hotel"] }],
  policies: [
    {
      ...{ id: "guests", allow: "redemption", clients: ["hotel"], subjects: { issuers: [ISSUER] } },
      ...{ targets: [ROOM], scopes: SCOPES, lifetimeSeconds: TOKEN_SECONDS, ...implied },
    },
  ],
  limits: MUCH,
  drafts: [CHAINING_DRAFT, ID_JAG_DRAFT],
});
