/** RFC 8414: what the server says of itself. */
import { type Context, EXCHANGE } from "../context.ts";
import type { Answer } from "../http.ts";
import type { Json } from "../keys.ts";
import { area } from "../table.ts";
import { answers, has, that } from "../verdicts.ts";

const wellKnown = (c: Context, name: string): string => {
  const { origin, pathname } = new URL(c.server.issuer);
  return `${origin}/.well-known/${name}${pathname.replace(/\/$/, "")}`;
};
const get = (c: Context): Promise<Answer> => c.get(wellKnown(c, "oauth-authorization-server"));
const keys = (c: Context): Promise<Answer> => c.get(c.endpoint("jwks_uri"));
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const jwksOf = (body: Json): readonly Json[] => listOf(body.keys) as Json[];
const isHttps = (value: unknown): boolean => typeof value === "string" && /^https:\/\/[^?#]+$/.test(value);
const PRIVATE = ["d", "p", "q", "dp", "dq", "qi", "k"];

export const metadata = area("metadata", { needs: ["metadata"], basis: "metadata.get" }, [
  [
    "metadata.get",
    "RFC8414-3.2-1",
    "The metadata are at the well-known path, with status 200, as an object of application/json.",
    get,
    that(
      "200, application/json, an object",
      ({ status, headers, body }) =>
        status === 200 &&
        /^application\/json\b/.test(headers["content-type"] ?? "") &&
        Object.keys(body).length > 0,
    ),
    { basis: undefined },
  ],
  [
    "metadata.issuer",
    "RFC8414-3.3-1",
    "The issuer is the one whose metadata were asked for, byte for byte.",
    get,
    that("the same issuer", ({ body }, c) => body.issuer === c.server.issuer),
  ],
  [
    "metadata.issuer-form",
    "RFC8414-2-1",
    "The issuer is an https URL without query and fragment.",
    get,
    answers("such an issuer", ({ issuer }) => isHttps(issuer)),
  ],
  [
    "metadata.token-endpoint",
    "RFC8414-2-3",
    "token_endpoint is an https URL without fragment.",
    get,
    answers("such a token_endpoint", ({ token_endpoint: url }) => /^https:\/\/[^#]+$/.test(String(url))),
  ],
  [
    "metadata.response-types",
    "RFC8414-2-9",
    "response_types_supported is present.",
    get,
    answers("a list response_types_supported", (body) => Array.isArray(body.response_types_supported)),
  ],
  [
    "metadata.arrays",
    "RFC8414-3.2-2",
    "Members that may have several values are arrays.",
    get,
    answers("arrays for each …_supported list", (body) =>
      ["grant_types_supported", "token_endpoint_auth_methods_supported", "scopes_supported"].every(
        (name) => body[name] === undefined || Array.isArray(body[name]),
      ),
    ),
  ],
  [
    "metadata.no-empty-arrays",
    "RFC8414-3.2-3",
    "Members without values are left out.",
    get,
    answers("no empty array, but for response_types_supported", (body) =>
      Object.entries(body).every(
        ([name, value]) => name === "response_types_supported" || !Array.isArray(value) || value.length > 0,
      ),
    ),
  ],
  [
    "metadata.no-none",
    "RFC8414-2-15",
    "No list of signature algorithms for client authentication has none.",
    get,
    answers("no none", (body) =>
      Object.entries(body).every(
        ([name, value]) => !name.endsWith("_auth_signing_alg_values_supported") || !has(value, "none"),
      ),
    ),
  ],
  [
    "metadata.signing-algorithms",
    "RFC8414-2-13",
    "Where private_key_jwt is listed, so are its signature algorithms.",
    get,
    answers(
      "token_endpoint_auth_signing_alg_values_supported",
      (body) =>
        !has(body.token_endpoint_auth_methods_supported, "private_key_jwt") ||
        listOf(body.token_endpoint_auth_signing_alg_values_supported).length > 0,
    ),
  ],
  [
    "metadata.exchange",
    "RFC8414-2-11",
    "grant_types_supported has token exchange.",
    get,
    answers(EXCHANGE, (body) => has(body.grant_types_supported, EXCHANGE)),
    { needs: ["metadata", "delegation"] },
  ],
  [
    "metadata.errors",
    "RFC8414-3.2-4",
    "The metadata of an issuer that is not here are not answered with 200.",
    (c) => c.get(`${wellKnown(c, "oauth-authorization-server").replace(/\/$/, "")}/suite-no-such-issuer`),
    that("a status of 4xx", ({ status }) => status >= 400 && status < 500),
  ],
  [
    "metadata.openid",
    "RFC9068-4-4",
    "Where there are metadata at openid-configuration, issuer and jwks_uri are the same.",
    (c) => c.get(`${c.server.issuer}/.well-known/openid-configuration`),
    that(
      "404, or the same values",
      ({ status, body }, c) =>
        status !== 200 || ["issuer", "jwks_uri"].every((name) => body[name] === c.server.metadata[name]),
    ),
  ],
  [
    "metadata.keys",
    "RFC8414-2-4",
    "jwks_uri is https and leads to a set of keys.",
    keys,
    answers(
      "a list keys with an entry",
      (body, _, c) => isHttps(c.server.metadata.jwks_uri) && jwksOf(body).length > 0,
    ),
  ],
  [
    "metadata.keys-public",
    "RFC7517-9.2-1",
    "The published keys have no private members.",
    keys,
    answers("public members alone", (body) =>
      jwksOf(body).every((jwk) => PRIVATE.every((name) => !(name in jwk))),
    ),
    { basis: "metadata.keys" },
  ],
  [
    "metadata.keys-kid",
    "RFC7517-4.5-1",
    "Different keys of the set have different kid values.",
    keys,
    answers("a kid of its own for each", (body) => {
      const kids = jwksOf(body).map(({ kid }) => kid);
      return new Set(kids).size === kids.length;
    }),
    { basis: "metadata.keys" },
  ],
  [
    "metadata.keys-strength",
    "RFC7518-3.3-2",
    "RSA keys have 2048 bits or more.",
    keys,
    answers("256 octets in n at least", (body) =>
      jwksOf(body).every(({ kty, n }) => kty !== "RSA" || Buffer.from(String(n), "base64url").length >= 256),
    ),
    { basis: "metadata.keys" },
  ],
]);
