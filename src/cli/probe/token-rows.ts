/** What the token endpoint must refuse. */
import {
  basic,
  client,
  endpoint,
  type Fields,
  FORM,
  forged,
  form,
  get,
  isRefused,
  json,
  type Probed,
  REFUSED,
  type Row,
  refusal,
  WRONG,
} from "./row.ts";

const GRANT = "urn:ietf:params:oauth:grant-type";
const ASSERTION = "urn:ietf:params:oauth:client-assertion-type";
const CLIENT_CREDENTIALS = { grant_type: "client_credentials" };

const ofToken = (
  clause: string,
  asks: string,
  fields: (probed: Probed) => Fields | string,
  errors: string[],
) => ({
  clause,
  asks,
  ...form("token_endpoint", fields),
  wants: errors.join(" or "),
  fits: refusal(errors),
});
/** A client that only names itself is the caller of all that would need one. */
const withAssertion = (name: string, alg: string, type: string) => (probed: Probed) => ({
  ...CLIENT_CREDENTIALS,
  client_assertion_type: `${ASSERTION}:${type}`,
  client_assertion: forged(alg, probed, { iss: client(name), sub: client(name) }),
});

export const OF_TOKENS: readonly Row[] = [
  {
    clause: "RFC6749-3.2-4",
    asks: "GET /token",
    ...get("token_endpoint", {}, new URLSearchParams(CLIENT_CREDENTIALS).toString()),
    wants: "405 with Allow",
    fits: (answer) => refusal([], [405])(answer) && answer.headers.allow !== undefined,
  },
  ofToken("RFC6749-3.2.1-1", "a token without authentication", () => CLIENT_CREDENTIALS, ["invalid_client"]),
  {
    clause: "RFC6749-5.2-5",
    asks: "a token with a wrong secret by Basic",
    ...form("token_endpoint", () => CLIENT_CREDENTIALS, basic(client("basic"))),
    wants: "401 invalid_client with a Basic challenge",
    fits: (answer) =>
      refusal(["invalid_client"], [401])(answer) && /^Basic /i.test(answer.headers["www-authenticate"] ?? ""),
  },
  {
    clause: "RFC6749-5.1-6",
    asks: "whether a refusal may be cached",
    ...form("token_endpoint", () => CLIENT_CREDENTIALS, basic(client("cached"))),
    wants: "Cache-Control: no-store",
    fits: ({ headers }) => /\bno-store\b/.test(headers["cache-control"] ?? ""),
  },
  {
    clause: "RFC6749-5.2-1",
    asks: "the form of a refusal",
    ...form("token_endpoint", () => ({ grant_type: "" })),
    wants: "JSON with `error`",
    fits: (answer) =>
      isRefused(answer) &&
      /^application\/json\b/.test(answer.headers["content-type"] ?? "") &&
      typeof json(answer).error === "string",
  },
  ofToken(
    "RFC6749-5.2-3",
    "a token with a wrong secret in the body",
    () => ({ ...CLIENT_CREDENTIALS, client_id: client("body"), client_secret: WRONG }),
    ["invalid_client"],
  ),
  {
    clause: "RFC6749-2.3.1-6",
    asks: "a token with the secret in the URL",
    request: (probed) => ({
      method: "POST",
      url: `${endpoint(probed, "token_endpoint")}?client_id=${client("query")}&client_secret=${WRONG}`,
      headers: { "content-type": FORM },
      body: new URLSearchParams(CLIENT_CREDENTIALS).toString(),
    }),
    wants: REFUSED,
    fits: isRefused,
  },
  {
    clause: "RFC6749-2.3-4",
    asks: "a token with two ways of authentication",
    ...form(
      "token_endpoint",
      () => ({ ...CLIENT_CREDENTIALS, client_id: client("two"), client_secret: WRONG }),
      basic(client("two")),
    ),
    wants: "invalid_request or invalid_client",
    fits: refusal(["invalid_request", "invalid_client"]),
  },
  ofToken("RFC6749-3.2-7", "a parameter twice", () => "grant_type=client_credentials&grant_type=password", [
    "invalid_request",
  ]),
  {
    clause: "RFC6749-5.2-2",
    asks: "a token by a body of JSON",
    request: (probed) => ({
      method: "POST",
      url: endpoint(probed, "token_endpoint"),
      headers: { "content-type": "application/json" },
      body: JSON.stringify(CLIENT_CREDENTIALS),
    }),
    wants: "415 or 400, and no token",
    fits: refusal([], [400, 415]),
  },
  {
    clause: "PROD-8.4-2",
    asks: "a body of 1 MiB",
    ...form("token_endpoint", () => ({ ...CLIENT_CREDENTIALS, filler: "a".repeat(1024 * 1024) })),
    wants: "413, and no token",
    fits: refusal([], [413]),
  },
  ofToken(
    "RFC9700-2.4-1",
    "a token for a user's password",
    () => ({ grant_type: "password", username: "user", password: WRONG, client_id: client("password") }),
    ["unsupported_grant_type", "invalid_client", "invalid_request"],
  ),
  ofToken(
    "RFC7518-3.6-1",
    "a client assertion that is not signed",
    withAssertion("none", "none", "jwt-bearer"),
    ["invalid_client"],
  ),
  ofToken(
    "B8725-3.1-3",
    "a client assertion that is not signed, with `noNE`",
    withAssertion("none-cased", "noNE", "jwt-bearer"),
    ["invalid_client"],
  ),
  ofToken("RFC7523-3-16", "a client assertion with HS256", withAssertion("hmac", "HS256", "jwt-bearer"), [
    "invalid_client",
  ]),
  ofToken(
    "RFC7523-3.2-1",
    "a client assertion by an unknown key",
    withAssertion("key", "ES256", "jwt-bearer"),
    ["invalid_client"],
  ),
  ofToken(
    "RFC8725-3.2-v5",
    "a workload's JWT that is not signed",
    withAssertion("svid", "none", "jwt-spiffe"),
    ["invalid_client"],
  ),
  ofToken(
    "RFC7521-4.2-1",
    "an assertion without its type",
    (probed) => ({
      ...CLIENT_CREDENTIALS,
      client_assertion: forged("none", probed, { iss: client("untyped"), sub: client("untyped") }),
    }),
    ["invalid_client", "invalid_request"],
  ),
  ofToken(
    "RFC7521-4.2.1-2",
    "an assertion beside a secret",
    (probed) => ({
      ...withAssertion("both", "none", "jwt-bearer")(probed),
      client_id: client("both"),
      client_secret: WRONG,
    }),
    ["invalid_client"],
  ),
  ofToken(
    "RFC7523-3.1-2",
    "a token for a grant that is not signed",
    (probed) => ({
      grant_type: `${GRANT}:jwt-bearer`,
      assertion: forged("none", probed, { iss: probed.issuer, sub: "user" }),
    }),
    ["invalid_client", "invalid_grant", "unsupported_grant_type"],
  ),
  ofToken(
    "RFC8693-2.1-3",
    "an exchange of an unsigned token",
    (probed) => ({
      grant_type: `${GRANT}:token-exchange`,
      subject_token: forged("none", probed, { iss: probed.issuer, sub: "user" }),
      subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    }),
    ["invalid_client", "invalid_request"],
  ),
  ofToken(
    "RFC6749-5.2-6",
    "a token for an invented code",
    () => ({
      grant_type: "authorization_code",
      code: WRONG,
      client_id: client("code"),
      code_verifier: WRONG,
    }),
    ["invalid_client", "invalid_grant", "unsupported_grant_type"],
  ),
  ofToken(
    "RFC6749-10.4-6",
    "a token for an invented refresh token",
    () => ({
      grant_type: "refresh_token",
      refresh_token: `mrt_${"A".repeat(43)}`,
      client_id: client("refresh"),
    }),
    ["invalid_client", "invalid_grant", "unsupported_grant_type"],
  ),
  {
    clause: "PAGE-D-21",
    asks: "a token from a page of another origin",
    ...form("token_endpoint", () => CLIENT_CREDENTIALS, { origin: "https://mandate-probe.invalid" }),
    wants: "no page may read it",
    fits: ({ headers }) => !/\*|mandate-probe/.test(headers["access-control-allow-origin"] ?? ""),
  },
];
