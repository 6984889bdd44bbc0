/** A valid request for each endpoint and each way to ask there, made anew each time. */
import { randomUUID } from "node:crypto";
import { decodeJwt } from "jose";
import { basic } from "../../scripts/http-client.ts";
import { DEFERRED } from "../../src/spec/deferred-token-response.ts";
import type { Prover } from "../../test/support/dpop.ts";
import { encode, type Key, seconds, signedBy } from "../../test/support/forge.ts";
import { AS_WEB, LOOPBACK_REDIRECT, PUBLIC, request } from "../../test/support/people.ts";
import { CLIENT_AT_PROVIDER } from "../../test/support/provider.ts";
import { EXCHANGE, ISSUER, JWT, JWT_SPIFFE, workload } from "../../test/support/world.ts";
import { type Json, type Part, type Shape, type Token, textOf } from "./mutate.ts";

export const SECRET = "a secret of the fuzzer, long enough: 1234";
export const CORP = "https://corp.example";
export const PUSHES = "Bearer pushes-of-corp";
const BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const CONSENT = {
  subject: { iss: CORP, sub: "carol" },
  actor: workload("a"),
  targets: ["plain"],
  scope: "read",
};
export const CREDENTIALS = { grant_type: "client_credentials", audience: "plain" };

const fields = (place: Part["place"], from: object, proves: readonly string[] = []): Part[] =>
  Object.entries(from).map(([name, value]) => ({ place, name, value, proves: proves.includes(name) }));
const form = (from: object, ...proves: string[]): Part[] => fields("form", from, proves);
const query = (from: object): Part[] => fields("query", from);
const heads = (from: object, ...proves: string[]): Part[] => fields("field", from, proves);

/** Signed when it is sent, with times of that moment. */
const token = (key: Key, claims: object, header: object = {}, lifeSeconds = 300): Token => ({
  header: { alg: key.alg, kid: key.kid, ...header },
  claims: {
    iat: seconds(),
    ...(lifeSeconds > 0 && { exp: seconds() + lifeSeconds }),
    jti: randomUUID(),
    ...claims,
  },
  sign(head, body) {
    const input = `${encode(JSON.stringify(head))}.${encode(JSON.stringify(body))}`;
    return `${input}.${signedBy(key, Buffer.from(input)).toString("base64url")}`;
  },
});

/** With what requests are signed. */
export type Keys = {
  corp: Key;
  signer: Key;
  workloads: Key;
  prover: Prover;
  certificate: Uint8Array;
  provider: { issuer: string; key: Key };
};

/** What valid requests gave. */
export type Kept = {
  plain: string;
  manager: string;
  job: string;
  cookie: string;
  review: { action: string; token: string };
  waiting: { code: string; link: string };
  asked: { action: string; token: string };
  verifier: string;
  code: object;
  refresh: string;
  withdraw: readonly string[];
  user: string;
  /** The one that is changed has another token then. */
  registered: Record<"read" | "changed" | "deleted", { id: string; secret: string; token: string }>;
};

export function shapesOf(
  { corp, signer, workloads, prover, certificate, provider }: Keys,
  kept: () => Kept,
): Record<string, () => Shape> {
  const svid = () => token(workloads, { sub: workload("agents/planner"), aud: ISSUER }, { typ: "JWT" });
  const bySvid = () =>
    form({ client_assertion_type: JWT_SPIFFE, client_assertion: svid() }, "client_assertion");
  const byDesk = () => heads({ authorization: basic("desk", SECRET) }, "authorization");
  const byWeb = () => heads(AS_WEB, "authorization");
  const user = () =>
    token(corp, { iss: CORP, sub: "alice", aud: ISSUER, scope: "read trips.read" }, { typ: "JWT" });
  const post = (path: string, parts: Part[], rest: Partial<Shape> = {}): Shape => ({
    method: "POST",
    path,
    parts,
    ...rest,
  });
  const get = (path: string, parts: Part[] = []): Shape => ({ method: "GET", path, parts });

  const managing = () => heads({ authorization: `Bearer ${kept().manager}` }, "authorization");
  const byCookie = () => heads({ cookie: kept().cookie });
  const registering = (which: "read" | "changed" | "deleted") =>
    heads({ authorization: `Bearer ${kept().registered[which].token}` }, "authorization");
  const JSON_TYPE = heads({ "content-type": "application/json" });
  const METADATA = {
    grant_types: ["client_credentials"],
    scope: "read",
    client_name: "A job",
    software_id: "job",
    contacts: ["a@b.example"],
    "client_name#de": "Ein Auftrag",
  };
  const exchange = { grant_type: EXCHANGE, subject_token_type: JWT, actor_token_type: JWT, scope: "read" };
  const proof = (htu: string): Token => ({
    ...token(prover.key, { htm: "POST", htu }),
    header: { alg: "ES256", typ: "dpop+jwt", jwk: prover.jwk as Json },
  });
  const review = () => new URL(kept().review.action, ISSUER);
  const asked = () => new URL(kept().asked.action, ISSUER);
  const event = { iss: provider.issuer, aud: CLIENT_AT_PROVIDER };
  const logoutToken = () =>
    token(
      provider.key,
      { ...event, sub: "frank", events: { "http://schemas.openid.net/event/backchannel-logout": {} } },
      { typ: "logout+jwt" },
      120,
    );
  const companyToken = () =>
    token(
      provider.key,
      { iss: provider.issuer, sub: kept().user, aud: ISSUER, scope: "trips.read" },
      { typ: "JWT" },
    );

  return {
    "/token credentials by secret": () => post("/token", [...form(CREDENTIALS), ...byDesk()]),
    "/token credentials by JWT": () => {
      const assertion = token(signer, { iss: "signer", sub: "signer", aud: ISSUER });
      return post("/token", [
        ...form(CREDENTIALS),
        ...form({ client_assertion_type: BEARER, client_assertion: assertion }, "client_assertion"),
      ]);
    },
    "/token credentials by certificate": () =>
      post("/token", form({ ...CREDENTIALS, client_id: "billing" }), { certificates: [certificate] }),
    "/token credentials with DPoP": () =>
      post("/token", [...form(CREDENTIALS), ...byDesk(), ...heads({ dpop: proof(`${ISSUER}/token`) })]),
    "/token exchange": () =>
      post("/token", [
        ...form(
          { ...exchange, audience: "plain", subject_token: user(), actor_token: svid() },
          "subject_token",
        ),
        ...bySvid(),
      ]),
    "/token exchange for details": () =>
      post("/token", [
        ...form(
          {
            ...exchange,
            audience: "plain",
            scope: "",
            subject_token: user(),
            actor_token: svid(),
            authorization_details: '[{"type":"notebook","path":"/team"}]',
          },
          "subject_token",
        ),
        ...bySvid(),
      ]),
    "/token exchange that asks": () =>
      post("/token", [
        ...form(
          {
            ...exchange,
            audience: "booking-agent",
            scope: "trips.read",
            subject_token: companyToken(),
            actor_token: svid(),
            completion_mode: "deferred",
            mandate_reason: "to book",
          },
          "subject_token",
        ),
        ...bySvid(),
      ]),
    "/token grant": () => {
      const assertion = token(
        corp,
        { iss: CORP, sub: "alice", aud: ISSUER, client_id: "desk", scope: "read" },
        { typ: "authz-grant+jwt" },
        60,
      );
      return post("/token", [
        ...form({ grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion }, "assertion"),
        ...byDesk(),
      ]);
    },
    "/token code": () => post("/token", [...form(kept().code, "code", "code_verifier"), ...byWeb()]),
    "/token refresh": () =>
      post("/token", [
        ...form({ grant_type: "refresh_token", refresh_token: kept().refresh }, "refresh_token"),
        ...byWeb(),
      ]),
    "/token deferral": () =>
      post("/token", [
        ...form({ grant_type: DEFERRED, deferral_code: kept().waiting.code }, "deferral_code"),
        ...bySvid(),
      ]),
    "/introspect": () => post("/introspect", [...form({ token: kept().plain }), ...byDesk()]),
    "/revoke": () =>
      post("/revoke", [...form({ token: kept().plain, token_type_hint: "access_token" }), ...byDesk()]),
    "/revocations": () =>
      post("/revocations", managing(), { body: { subject: { iss: CORP, sub: "dora" }, dryRun: true } }),
    "POST /jobs": () => post("/jobs", managing(), { body: { client: "desk", title: "a job" } }),
    "GET /jobs": () => get("/jobs", managing()),
    "/jobs/ID": () => get(`/jobs/${kept().job}`, managing()),
    "/policy/explain": () =>
      post("/policy/explain", managing(), { body: { client: "desk", target: "plain", scope: "read" } }),
    "GET /consents": () => get("/consents", [...managing(), ...query({ limit: "3", after: "a" })]),
    "GET /consents/ID": () => get("/consents/c-1", managing()),
    "PUT /consents/ID": () => ({
      ...get(`/consents/c-${seconds()}`, managing()),
      method: "PUT",
      body: CONSENT,
    }),
    "DELETE /consents/ID": () => ({ ...get("/consents/c-1", managing()), method: "DELETE" }),
    "/audit/events": () =>
      get("/audit/events", [
        ...managing(),
        ...query({ client: "desk", limit: "2", from: "2026-01-01T00:00:00Z" }),
      ]),
    "/audit/checkpoints": () => get("/audit/checkpoints", [...managing(), ...query({ limit: "2" })]),
    "/audit/receipts/JTI": () => get(`/audit/receipts/${decodeJwt(kept().plain).jti}`, managing()),
    "/audit/logs": () => get("/audit/logs", heads({ accept: "application/json" })),
    "/audit/logs/LOG": () => get("/audit/logs/test", managing()),
    "/audit/consistency/LOG": () =>
      get("/audit/consistency/test", [...managing(), ...query({ from: "1", to: "2" })]),
    "POST /register": () => post("/register", JSON_TYPE, { body: METADATA }),
    "POST /register with a statement": () => {
      const software_statement = token(corp, { iss: CORP, software_id: "job" }, { typ: "JWT" });
      return post("/register", JSON_TYPE, {
        body: { ...METADATA, software_statement: textOf(software_statement) },
      });
    },
    "GET /register/ID": () => get(`/register/${kept().registered.read.id}`, registering("read")),
    "PUT /register/ID": () => {
      const { id: client_id, secret: client_secret } = kept().registered.changed;
      const body = { ...METADATA, client_id, client_secret };
      return { ...get(`/register/${client_id}`, registering("changed")), method: "PUT", body };
    },
    "DELETE /register/ID": () => ({
      ...get(`/register/${kept().registered.deleted.id}`, registering("deleted")),
      method: "DELETE",
    }),
    "/signals/NAME": () => {
      const type = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
      const events = {
        [type]: { event_timestamp: seconds() },
      };
      const claims = {
        iss: CORP,
        aud: ISSUER,
        events,
        sub_id: { format: "complex", user: { format: "iss_sub", iss: CORP, sub: "erin" } },
      };
      const authorization = { authorization: PUSHES, "content-type": "application/secevent+jwt" };
      return post("/signals/corp", heads(authorization, "authorization"), {
        body: token(corp, claims, { typ: "secevent+jwt" }, 0),
      });
    },
    "/par": () => post("/par", [...form(request(kept().verifier)), ...byWeb()]),
    "/authorize": () =>
      get(
        "/authorize",
        query(request(kept().verifier, { prompt: "consent", login_hint: "alice", max_age: "60" })),
      ),
    "/authorize of a public client": () =>
      get(
        "/authorize",
        query(request(kept().verifier, { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT })),
      ),
    "GET /authorize/review": () =>
      get(review().pathname, [...query(Object.fromEntries(review().searchParams)), ...byCookie()]),
    "POST /authorize/review": () =>
      post(review().pathname, [
        ...query(Object.fromEntries(review().searchParams)),
        ...form({ token: kept().review.token, decision: "allow", all: "1", confirm: "1" }),
        ...byCookie(),
      ]),
    "GET /ask": () =>
      get("/ask", [...query(Object.fromEntries(new URL(kept().waiting.link).searchParams)), ...byCookie()]),
    "POST /ask": () =>
      post(asked().pathname, [
        ...query(Object.fromEntries(asked().searchParams)),
        ...form({ token: kept().asked.token, decision: "allow", all: "1", confirm: "1" }),
        ...byCookie(),
      ]),
    "/account": () => get("/account", [...byCookie(), ...heads({ "accept-language": "de-AT, en;q=0.5" })]),
    "/account/withdraw": () =>
      post("/account/withdraw", [
        ...form({ token: kept().withdraw[1] ?? "", consent: kept().withdraw[2] ?? "" }),
        ...byCookie(),
      ]),
    "/signout": () => post("/signout", [...form({ token: kept().withdraw[1] ?? "" }), ...byCookie()]),
    "/signin": () => get("/signin", [...query({ provider: "company", again: "1" }), ...byCookie()]),
    "/callback/NAME": () =>
      get("/callback/company", [
        ...query({ code: "a", state: kept().verifier, iss: provider.issuer }),
        ...byCookie(),
      ]),
    "/backchannel-logout/NAME": () =>
      post("/backchannel-logout/company", form({ logout_token: logoutToken() })),
    "/rp/jwks/NAME": () => get("/rp/jwks/company"),
    "/logo/NAME": () => get("/logo/none"),
    "/signed-out": () => get("/signed-out", [...query({ provider: "company" }), ...byCookie()]),
    "/favicon.ico": () => get("/favicon.ico"),
    "/openapi.json": () => get("/openapi.json", heads({ "if-none-match": '"a"' })),
    "/": () => get("/", [...byCookie(), ...heads({ accept: "text/html" })]),
    "/jwks": () => get("/jwks", heads({ origin: "https://app.example", "if-none-match": '"a"' })),
    "/.well-known": () =>
      get(
        "/.well-known/oauth-authorization-server",
        heads({ traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" }),
      ),
  };
}
