/** The instances of the trial, and what a client of each kind asks them. */
import assert from "node:assert/strict";
import { randomUUID, webcrypto } from "node:crypto";
import { Agent } from "node:https";
import { SignJWT } from "jose";
import { openJournal } from "../../../src/adapters/audit/journal.ts";
import { clock } from "../../../src/adapters/clock.ts";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import { random } from "../../../src/adapters/crypto/random.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import { grantKeys } from "../../../src/policy/endings.ts";
import { buildRefreshToken } from "../../../src/spec/rfc6749.ts";
import {
  files,
  forPeople,
  NOTES,
  PRIVATE,
  PRIVATE_SECRET,
  PUBLIC,
  SCOPES,
} from "../../../test/support/people.ts";
import { startProvider } from "../../../test/support/provider.ts";
import { ACCESS_TOKEN, EXCHANGE, ISSUER, makeWorld } from "../../../test/support/world.ts";
import { makeKeys } from "../../dev-keys.ts";
import { type Answer, basic, type Form, postForm } from "../../http-client.ts";
import { launchServer, type ServerProcess } from "../../server-process.ts";

const REPORT = "report";
export const API = "https://api.example";
const READ = ["trips.read"];
/** A user's token of the provider is asked for again after this. */
const USER_TOKEN_MS = 60_000;
const SOURCES = Array.from({ length: 16 }, (_, index) => `127.0.0.${index + 2}`);
const BY_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const MANY = 1_000_000;

export type Site = {
  servers: readonly ServerProcess[];
  /** POST at one instance. */
  post(at: number, path: string, form: Form, isPrivate?: boolean): Promise<Answer>;
  assertion(): Promise<Form>;
  exchange(): Promise<Form>;
  /** Refresh tokens of so many grants. */
  families(count: number): Promise<string[]>;
  /** Starts the first instance again; its lines. */
  startAgain(): ReturnType<typeof launchServer>;
  stop(): Promise<void>;
};

/** `url` is that of the instances, `direct` that of the trial itself. */
export async function openSite(url: string, direct: () => string, count: number): Promise<Site> {
  const provider = await startProvider();
  const { publicKey, privateKey } = await makeKeys();
  const jwk = { ...(await webcrypto.subtle.exportKey("jwk", publicKey)), kid: "k-1", alg: "ES256" };
  const base = forPeople(provider);
  const world = await makeWorld(
    {
      ...base,
      clients: { ...base.clients, [REPORT]: { method: "private_key_jwt", jwks: { keys: [jwk] } } },
      targets: [
        ...base.targets.map((target) => ({ ...target, introspectors: [PRIVATE] })),
        { names: [API], scopes: READ, introspectors: [PRIVATE] },
      ],
      policies: [
        ...base.policies.map((rule) => ({ ...rule, refresh: true })),
        ...[REPORT, PRIVATE].map((client) => ({
          ...{ id: client, allow: "client_credentials", clients: [client] },
          ...{ targets: [API], scopes: READ },
        })),
        {
          ...{ id: "for-users", allow: "impersonation", clients: [PRIVATE], targets: [API], scopes: READ },
          ...{ subjects: { issuers: [provider.issuer] }, subjectToken: { audiences: [PRIVATE] } },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        },
      ],
      limits: {
        pagesPerMinuteBySource: MANY,
        requestsPerSecondByClient: MANY,
        failuresPerMinuteByClient: MANY,
        failuresPerMinuteBySource: MANY,
      },
    },
    { postgres: url, files: files(provider) },
  ).catch(async (fault) => {
    // Left open, it would keep the trial from ending.
    await provider.close();
    throw fault;
  });
  const servers = [world.server];
  while (servers.length < count) servers.push(await world.beside(`instance-${servers.length + 1}`));
  // A source may have 256 connections, and each request that is held has one.
  const agents = SOURCES.map((localAddress) => new Agent({ keepAlive: true, localAddress }));
  let turn = 0;
  const authorization = basic(PRIVATE, PRIVATE_SECRET);
  let userToken = "";
  let userTokenMs = Number.NEGATIVE_INFINITY;
  return {
    servers,
    post(at, path, form, isPrivate = true) {
      const headers: Record<string, string> = isPrivate ? { authorization } : {};
      const agent = agents[turn++ % agents.length] ?? assert.fail();
      const port = servers[at]?.port ?? 0;
      return postForm(`${ISSUER}${path}`, form, {
        ...{ ca: world.ca, headers, agent },
        connect: { host: "127.0.0.1", port },
      });
    },
    async assertion() {
      const seconds = Math.floor(Date.now() / 1000);
      const claims = { iss: REPORT, sub: REPORT, aud: ISSUER, iat: seconds, exp: seconds + 240 };
      const assertion = await new SignJWT({ ...claims, jti: randomUUID() })
        .setProtectedHeader({ alg: "ES256", kid: "k-1" })
        .sign(privateKey);
      return {
        ...{ grant_type: "client_credentials", audience: API },
        ...{ client_assertion_type: BY_ASSERTION, client_assertion: assertion },
      };
    },
    async exchange() {
      if (performance.now() > userTokenMs + USER_TOKEN_MS) {
        userToken = await provider.userToken("alice", PRIVATE, { scope: READ.join(" ") });
        userTokenMs = performance.now();
      }
      return {
        ...{ grant_type: EXCHANGE, subject_token: userToken, audience: API, scope: READ.join(" ") },
        subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
        requested_token_type: ACCESS_TOKEN,
      };
    },
    async families(families) {
      const store = await openStore({ postgres: direct() });
      const onFatal = (reason: string): void => assert.fail(reason);
      const journal = await openJournal({ log: "trial", store: store.log, clock, random, onFatal });
      const by = { type: "consent.recorded", outcome: "allow", reason: "by_subject" } as const;
      const tokens: string[] = [];
      while (tokens.length < families) {
        const nowSeconds = clock.nowSeconds();
        const origin = { iss: provider.issuer, sub: `user-${tokens.length}` };
        const [consentId, id] = [`page-${random.id()}`, random.id()];
        const add = { id: consentId, version: 1, origin, actor: PUBLIC, targets: [NOTES], scopes: SCOPES };
        assert.ok((await journal.record({ event: by, consent: { add } })).ok);
        const grant = { id, clientId: PUBLIC, origin, consentId };
        const times = { signedInAtSeconds: nowSeconds, startedAtSeconds: nowSeconds };
        const start = {
          ...{ ...grant, rotates: true, sub: `company:${origin.sub}`, target: NOTES, scopes: SCOPES },
          ...{ offline: false, startedAtSeconds: nowSeconds, endsAtSeconds: nowSeconds + 12 * 3600 },
          ...{ usedAtSeconds: nowSeconds, generation: 1 },
          endingKeys: grantKeys(hash.sha256, { ...grant, ...times }),
        };
        const token = buildRefreshToken(random.secret());
        const family = { start, digest: hash.sha256(token) };
        assert.ok((await journal.record({ event: by, family })).ok);
        tokens.push(token);
      }
      await journal.close();
      await store.close();
      return tokens;
    },
    startAgain: () => launchServer(world.configFile),
    async stop() {
      for (const agent of agents) agent.destroy();
      await Promise.all(servers.slice(1).map((server) => server.stop("SIGKILL")));
      await servers[0]?.stop("SIGKILL");
      await world.stop().catch(() => undefined);
      await provider.close();
    },
  };
}

export const asRefresh = (token: string): Form => ({
  ...{ grant_type: "refresh_token", refresh_token: token },
  client_id: PUBLIC,
});
