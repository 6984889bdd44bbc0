/** A running server with all that surrounds it: trust domain, identity provider, configuration, clients. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setClock } from "../../scripts/clock-file.ts";
import {
  bundle,
  type JwtSvidInput,
  loadTrustDomain,
  mintJwtSvid,
  type TrustDomain,
} from "../../scripts/dev-keys.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { removedWithThis } from "../../scripts/guard.ts";
import { type Answer, claimsOf, type Form, postForm, type Sent, send } from "../../scripts/http-client.ts";
import { type RunningIdp, startIdp } from "../../scripts/idp.ts";
import { freePorts, type ServerProcess, startServer } from "../../scripts/server-process.ts";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock } from "../../src/adapters/clock.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import { EARLY_LOOK_SECONDS } from "../../src/limits/fetching.ts";
import type { Consent } from "../../src/policy/access.ts";
import { asDescribed } from "./described.ts";
import { SHARED_FOLDER } from "./run-folder.ts";
import { whilePassing } from "./until.ts";

const HOST = "as.example";
export const ISSUER = `https://${HOST}`;
export const IDP = "https://idp.example";
export const TRUST_DOMAIN = "td.example";

export const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
export const JWT_SPIFFE = "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe";
export const JWT = "urn:ietf:params:oauth:token-type:jwt";
export const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";

export const workload = (path: string): string => `spiffe://${TRUST_DOMAIN}/${path}`;

/** What the client shows in the handshake, PEM: its key, and its certificate with the intermediates. */
export type Certificate = { key?: string; cert?: string };

/** An event as it was stored, so far as tests look into it. */
export type Event = Record<string, unknown> & {
  type: string;
  reason: string;
  outcome: string;
  granted?: { jti: string; parent_jti: readonly string[] };
};

export type Surroundings = {
  issuer: string;
  folder: string;
  configFile: string;
  ca: string;
  idp: RunningIdp;
  trustDomain: TrustDomain;
  svid(path: string, input?: Partial<JwtSvidInput>): Promise<string>;
  /** A form that authenticates by this workload's JWT-SVID. */
  as(svid: string): Form;
  /** Ends the identity provider and removes the files. */
  remove(): Promise<void>;
};

/** What a test asks of a server, wherever that runs. */
export type Service = Surroundings & {
  /** POST /token at our own name, wherever the server listens. */
  token(
    form: Form | string,
    headers?: Record<string, string>,
    certificate?: Certificate,
    port?: number,
  ): Promise<Answer>;
  get(path: string, options?: Partial<Sent>): Promise<Answer>;
  consent(subject: string, path: string, target: string, scopes: readonly string[]): Promise<string>;
  /** Every event of this instance's log, oldest first. */
  events(): Promise<Event[]>;
  stop(): Promise<void>;
};

/** A server in a process of its own, as users run it. */
export type World = Service & {
  server: ServerProcess;
  /** Another server under the same clock, by its own configuration file. */
  start(file: string): Promise<ServerProcess>;
  /** Another instance on the same store, with a log of its own and perhaps other limits. */
  beside(instance: string, limits?: object): Promise<ServerProcess>;
  /** Moves both clocks of the servers forward, where the test sets them; what a test makes itself is still of now. */
  pass(seconds: number): void;
  /**
   * Moves the monotonic clock alone, by which early looks wait, so that what a test signed does not expire on a slow
   * machine. The clocks disagree then: what a server holds counts as of unknown age.
   */
  skip(seconds: number): void;
  /** Sets the wall clock alone: so many seconds ahead of the right time. */
  setWall(aheadSeconds: number): void;
  /** So many seconds were passed. */
  passed(): number;
  /** The time of the servers. */
  nowMs(): number;
};

export type WorldOptions = {
  /** Another name than that of `ISSUER`, for a second server. */
  host?: string;
  /** What is set for the identity provider beside the usual. */
  idp?: object;
  /** Used instead of the embedded store. */
  postgres?: string;
  /** Further files beside the configuration. */
  files?: Record<string, string | Uint8Array>;
  /** Whether a test sets the clock of its servers. */
  clock?: boolean;
  /** Whether a request that waits for an early look at keys does so by a clock that is moved for it. */
  skipsLooks?: boolean;
  /** By how much the wall clock is ahead when the server starts. */
  wallAheadSeconds?: number;
};

/**
 * The development profile for this host name. A run makes it once, because keys and certificates take a fifth of a
 * second; a file that runs alone makes its own.
 */
async function copyProfile(host: string, folder: string): Promise<void> {
  const made = join(process.env[SHARED_FOLDER] ?? join(folder, ".."), `profile-${host}`);
  // Another file may have made it meanwhile, and there is only one.
  if (!existsSync(made))
    await makeProfile(made, { host, trustDomain: TRUST_DOMAIN }).catch((fault) => {
      if (!existsSync(made)) throw fault;
    });
  cpSync(made, folder, { recursive: true });
  // What one server encrypts, another cannot read.
  writeFileSync(join(folder, "keys/encryption-key"), randomBytes(32).toString("base64url"));
}

/** The files, trust domain and identity provider of a server, and its configuration, into which `extra` is merged. */
export async function makeSurroundings(
  extra: object,
  { host = HOST, idp: idpSettings = {}, postgres, files = {} }: WorldOptions = {},
): Promise<Surroundings> {
  const issuer = `https://${host}`;
  const parent = removedWithThis(mkdtempSync(join(tmpdir(), "mandate test ")));
  const folder = join(parent, "data");
  const [idpPort = 0] = await freePorts(1);
  await copyProfile(host, folder);
  const configFile = join(folder, "config.json");
  const ca = readFileSync(join(folder, "tls/ca.pem"), "utf8");
  const made = loadTrustDomain(join(folder, "trust-domain/authority.json"));
  const trustDomain = { ...made, jwt: { ...made.jwt, kid: "td-1" } };
  writeFileSync(join(folder, "bundle.json"), JSON.stringify(bundle(trustDomain)));
  writeFileSync(
    join(folder, "idp/idp.json"),
    JSON.stringify({ issuer: IDP, host: "127.0.0.1", port: idpPort }),
  );
  const config = {
    version: 1,
    profile: "development",
    issuer,
    listen: listenAt(0),
    store: postgres === undefined ? { sqlite: "mandate.sqlite" } : { postgres },
    keys: { encryptionKey: { file: "keys/encryption-key" } },
    audit: { instance: "test" },
    trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" } } },
    trustedIssuers: {
      [IDP]: {
        keys: {
          url: `https://localhost:${idpPort}/jwks`,
          ca: { file: "tls/ca.pem" },
          privateNetworks: ["127.0.0.0/8", "::1/128"],
        },
        acceptAs: ["jwt", "id_token"],
        subjects: "keep",
        ...idpSettings,
      },
    },
    drafts: ["draft-ietf-oauth-spiffe-client-auth-02"],
    ...extra,
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  writeFileSync(configFile, JSON.stringify(config, null, 2));
  const idp = await startIdp(folder);
  return {
    issuer,
    folder,
    configFile,
    ca,
    trustDomain,
    idp,
    svid: (path, input = {}) => mintJwtSvid(trustDomain, { sub: workload(path), aud: issuer, ...input }),
    as: (svid) => ({ client_assertion_type: JWT_SPIFFE, client_assertion: svid }),
    async remove() {
      await idp.close();
      rmSync(parent, { recursive: true, force: true });
    },
  };
}

/** Of this user for this workload. */
export const consentOf = (
  subject: string,
  path: string,
  target: string,
  scopes: readonly string[],
): Consent => ({
  id: random.id(),
  version: 1,
  origin: { iss: IDP, sub: subject },
  actor: workload(path),
  targets: [target],
  scopes,
});

/** The event under which a test adds a consent. */
export const consentAdded = ({ id, version, origin, actor, targets, scopes }: Consent): AuditEvent => ({
  type: "consent.recorded",
  outcome: "allow",
  reason: "by_operator",
  policy: { digest: "", consent: id },
  detail: { ...origin, version, actor, targets: [...targets], scope: scopes.join(" ") },
});

/** A listener with the certificate of the world; port 0: any that is free. */
export const listenAt = (port: number) => ({
  host: "127.0.0.1",
  port,
  // No balancer has to notice that this server stops.
  drainSeconds: 0,
  tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
});

export async function makeWorld(extra: object, options: WorldOptions = {}): Promise<World> {
  const surroundings = await makeSurroundings(extra, options);
  const { issuer, folder, configFile, ca } = surroundings;
  const { postgres, skipsLooks = false, clock: isSet = skipsLooks, wallAheadSeconds = 0 } = options;
  // Who waits for a world that does not come is told so, and not kept waiting by what came first.
  const clockFile = join(folder, "clock.json");
  let passedMs = 0;
  let skippedMs = 0;
  let wallAheadMs = 1000 * wallAheadSeconds;
  const set = (): void =>
    setClock(clockFile, { wallMs: passedMs + wallAheadMs, monotonicMs: passedMs + skippedMs });
  set();
  const pass = (seconds: number): void => {
    passedMs += seconds * 1000;
    set();
  };
  const skip = (seconds: number): void => {
    skippedMs += seconds * 1000;
    set();
  };
  const start = (file: string): Promise<ServerProcess> =>
    startServer(file, isSet ? { environment: { MANDATE_CLOCK_FILE: clockFile } } : {});
  const server = await start(configFile).catch(async (fault) => {
    await surroundings.remove();
    throw fault;
  });
  const agent = new Agent({ keepAlive: true });
  const reach = { ca, agent, connect: { host: "127.0.0.1", port: server.port } };

  /** Opened for the first question, and kept: to open it costs more than most questions. */
  let opened: Promise<Store> | undefined;
  const store = (): Promise<Store> => {
    opened ??= openStore(
      postgres === undefined ? { sqlite: join(folder, "mandate.sqlite") } : { postgres },
    ).catch((fault) => {
      // The next question tries anew.
      opened = undefined;
      throw fault;
    });
    return opened;
  };
  const events: Event[] = [];

  return {
    ...surroundings,
    server,
    start,
    beside(instance, limits = {}) {
      const config = JSON.parse(readFileSync(configFile, "utf8"));
      const file = join(folder, `${instance}.json`);
      const changed = { limits: { ...config.limits, ...limits }, audit: { ...config.audit, instance } };
      writeFileSync(file, JSON.stringify({ ...config, ...changed }));
      return start(file);
    },
    pass,
    skip,
    setWall(aheadSeconds) {
      wallAheadMs = aheadSeconds * 1000;
      set();
    },
    passed: () => passedMs / 1000,
    nowMs: () => Date.now() + passedMs,
    token(form, headers = {}, certificate = {}, port = server.port) {
      const sent = postForm(`${issuer}/token`, form, {
        ...{ ca, agent, headers, ...certificate },
        connect: { host: "127.0.0.1", port },
      });
      const answer = asDescribed("POST", "/token", sent);
      return skipsLooks ? whilePassing({ pass: skip }, EARLY_LOOK_SECONDS, answer) : answer;
    },
    get: (path, options = {}) =>
      asDescribed(options.method ?? "GET", path, send(`${issuer}${path}`, { ...reach, ...options })),
    async consent(subject, path, target, scopes) {
      const consent = consentOf(subject, path, target, scopes);
      const onFatal = (reason: string): void => assert.fail(reason);
      const { log } = await store();
      const journal = await openJournal({ log: "admin", store: log, clock, random, onFatal });
      const recorded = await journal.record({ event: consentAdded(consent), consent: { add: consent } });
      assert.ok(recorded.ok);
      await journal.close();
      return consent.id;
    },
    async events() {
      const { log } = await store();
      const stored = await log.read({ log: "test", afterSeq: events.length - 1, limit: 100_000 });
      // By their number, since two may ask at the same time.
      for (const { seq, body } of stored) events[seq] = JSON.parse(body);
      return [...events];
    },
    async stop() {
      agent.destroy();
      await server.stop();
      await (await opened)?.close();
      await surroundings.remove();
    },
  };
}

export type { Form };
export { claimsOf };
