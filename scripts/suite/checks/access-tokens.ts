/** RFC 9068: what an access token that is a JWT says. */

import type { Context } from "../context.ts";
import type { Answer } from "../http.ts";
import { headerOf, isSignedBy, type Json, seconds } from "../keys.ts";
import { area } from "../table.ts";
import { issues, that } from "../verdicts.ts";

const ask = (c: Context): Promise<Answer> => c.clientCredentials("machine");
const keysOf = async (c: Context): Promise<readonly Json[]> => {
  const { body } = await c.get(c.endpoint("jwks_uri"));
  return Array.isArray(body.keys) ? body.keys : [];
};

export const accessTokens = area(
  "access tokens",
  { needs: ["jwt_access_tokens"], basis: "token.credentials" },
  [
    [
      "jwt.signed",
      "RFC9068-2.1-1",
      "The token is signed by a key of jwks_uri.",
      ask,
      that("a signature that a published key verifies", async ({ body }, c) =>
        isSignedBy(String(body.access_token), await keysOf(c)),
      ),
      { needs: ["jwt_access_tokens", "metadata"] },
    ],
    [
      "jwt.asymmetric",
      "RFC9068-2.1-2",
      "The signature is asymmetric, and not none.",
      ask,
      that("an alg of ES, PS, RS or Ed", ({ body }) =>
        /^(ES|PS|RS|Ed)/.test(String(headerOf(body.access_token).alg)),
      ),
    ],
    [
      "jwt.type",
      "RFC9068-2.1-6",
      "The header has typ at+jwt.",
      ask,
      that('"typ": "at+jwt"', ({ body }) =>
        ["at+jwt", "application/at+jwt"].includes(String(headerOf(body.access_token).typ).toLowerCase()),
      ),
    ],
    [
      "jwt.iss",
      "RFC9068-2.2-1",
      "iss is the issuer.",
      ask,
      issues("iss is the issuer", ({ iss }, c) => iss === c.server.issuer),
    ],
    [
      "jwt.exp",
      "RFC9068-2.2-2",
      "exp is a number in the future, and expires_in says the same.",
      ask,
      issues(
        "exp fits expires_in to 5 s",
        ({ exp }, _, { body }) =>
          typeof exp === "number" &&
          Math.abs(exp - seconds() - Number(body.expires_in ?? exp - seconds())) <= 5,
      ),
    ],
    [
      "jwt.aud",
      "RFC9068-2.2-3",
      "aud is there.",
      ask,
      issues("aud is there", ({ aud }) => [aud].flat().every((one) => typeof one === "string")),
    ],
    [
      "jwt.sub",
      "RFC9068-2.2-6",
      "Without a resource owner, sub is what the server calls the client.",
      ask,
      issues("sub is client_id", ({ sub, client_id: id }) => typeof sub === "string" && sub === id),
    ],
    [
      "jwt.client",
      "RFC9068-2.2-7",
      "client_id is that of the client.",
      ask,
      issues("client_id is that of the client", ({ client_id: id }, c) => id === c.roles.machine.id),
    ],
    [
      "jwt.iat",
      "RFC9068-2.2-8",
      "iat is the time of issuance.",
      ask,
      issues("iat is now, to 60 s", ({ iat }) => typeof iat === "number" && Math.abs(iat - seconds()) <= 60),
    ],
    [
      "jwt.jti",
      "RFC9068-2.2-9",
      "jti is there, and of each token another one.",
      ask,
      that("two tokens with different jti", async ({ body }, c) => {
        const first = await c.read(body.access_token);
        const second = await c.read((await ask(c)).body.access_token);
        return typeof first.jti === "string" && typeof second.jti === "string" && first.jti !== second.jti;
      }),
    ],
    [
      "jwt.scope",
      "RFC9068-2.2.3-1",
      "scope is the granted one, as one string.",
      ask,
      issues("scope is the requested one", ({ scope }, c) => scope === c.names.read),
    ],
  ],
);
