/** A running server with all that surrounds it: trust domain, identity provider, configuration, clients. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JwtSvidInput, TrustDomain } from "../../scripts/dev-pki.ts";
import { bundle, makeTrustDomain, mintJwtSvid } from "../../scripts/dev-pki.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import type { Answer, Form, Sent } from "../../scripts/http-client.ts";
import { claimsOf, postForm, send } from "../../scripts/http-client.ts";
import type { RunningIdp } from "../../scripts/idp.ts";
import { startIdp } from "../../scripts/idp.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { freePorts, startServer } from "../../scripts/server-process.ts";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock, random } from "../../src/adapters/crypto/system.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import type { Consent } from "../../src/policy/ask.ts";

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

export type World = {
  folder: string;
  configFile: string;
  ca: string;
  idp: RunningIdp;
  trustDomain: TrustDomain;
  server: ServerProcess;
  /** POST /token at our own name, wherever the server listens. */
  token(
    form: Form | string,
    headers?: Record<string, string>,
    certificate?: Certificate,
    port?: number,
  ): Promise<Answer>;
  get(path: string, options?: Partial<Sent>): Promise<Answer>;
  svid(path: string, input?: Partial<JwtSvidInput>): Promise<string>;
  /** A form that authenticates by this workload's JWT-SVID. */
  as(svid: string): Form;
  consent(subject: string, path: string, target: string, scopes: readonly string[]): Promise<string>;
  /** Every event of this instance's log, oldest first. */
  events(): Promise<Event[]>;
  stop(): Promise<void>;
};

type WorldOptions = {
  /** Another name than that of `ISSUER`, for a second server. */
  host?: string;
  /** What is set for the identity provider beside the usual. */
  idp?: object;
  /** Used instead of the embedded store. */
  postgres?: string;
  /** Further files beside the configuration. */
  files?: Record<string, string>;
};

/** `extra` becomes part of the configuration. */
export async function makeWorld(
  extra: object,
  { host = HOST, idp: idpSettings = {}, postgres, files = {} }: WorldOptions = {},
): Promise<World> {
  const issuer = `https://${host}`;
  const parent = mkdtempSync(join(tmpdir(), "mandate test "));
  const folder = join(parent, "data");
  const [idpPort = 0] = await freePorts(1);
  const { configFile } = await makeProfile(folder, { idpPort, host });
  const ca = readFileSync(join(folder, "tls/ca.pem"), "utf8");
  const made = await makeTrustDomain(TRUST_DOMAIN);
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
    listen: {
      host: "127.0.0.1",
      port: 0,
      tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
    },
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
  // Who waits for a world that does not come is told so, and not kept waiting by what came first.
  const server = await startServer(configFile).catch(async (fault) => {
    await idp.close();
    throw fault;
  });
  const reach = { ca, connect: { host: "127.0.0.1", port: server.port } };

  const withStore = async <T>(use: (store: Store) => Promise<T>): Promise<T> => {
    const store = await openStore(
      postgres === undefined ? { sqlite: join(folder, "mandate.sqlite") } : { postgres },
    );
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  };

  return {
    ...{ folder, configFile, ca, idp, trustDomain, server },
    token: (form, headers = {}, certificate = {}, port = server.port) =>
      postForm(`${issuer}/token`, form, {
        ...{ ca, headers, ...certificate },
        connect: { host: "127.0.0.1", port },
      }),
    get: (path, options = {}) => send(`${issuer}${path}`, { ...reach, ...options }),
    svid: (path, input = {}) =>
      mintJwtSvid(trustDomain, { sub: workload(path), aud: `${issuer}/token`, ...input }),
    as: (svid) => ({ client_assertion_type: JWT_SPIFFE, client_assertion: svid }),
    consent: (subject, path, target, scopes) =>
      withStore(async (store) => {
        const consent: Consent = {
          id: random.id(),
          version: 1,
          origin: { iss: IDP, sub: subject },
          actor: workload(path),
          targets: [target],
          scopes,
        };
        const onFatal = (reason: string): void => assert.fail(reason);
        const journal = await openJournal({ log: "admin", store: store.log, clock, random, onFatal });
        const event = { type: "consent.recorded", outcome: "allow", reason: "by_test" } as const;
        const recorded = await journal.record({ event, consent: { add: consent } });
        assert.ok(recorded.ok);
        await journal.close();
        return consent.id;
      }),
    events: () =>
      withStore(async (store) => {
        const stored = await store.log.read({ log: "test", limit: 100_000 });
        return stored.map(({ body }) => JSON.parse(body));
      }),
    async stop() {
      await server.stop();
      await idp.close();
      rmSync(parent, { recursive: true, force: true });
    },
  };
}

export type { Form };
export { claimsOf };
