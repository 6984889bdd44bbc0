/** What a server must refuse or answer to a caller without credentials: the clause, the request, what has to come. */
import type { JsonObject } from "../../spec/rfc8259.ts";
import { discoveryUrls } from "../../spec/rfc8414.ts";
import {
  type Answer,
  basic,
  bearer,
  client,
  endpoint,
  type Fields,
  form,
  get,
  isRefused,
  json,
  type Probed,
  REFUSED,
  type Request,
  type Row,
  refusal,
  using,
  valuesOf,
  WRONG,
} from "./row.ts";
import { OF_TOKENS } from "./token-rows.ts";

/** The metadata at the path that is made of an issuer by insertion. */
export const metadataUrl = (issuer: string): string => discoveryUrls(issuer)[0] ?? issuer;

const OF_METADATA = {
  request: ({ issuer }: Probed): Request => ({ method: "GET", url: metadataUrl(issuer) }),
};
const anyOf = (metadata: JsonObject, end: string): readonly unknown[] =>
  Object.entries(metadata).flatMap(([name, value]) => (name.endsWith(end) ? valuesOf(value) : []));

const OF_DOCUMENTS: readonly Row[] = [
  {
    clause: "RFC8414-3.3-1",
    asks: "the metadata",
    ...OF_METADATA,
    wants: "the issuer of the URL",
    fits: (answer, { issuer }) => answer.status === 200 && json(answer).issuer === issuer,
  },
  {
    clause: "RFC8414-3.2-1",
    asks: "the type of the metadata",
    ...OF_METADATA,
    wants: "application/json",
    fits: ({ headers }) => /^application\/json\b/.test(headers["content-type"] ?? ""),
  },
  {
    clause: "RFC8414-2-15",
    asks: "the algorithms in the metadata",
    ...OF_METADATA,
    wants: "no `none`, and no HMAC",
    fits: (answer) =>
      !anyOf(json(answer), "alg_values_supported").some((alg) => /^(none|HS\d+)$/i.test(String(alg))),
  },
  {
    clause: "RFC9700-2.4-1",
    asks: "the grants in the metadata",
    ...OF_METADATA,
    wants: "neither `password` nor `implicit`",
    fits: (answer) => {
      const grants = valuesOf(json(answer).grant_types_supported);
      return grants.length > 0 && !grants.includes("password") && !grants.includes("implicit");
    },
  },
  {
    clause: "RFC9700-2.1.2-1",
    asks: "the response types in the metadata",
    ...OF_METADATA,
    wants: "no token from the authorization endpoint",
    fits: (answer) =>
      !valuesOf(json(answer).response_types_supported).some((type) => /token/.test(String(type))),
  },
  {
    clause: "RFC9700-2.1.1-7",
    asks: "the methods of PKCE in the metadata",
    needs: "authorization_endpoint",
    ...OF_METADATA,
    wants: "S256 alone",
    fits: (answer) => valuesOf(json(answer).code_challenge_methods_supported).join() === "S256",
  },
  {
    clause: "RFC9207-2.3-3",
    asks: "whether responses name their issuer",
    needs: "authorization_endpoint",
    ...OF_METADATA,
    wants: "that they do",
    fits: (answer) => json(answer).authorization_response_iss_parameter_supported === true,
  },
  {
    clause: "RFC6749-3.2-3",
    asks: "the endpoints in the metadata",
    ...OF_METADATA,
    wants: "https alone, and no fragment",
    fits: (answer) =>
      Object.entries(json(answer))
        .filter(([name]) => /_endpoint$|^jwks_uri$/.test(name))
        .every(([, url]) => /^https:\/\/[^#]*$/.test(String(url))),
  },
  {
    clause: "RFC8414-3.1-1",
    asks: "POST to the metadata",
    request: ({ issuer }) => ({ method: "POST", url: metadataUrl(issuer) }),
    wants: "405 with Allow",
    fits: ({ status, headers }) => status === 405 && headers.allow !== undefined,
  },
  {
    clause: "RFC8414-2-1",
    asks: "the metadata under another Host",
    request: ({ issuer }) => ({
      method: "GET",
      url: metadataUrl(issuer),
      headers: { host: "mandate-probe.invalid" },
    }),
    wants: "no word of the other host",
    fits: ({ text, headers }) => !`${text}${headers.location ?? ""}`.includes("mandate-probe.invalid"),
  },
  {
    clause: "RFC7517-7-1",
    asks: "the key set",
    ...get("jwks_uri"),
    wants: "public keys alone",
    fits: (answer) => {
      const keys = valuesOf(json(answer).keys) as readonly JsonObject[];
      const secret = ["d", "p", "q", "dp", "dq", "qi", "k"];
      return (
        answer.status === 200 && keys.length > 0 && !keys.some((key) => secret.some((name) => name in key))
      );
    },
  },
];

const NOT_REDIRECTED = "a refusal in place, no redirect";
const authorization = (
  clause: string,
  asks: string,
  query: Fields,
  wants = NOT_REDIRECTED,
  fits: Row["fits"] = isRefused,
): Row => ({
  clause,
  asks,
  needs: "authorization_endpoint",
  ...get("authorization_endpoint", {}, new URLSearchParams(query).toString()),
  wants,
  fits,
});
const CODE = {
  response_type: "code",
  redirect_uri: "https://mandate-probe.invalid/callback",
  code_challenge: "A".repeat(43),
  code_challenge_method: "S256",
};
const hasHeader =
  (name: string, value: RegExp): Row["fits"] =>
  ({ headers }) =>
    value.test(headers[name] ?? "");

const OF_USERS: readonly Row[] = [
  authorization("RFC6749-4.1.2.1-1", "a code for an unknown client", { ...CODE, client_id: client("code") }),
  authorization("RFC6749-10.15-1", "a redirect without a client", CODE),
  authorization("RFC9700-2.1-2", "a token in the URL, for an unknown client", {
    ...CODE,
    response_type: "token",
    client_id: client("implicit"),
  }),
  authorization("CIMD-3-7", "a code for a client whose URL has a fragment", {
    ...CODE,
    client_id: "https://mandate-probe.invalid/client#x",
  }),
  authorization("CIMD-3-1", "a code for a client whose URL is http", {
    ...CODE,
    client_id: "http://mandate-probe.invalid/client",
  }),
  authorization("RFC9126-4-2", "a code for an invented request URI", {
    client_id: client("request"),
    request_uri: `urn:ietf:params:oauth:request_uri:${WRONG}`,
  }),
  authorization(
    "CSP-6.4.2-1",
    "whether a page may be framed",
    CODE,
    "frame-ancestors 'none'",
    hasHeader("content-security-policy", /frame-ancestors 'none'/),
  ),
  authorization(
    "RFC9700-4.2.4-2",
    "whether a page tells where it was",
    CODE,
    "Referrer-Policy: no-referrer",
    hasHeader("referrer-policy", /^no-referrer$/),
  ),
  {
    clause: "RFC9126-2.1-3",
    asks: "a pushed request without authentication",
    needs: "pushed_authorization_request_endpoint",
    ...form("pushed_authorization_request_endpoint", () => CODE),
    wants: "invalid_client or invalid_request",
    fits: refusal(["invalid_client", "invalid_request"]),
  },
  {
    clause: "RFC9126-2.1-1",
    asks: "a pushed request that names another",
    needs: "pushed_authorization_request_endpoint",
    ...form("pushed_authorization_request_endpoint", () => ({
      ...CODE,
      client_id: client("pushed"),
      client_secret: WRONG,
      request_uri: WRONG,
    })),
    wants: REFUSED,
    fits: isRefused,
  },
  {
    clause: "HTTP-D-63",
    asks: "GET /signout",
    needs: "authorization_endpoint",
    ...get("/signout"),
    wants: "405",
    fits: ({ status }) => status === 405,
  },
  {
    clause: "PAGE-D-5",
    asks: "a sign-out from a form of another site",
    needs: "authorization_endpoint",
    ...form("/signout", () => ({ token: WRONG }), { "sec-fetch-site": "cross-site" }),
    wants: "403 or 400",
    fits: refusal([], [400, 403]),
  },
];

const ofCallers = (
  at: string,
  endpoints: readonly [method: string, introspection: string, unproven: string],
) => {
  const [ofMethod, ofProof, ofSecret] = endpoints;
  const fields = () => ({ token: WRONG });
  const rows: readonly Row[] = [
    {
      clause: ofMethod,
      asks: `GET of the ${at}`,
      ...get(at, {}, `token=${WRONG}`),
      wants: "405",
      fits: refusal([], [405]),
    },
    {
      clause: ofProof,
      asks: `the ${at} without authentication`,
      ...form(at, fields),
      wants: "invalid_client",
      fits: refusal(["invalid_client"], [400, 401]),
    },
    {
      clause: ofSecret,
      asks: `the ${at} with a wrong secret`,
      ...form(at, fields, basic(client(at.replaceAll("_", "-")))),
      wants: "401 invalid_client",
      fits: refusal(["invalid_client"], [401]),
    },
  ];
  return rows.map((row) => ({ ...row, needs: at }));
};

const CHALLENGED = "401 with a Bearer challenge";

const isChallenged = (answer: Answer): boolean =>
  answer.status === 401 && /^Bearer /i.test(answer.headers["www-authenticate"] ?? "");

const ownApi = (path: string, clause: string): Row => ({
  clause,
  asks: `${path} without a token`,
  ...get(path),
  wants: CHALLENGED,
  fits: isChallenged,
});

const OF_API: readonly Row[] = [
  ...ofCallers("introspection_endpoint", ["RFC7662-2.1-1", "RFC7662-2.1-8", "RFC7662-2.3-1"]),
  ...ofCallers("revocation_endpoint", ["RFC7009-2.1-1", "RFC7009-2.1-6", "RFC7009-2.1-6"]),
  ownApi("/audit/events", "RFC6750-3-1"),
  ownApi("/audit/checkpoints", "RFC6750-3-1"),
  ownApi("/consents", "RFC6750-3-1"),
  ownApi("/jobs", "RFC6750-3-1"),
  {
    clause: "RFC6750-3.1-5",
    asks: "whether a challenge for no token has an error",
    ...get("/audit/events"),
    wants: "none",
    fits: (answer) => isChallenged(answer) && !/\berror=/.test(answer.headers["www-authenticate"] ?? ""),
  },
  {
    clause: "RFC6750-3.1-2",
    asks: "the trail with an invented token",
    ...get("/audit/events", bearer),
    wants: "401 with invalid_token",
    fits: (answer) =>
      isChallenged(answer) && /error="invalid_token"/.test(answer.headers["www-authenticate"] ?? ""),
  },
  {
    clause: "RFC9700-4.3.2-1",
    asks: "the trail with a token in the URL",
    ...get("/audit/events", {}, `access_token=${WRONG}`),
    wants: "400 or 401",
    fits: refusal([], [400, 401]),
  },
  {
    clause: "RFC6750-2.1-1",
    asks: "an explanation of the policy without a token",
    request: (probed) => ({
      method: "POST",
      url: endpoint(probed, "/policy/explain"),
      headers: { "content-type": "application/json" },
      body: "{}",
    }),
    wants: CHALLENGED,
    fits: isChallenged,
  },
  {
    clause: "RFC7591-3.2.2-4",
    asks: "a registration with a script as redirect URI",
    needs: "registration_endpoint",
    request: (probed) => ({
      method: "POST",
      url: endpoint(probed, "registration_endpoint"),
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ redirect_uris: ["javascript:alert(1)"] }),
    }),
    wants: "400 or 401, and no client",
    fits: (answer) => refusal([], [400, 401])(answer) && !("client_id" in json(answer)),
  },
  {
    clause: "RFC7592-2-3",
    asks: "GET of the registration endpoint",
    needs: "registration_endpoint",
    ...using("GET", "registration_endpoint"),
    wants: "405",
    fits: refusal([], [405]),
  },
  {
    clause: "RFC7592-2-1",
    asks: "a registration that is another client's",
    needs: "registration_endpoint",
    ...get(`/register/${client("other")}`, bearer),
    wants: "401",
    fits: refusal([], [401]),
  },
];

export const ROWS: readonly Row[] = [...OF_DOCUMENTS, ...OF_TOKENS, ...OF_USERS, ...OF_API];

/** Versions of TLS that are refused, each with its clause. */
export const OLD_TLS = [
  { clause: "RFC7662-4-10", version: "TLSv1" },
  { clause: "RFC7591-5-1", version: "TLSv1.1" },
] as const;
