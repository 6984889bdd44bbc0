/**
 * The site of the trials of signals: instances in the production profile on one store, where PostgreSQL has a role with
 * no more rights than a server needs; a provider that signs events about its users; and what is asked of an instance.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import postgres from "postgres";
import { openStore } from "../../../src/adapters/store/open.ts";
import { serveBy } from "../../../test/adapters/store/postgres/schema.ts";
import { forPeople, PRIVATE, WEB_REDIRECT } from "../../../test/support/people.ts";
import { startDatabaseServer } from "../../../test/support/pg-transports.ts";
import { freshDatabase } from "../../../test/support/postgres.ts";
import { startProvider, type TestProvider } from "../../../test/support/provider.ts";
import {
  EXCHANGE,
  ISSUER,
  JWT,
  makeSurroundings,
  type Surroundings,
  workload,
} from "../../../test/support/world.ts";
import { type Call, makeCall } from "../../bench/client.ts";
import { type Answer, basic, encodeForm, type Form, type Sent, send } from "../../http-client.ts";
import { freePorts, type ServerProcess, startServer } from "../../server-process.ts";

export const API = "https://api.example";
const SCOPES = ["trips.read"];
const AGENTS = ["planner", "bulk"] as const;
export type AgentName = (typeof AGENTS)[number];
/** What the users' app, the API that asks about tokens, and the operator's desk are given. */
const SECRETS = { app: "app-secret", gate: "gate-secret", desk: "desk-secret" } as const;
const DATABASE = "MANDATE_TRIAL_DATABASE";
const INSTANCE = "MANDATE_TRIAL_INSTANCE";
/** Longer than a trial takes. */
const PROOF_SECONDS = 3_000;
/** Of a token, by default. */
const LIFE_SECONDS = 300;
const DISABLED = "https://schemas.openid.net/secevent/risc/event-type/account-disabled";

export type StoreKind = "PostgreSQL" | "SQLite";

export type Instance = { name: string; health: number; file: string; server: ServerProcess };

export type Site = {
  provider: TestProvider;
  /** Of our server. */
  ca: string;
  instances: readonly Instance[];
  /** Ends the instance by SIGKILL, and starts it again. */
  restart(at: Instance): Promise<void>;
  /** Has every instance tell these receivers from now on. */
  tell(receivers: { ca: string; streams: object }): Promise<void>;
  ask(at: Instance, path: string, sent?: Partial<Sent>): Promise<Answer>;
  post(at: Instance, path: string, form: Form, client?: keyof typeof SECRETS): Promise<Answer>;
  /** Whether this account can use its token for another one, as the agent does for it. */
  exchange(at: Instance, subjectToken: string, agent?: AgentName): Promise<Answer>;
  /** An exchange whose every part may be used again and again. */
  exchangeCall(subjectToken: string): Promise<Call>;
  userToken(sub: string): Promise<string>;
  isActive(at: Instance, token: string): Promise<boolean>;
  /** POST /revocations by the desk. */
  end(at: Instance, order: object): Promise<Record<string, unknown>>;
  /** The provider tells this instance that it disabled the user. */
  disable(at: Instance, sub: string): Promise<void>;
  readiness(at: Instance): Promise<{ status: number; body: Readiness }>;
  metrics(at: Instance): Promise<string>;
  /** Adds so many living tokens of one user, past the server. */
  fill(count: number): Promise<void>;
  /** What is on record of streams, in all logs. */
  streamEvents(): Promise<{ type: string; stream: string }[]>;
  close(): Promise<void>;
};

export type Readiness = {
  streams: Record<string, { waiting: number; oldestSeconds: number; reachable: boolean }>;
};

export async function openSite(kind: StoreKind, count: number): Promise<Site> {
  const provider = await startProvider();
  const secrets = { app: random(), gate: random(), desk: random() };
  const surroundings = await makeSurroundings(configure(provider), {
    files: {
      "provider.pem": provider.ca,
      [SECRETS.app]: secrets.app,
      [SECRETS.gate]: secrets.gate,
      [SECRETS.desk]: secrets.desk,
    },
  });
  const database = kind === "PostgreSQL" ? await openDatabase(surroundings) : undefined;
  const store = database === undefined ? { sqlite: "mandate.sqlite" } : { postgres: { env: DATABASE } };
  const { folder, ca, configFile } = surroundings;
  const base = { ...JSON.parse(readFileSync(configFile, "utf8")), store };
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const ports = await freePorts(count);
  let streams: object = {};
  const write = ({ file, health }: Pick<Instance, "file" | "health">): void =>
    writeFileSync(file, JSON.stringify({ ...base, operations: { port: health }, signals: { streams } }));
  const start = ({ file, name }: Pick<Instance, "file" | "name">): Promise<ServerProcess> =>
    startServer(file, { environment: { [INSTANCE]: name, [DATABASE]: database?.serving } });
  const instances: Instance[] = [];
  for (const [index, health] of ports.entries()) {
    const name = `one-${index + 1}`;
    const file = join(folder, `${name}.json`);
    write({ file, health });
    instances.push({ name, health, file, server: await start({ file, name }) });
  }
  const ask = ({ server }: Instance, path: string, sent: Partial<Sent> = {}): Promise<Answer> =>
    send(`${ISSUER}${path}`, { ...sent, ca, agent, connect: { host: "127.0.0.1", port: server.port } });
  const post: Site["post"] = (at, path, form, client) =>
    ask(at, path, {
      method: "POST",
      body: encodeForm(form),
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        ...(client && { authorization: basic(client === "app" ? PRIVATE : client, secrets[client]) }),
      },
    });
  const svids = new Map<AgentName, string>();
  for (const one of AGENTS) svids.set(one, await surroundings.svid(one, { expSeconds: PROOF_SECONDS }));
  const exchangeForm = (subject: string, by: AgentName): Record<string, string> => ({
    ...{ client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe" },
    ...{ client_assertion: svids.get(by) ?? "", grant_type: EXCHANGE },
    ...{ subject_token: subject, subject_token_type: JWT, audience: API, scope: SCOPES.join(" ") },
  });
  let desk: { token: string; untilMs: number } | undefined;
  const deskToken = async (at: Instance): Promise<string> => {
    if (desk !== undefined && performance.now() < desk.untilMs) return desk.token;
    const form = { grant_type: "client_credentials", audience: `${ISSUER}/api`, scope: "token:revoke" };
    const { status, body, text } = await post(at, "/token", form, "desk");
    assert.equal(status, 200, text);
    desk = { token: String(body.access_token), untilMs: performance.now() + 120_000 };
    return desk.token;
  };
  const userToken = (sub: string): Promise<string> =>
    provider.userToken(sub, ISSUER, {
      scope: SCOPES.join(" "),
      exp: Math.floor(Date.now() / 1000) + PROOF_SECONDS,
    });
  const operations = (at: Instance, path: string) => fetch(`http://127.0.0.1:${at.health}${path}`);

  return {
    ...{ provider, ca, instances, ask, post, userToken },
    async restart(at) {
      await at.server.stop("SIGKILL");
      at.server = await start(at);
    },
    async tell(receivers) {
      writeFileSync(join(folder, "receivers.pem"), receivers.ca);
      streams = receivers.streams;
      for (const at of instances) {
        write(at);
        assert.deepEqual(await at.server.reload(), []);
      }
    },
    exchange: (at, subject, by = "planner") => post(at, "/token", exchangeForm(subject, by)),
    exchangeCall: async (subject) => makeCall(new URL(`${ISSUER}/token`), exchangeForm(subject, "planner")),
    async isActive(at, token) {
      const { status, body, text } = await post(at, "/introspect", { token }, "gate");
      assert.equal(status, 200, text);
      return body.active === true;
    },
    async end(at, order) {
      const headers = { authorization: `Bearer ${await deskToken(at)}`, "content-type": "application/json" };
      const answer = await ask(at, "/revocations", { method: "POST", headers, body: JSON.stringify(order) });
      assert.equal(answer.status, 200, answer.text);
      return answer.body;
    },
    async disable(at, sub) {
      const sub_id = { format: "iss_sub", iss: provider.issuer, sub };
      const claims = { aud: ISSUER, exp: undefined, sub_id, events: { [DISABLED]: {} } };
      const { status, text } = await ask(at, "/signals/company", {
        method: "POST",
        headers: { "content-type": "application/secevent+jwt" },
        body: await provider.logoutToken(claims, { typ: "secevent+jwt" }),
      });
      assert.equal(status, 202, text);
    },
    async readiness(at) {
      const answer = await operations(at, "/readyz");
      return { status: answer.status, body: (await answer.json()) as Readiness };
    },
    metrics: async (at) => (await operations(at, "/metrics")).text(),
    async fill(count) {
      const [at = assert.fail()] = instances;
      const { status, text } = await post(at, "/token", exchangeForm(await userToken("filler"), "planner"));
      assert.equal(status, 200, text);
      const sql = postgres(database?.owned ?? assert.fail(), { max: 1, onnotice: () => {} });
      const columns = await sql<{ name: string }[]>`
        select attname as name from pg_attribute
        where attrelid = 'token'::regclass and attnum > 0 and not attisdropped and attname <> 'jti'`;
      const names = columns.map(({ name }) => name);
      // Their first key is their own; the others they share. They expire one after the other.
      const values = names.map((name) => {
        if (name === "ending_keys")
          return `regexp_replace(ending_keys::text, '"[^"]+"', '"' || left(md5('key' || i), 22) || '"')::json`;
        return name === "expires_at" ? `expires_at - i % ${LIFE_SECONDS}` : name;
      });
      await sql.unsafe(`insert into token (jti, ${names.join(", ")}) select left(md5(i::text), 22), ${values.join(", ")}
        from (select * from token order by issued_at desc limit 1) t cross join generate_series(1, ${count}) i`);
      await sql.unsafe("analyze token");
      await sql.end();
    },
    async streamEvents() {
      const found: { type: string; stream: string }[] = [];
      const opened = await openStore(
        database === undefined ? { sqlite: join(folder, "mandate.sqlite") } : { postgres: database.owned },
      );
      for (const { name } of instances) {
        for (const { body } of await opened.log.read({ log: name, afterSeq: -1, limit: 1_000_000 })) {
          const { type, detail } = JSON.parse(body);
          if (String(type).startsWith("signal.") && detail?.stream)
            found.push({ type, stream: detail.stream });
        }
      }
      await opened.close();
      return found;
    },
    async close() {
      agent.destroy();
      await Promise.all(instances.map(({ server }) => server.stop("SIGKILL")));
      await surroundings.remove();
      await database?.end();
      await provider.close();
    },
  };
}

const random = (): string => randomBytes(32).toString("base64url");

/** By TLS, with a role that has the rights that a server needs and no others. */
export async function openDatabase({ folder }: Surroundings) {
  const server = await startDatabaseServer({ durable: true });
  const owned = await freshDatabase(server);
  const admin = postgres(owned, { max: 1, onnotice: () => {} });
  const { url, end } = await serveBy(owned, admin);
  writeFileSync(join(folder, "database-ca.pem"), server.authority.certPem);
  return {
    owned,
    serving: `${url}?sslmode=verify-full&sslrootcert=database-ca.pem`,
    async end(): Promise<void> {
      await end();
      await admin.end();
      await server.stop();
    },
  };
}

function configure(provider: TestProvider): object {
  const people = forPeople(provider);
  const secret = (file: string) => ({ method: "client_secret_basic", secrets: [{ file }] });
  const exchanges = (id: AgentName) => ({
    ...{ id, allow: "impersonation", actors: [workload(id)], targets: [API], scopes: SCOPES },
    ...{ subjects: { issuers: [provider.issuer] }, subjectToken: { audiences: [ISSUER] } },
    ...{ consent: "implied", acknowledge: "subjects-not-asked" },
  });
  return {
    ...people,
    profile: "production",
    audit: { instance: { env: INSTANCE } },
    trustedIssuers: provider.trusted({ acceptAs: ["id_token", "jwt"], signals: { name: "company" } }),
    clients: {
      [PRIVATE]: { ...secret(SECRETS.app), redirectUris: [WEB_REDIRECT] },
      gate: secret(SECRETS.gate),
      desk: secret(SECRETS.desk),
    },
    targets: [
      ...people.targets.map((target) => ({ ...target, introspectors: ["gate"] })),
      { names: [API], introspectors: ["gate"], scopes: SCOPES },
    ],
    policies: [
      ...people.policies.map((rule) => ({ ...rule, clients: [PRIVATE], refresh: true })),
      ...AGENTS.map(exchanges),
      {
        ...{ id: "desk", allow: "client_credentials", clients: ["desk"] },
        ...{ targets: [`${ISSUER}/api`], scopes: ["token:revoke"] },
      },
    ],
    limits: {
      ...{ requestsPerSecondByClient: 100_000, pagesPerMinuteBySource: 100_000 },
      ...{ failuresPerMinuteByClient: 100_000, failuresPerMinuteBySource: 100_000 },
    },
  };
}
