/** RFC 8693: who acts for whom, what a request must have, and which tokens count. */
import { ACCESS_TOKEN, type Context, JWT } from "../context.ts";
import { expired, isJwt, type Json, makeKey, seconds, withBadSignature } from "../keys.ts";
import type { Changes } from "../minted.ts";
import { area, type Row } from "../table.ts";
import { answers, issues, nothing, refused, scopesOf, that } from "../verdicts.ts";

const actOf = ({ act }: Json): Json => (act ?? {}) as Json;
const BAD = refused("invalid_request", "invalid_grant");
const STRICT = refused("invalid_request");

/** The good request with one parameter changed or left out. */
const parameter = (
  id: string,
  clause: string,
  must: string,
  form: Record<string, string | undefined>,
  code = STRICT,
): Row => [`exchange.${id}`, clause, must, (c) => c.exchange("planner", form), code];
/** A subject token that is wrong in one thing. */
const subject = (id: string, what: string, changes: (c: Context) => Changes): Row => [
  `exchange.subject-${id}`,
  "RFC8693-2.1-20",
  `A subject token ${what} is refused.`,
  (c) => c.exchange("planner", { subject_token: c.userToken(changes(c)) }),
  BAD,
];
const actor = (id: string, what: string, tokenOf: (c: Context) => string): Row => [
  `exchange.actor-${id}`,
  "RFC8693-2.1-21",
  `An actor token ${what} is refused.`,
  (c) => c.exchange("planner", { actor_token: tokenOf(c), actor_token_type: JWT }),
  refused("invalid_request", "invalid_grant", "invalid_client"),
  { needs: ["delegation", "spiffe_jwt"] },
];

export const exchange = area("token exchange", { needs: ["delegation"], basis: "exchange.delegation" }, [
  [
    "exchange.delegation",
    "RFC8693-1.1-3",
    "The token of a delegation has the subject and the actor.",
    (c) => c.exchange("planner"),
    issues(
      "sub is the user, and act.sub the client",
      (claims, c) =>
        typeof claims.sub === "string" &&
        claims.sub !== c.roles.planner.id &&
        actOf(claims).sub === c.roles.planner.id,
    ),
    { basis: undefined },
  ],
  [
    "exchange.issued-type",
    "RFC8693-2.2.1-3",
    "The answer has issued_token_type.",
    (c) => c.exchange("planner"),
    answers(ACCESS_TOKEN, (body) => [ACCESS_TOKEN, JWT].includes(String(body.issued_token_type))),
  ],
  [
    "exchange.token-type",
    "RFC8693-2.2.1-4",
    "The answer has token_type: how the token is used.",
    (c) => c.exchange("planner"),
    answers("token_type Bearer", (body) => /^bearer$/i.test(String(body.token_type))),
  ],
  [
    "exchange.no-store",
    "RFC8693-2.2-1",
    "The answer must not be stored.",
    (c) => c.exchange("planner"),
    that("no-store", ({ headers }) => /\bno-store\b/i.test(headers["cache-control"] ?? "")),
  ],
  [
    "exchange.expires-in",
    "RFC8693-2.2.1-6",
    "The answer has expires_in.",
    (c) => c.exchange("planner"),
    answers("expires_in", ({ expires_in: life }) => typeof life === "number" && life > 0),
  ],
  [
    "exchange.act-object",
    "RFC8693-4.1-1",
    "act is an object with sub.",
    (c) => c.exchange("planner"),
    issues(
      "such an act",
      ({ act }) =>
        typeof act === "object" &&
        act !== null &&
        !Array.isArray(act) &&
        typeof (act as Json).sub === "string",
    ),
  ],
  [
    "exchange.act-identity",
    "RFC8693-4.1-3",
    "act has claims of identity alone.",
    (c) => c.exchange("planner"),
    issues("no exp, nbf, iat or aud in act", (claims) =>
      ["exp", "nbf", "iat", "aud"].every((name) => !(name in actOf(claims))),
    ),
  ],
  [
    "exchange.client",
    "RFC8693-4.3-1",
    "client_id is the client that asked.",
    (c) => c.exchange("planner"),
    issues("client_id is the client", ({ client_id: id }, c) => id === c.roles.planner.id),
  ],
  [
    "exchange.audience",
    "RFC8707-2-7",
    "The token is for the requested target.",
    (c) => c.exchange("planner"),
    issues("aud is the target", ({ aud }, c) => [aud].flat().join() === c.names.booking),
  ],
  [
    "exchange.by-audience",
    "RFC8693-2.1-10",
    "audience names a target, too.",
    (c) => c.exchange("planner", { resource: undefined, audience: c.names.booking }),
    issues("aud is the target", ({ aud }, c) => [aud].flat().join() === c.names.booking),
  ],
  [
    "exchange.lifetime",
    "RFC8693-2.1-24",
    "The token does not outlive its subject token.",
    (c) => c.exchange("planner", { subject_token: c.userToken({ claims: { exp: seconds() + 60 } }) }),
    issues("exp within 60 s", ({ exp }) => typeof exp === "number" && exp <= seconds() + 61),
  ],
  [
    "exchange.reusable",
    "RFC8693-2.1-22",
    "An exchange does not use up its subject token.",
    async (c) => {
      const subject = c.subject();
      await c.tokenOf(c.exchange("planner", subject));
      return c.exchange("planner", subject);
    },
    issues("sub is the user", ({ sub }) => typeof sub === "string"),
  ],
  [
    "exchange.requested-access-token",
    "RFC8693-3-5",
    "requested_token_type access_token gives an access token.",
    (c) => c.exchange("planner", { requested_token_type: ACCESS_TOKEN }),
    answers(ACCESS_TOKEN, (body) => body.issued_token_type === ACCESS_TOKEN),
  ],
  [
    "exchange.requested-jwt",
    "RFC8693-3-6",
    "requested_token_type jwt gives a JWT, or is refused.",
    (c) => c.exchange("planner", { requested_token_type: JWT }),
    that("a JWT, or 400", ({ status, body }) => (status === 200 ? isJwt(body.access_token) : status === 400)),
  ],
  [
    "exchange.no-refresh",
    "RFC8693-2.2.1-10",
    "No refresh token comes of an exchange that did not ask for one.",
    (c) => c.exchange("planner"),
    answers("no refresh_token", (body) => body.refresh_token === undefined),
  ],
  parameter("no-subject", "RFC8693-2.1-15", "A request without subject_token is invalid_request.", {
    subject_token: undefined,
  }),
  parameter("no-subject-type", "RFC8693-2.1-16", "A request without subject_token_type is invalid_request.", {
    subject_token_type: undefined,
  }),
  parameter(
    "unknown-subject-type",
    "RFC8693-3-1",
    "A subject_token_type that is not known is invalid_request.",
    { subject_token_type: "urn:suite:token-type" },
  ),
  parameter("subject-type-case", "RFC8693-3-1", "Types are compared exactly.", {
    subject_token_type: JWT.toUpperCase(),
  }),
  parameter("no-actor-type", "RFC8693-2.1-18", "An actor_token without its type is invalid_request.", {
    actor_token: "x",
    actor_token_type: undefined,
  }),
  parameter("actor-type-alone", "RFC8693-2.1-19", "An actor_token_type without token is invalid_request.", {
    actor_token: undefined,
    actor_token_type: JWT,
  }),
  parameter(
    "unknown-actor-type",
    "RFC8693-3-1",
    "An actor_token_type that is not known is invalid_request.",
    { actor_token: "x", actor_token_type: "urn:suite:token-type" },
  ),
  parameter(
    "unknown-requested-type",
    "RFC8693-3-1",
    "A requested_token_type that is not known is invalid_request.",
    { requested_token_type: "urn:suite:token-type" },
  ),
  parameter(
    "resource-fragment",
    "RFC8693-2.1-8",
    "A resource with a fragment is refused.",
    { resource: "https://booking.suite.example#part" },
    refused("invalid_target", "invalid_request"),
  ),
  parameter(
    "resource-relative",
    "RFC8693-2.1-6",
    "A resource that is no absolute URI is refused.",
    { resource: "booking" },
    refused("invalid_target", "invalid_request"),
  ),
  parameter(
    "unknown-target",
    "RFC8693-2.2.2-3",
    "A target that is not known is invalid_target.",
    { resource: "https://unknown.suite.example" },
    refused("invalid_target"),
  ),
  parameter(
    "unknown-audience",
    "RFC8693-2.2.2-3",
    "An audience that is not known is invalid_target.",
    { resource: undefined, audience: "suite-unknown" },
    refused("invalid_target"),
  ),
  [
    "exchange.unauthenticated",
    "RFC8693-2.1-3",
    "An exchange without client authentication gets no token.",
    async (c) => {
      const { actor_token, actor_token_type } = await c.actorToken("planner");
      return c.post("token_endpoint", {
        ...{
          grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
          resource: c.names.booking,
          actor_token,
        },
        ...{ ...c.subject(), actor_token_type },
      });
    },
    nothing,
  ],
  [
    "exchange.outsider",
    "RFC8693-2.2.2-1",
    "A client without a rule gets no token for a user.",
    (c) => c.exchange("outsider"),
    refused("invalid_request", "invalid_target", "unauthorized_client", "access_denied"),
  ],
  [
    "exchange.other-user",
    "PROD-2.6-1",
    "A user that no rule covers is acted for by no client.",
    (c) => c.exchange("planner", { subject_token: c.userToken({ claims: { sub: "eve" } }) }),
    refused("invalid_request", "invalid_target", "invalid_grant", "access_denied"),
  ],
  [
    "exchange.subject-bad-signature",
    "RFC8693-2.1-20",
    "A subject token with a bad signature is refused.",
    (c) => c.exchange("planner", { subject_token: withBadSignature(c.userToken()) }),
    BAD,
  ],
  subject("other-key", "by another key under the same kid", (c) => ({ key: makeKey(c.scene.idp.key.kid) })),
  subject("alg-none", "with alg none", () => ({ header: { alg: "none" } })),
  subject("expired", "that has expired", () => ({ claims: expired() })),
  subject("not-yet", "that is not yet valid", () => ({ claims: { nbf: seconds() + 600 } })),
  subject("other-audience", "for another audience", () => ({
    claims: { aud: "https://other-server.example" },
  })),
  subject("no-sub", "without sub", () => ({ claims: { sub: undefined } })),
  subject("crit", "with a critical header member", () => ({ header: { crit: ["suite"], suite: 1 } })),
  [
    "exchange.subject-other-issuer",
    "RFC8693-2.1-20",
    "A subject token of an issuer that is not trusted is refused.",
    (c) => c.exchange("planner", { subject_token: c.userToken({}, c.scene.untrusted) }),
    BAD,
  ],
  [
    "exchange.subject-key-of-another",
    "RFC8725-3.8-1",
    "A key of one issuer does not sign for another.",
    (c) => c.exchange("planner", { subject_token: c.userToken({ key: c.scene.partner.key }) }),
    BAD,
  ],
  [
    "exchange.subject-foreign-access-token",
    "RFC8693-3-3",
    "Under the type access_token, a token that this server did not issue is refused.",
    (c) => c.exchange("planner", { subject_token: c.anyUserToken(), subject_token_type: ACCESS_TOKEN }),
    BAD,
  ],
  parameter(
    "subject-garbage",
    "RFC8693-2.1-20",
    "What is no token is refused.",
    { subject_token: "suite" },
    BAD,
  ),
  actor("bad-signature", "with a bad signature", (c) => withBadSignature(c.svid("planner"))),
  actor("expired", "that has expired", (c) => c.svid("planner", { claims: expired() })),
  actor("other-key", "by a key that is not trusted", (c) => c.svid("planner", { key: makeKey("svid-1") })),
  actor("other-audience", "for another audience", (c) =>
    c.svid("planner", { claims: { aud: "https://other.example" } }),
  ),
  actor("of-another", "of another workload than the client", (c) => c.svid("crew")),
  [
    "narrow.requested",
    "PROD-4.1r4-1",
    "A request for less scope gets less.",
    (c) => c.exchange("planner", { scope: c.names.read }),
    issues("scope is the requested one, where it is told", ({ scope }, c, { body }) =>
      [scope, body.scope].every((one) => one === undefined || scopesOf(one).join(" ") === c.names.read),
    ),
  ],
  [
    "narrow.subject",
    "PROD-2.6-6",
    "No token has scope that its subject token has not.",
    (c) => c.exchange("planner", { subject_token: c.userToken({ claims: { scope: c.names.read } }) }),
    that("400, or a token without that scope", async ({ status, body }, c) =>
      status === 200
        ? !scopesOf((await c.read(body.access_token)).scope).includes(c.names.write)
        : status === 400,
    ),
  ],
  [
    "narrow.told",
    "RFC8693-2.2.1-7",
    "Scope that is less than the requested one is told.",
    (c) => c.exchange("planner", { subject_token: c.userToken({ claims: { scope: c.names.read } }) }),
    that(
      "400, or scope in the answer",
      ({ status, body }, c) => status === 400 || scopesOf(body.scope).join(" ") === c.names.read,
    ),
  ],
  [
    "narrow.nothing",
    "RFC6749-5.2-9",
    "A request for scope that the subject token has nothing of gets no token.",
    (c) =>
      c.exchange("planner", {
        scope: c.names.write,
        subject_token: c.userToken({ claims: { scope: c.names.read } }),
      }),
    refused("invalid_scope", "invalid_request"),
  ],
  [
    "narrow.unknown",
    "RFC6749-5.2-9",
    "A scope that is not known is invalid_scope.",
    (c) => c.exchange("planner", { scope: "suite-no-such-scope" }),
    refused("invalid_scope"),
  ],
]);
