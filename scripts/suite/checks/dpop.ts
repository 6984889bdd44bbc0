/** RFC 9449: proofs of a key at the token endpoint, and tokens that are bound to it. */
import { ACCESS_TOKEN, type Context } from "../context.ts";
import type { Answer } from "../http.ts";
import { bareJwk, type Json, makeKey, randomId, seconds, thumbprint, withBadSignature } from "../keys.ts";
import type { Changes } from "../minted.ts";
import { area, type Row } from "../table.ts";
import { answers, given, issues, notGiven, nothing, refused, that } from "../verdicts.ts";

const WRONG = refused("invalid_dpop_proof", "invalid_request");
const ask = (c: Context, proof: string | readonly string[]): Promise<Answer> =>
  c.clientCredentials("machine", {}, { headers: { dpop: proof } });
const wrong = (id: string, clause: string, what: string, changes: (c: Context) => Changes): Row => [
  `dpop.${id}`,
  clause,
  `A proof ${what} is refused.`,
  (c) => ask(c, c.proof(changes(c))),
  WRONG,
];
async function replayed(c: Context): Promise<Answer> {
  const once = c.proof({ claims: { jti: randomId() } });
  await c.tokenOf(ask(c, once));
  return ask(c, once);
}
const jktOf = ({ cnf }: Json): unknown => (cnf as Json | undefined)?.jkt;
const expected = (c: Context): string => thumbprint(bareJwk(c.proofKey.privateKey));

export const dpop = area("DPoP", { needs: ["dpop"], basis: "dpop.good" }, [
  [
    "dpop.good",
    "RFC9449-6.1-1",
    "A proof binds the token to the thumbprint of its key.",
    (c) => ask(c, c.proof()),
    issues("cnf.jkt is the thumbprint", (claims, c) => jktOf(claims) === expected(c)),
    { basis: undefined },
  ],
  [
    "dpop.token-type",
    "RFC9449-5-4",
    "A bound token has the type DPoP.",
    (c) => ask(c, c.proof()),
    answers("token_type DPoP", (body) => /^dpop$/i.test(String(body.token_type))),
  ],
  [
    "dpop.metadata",
    "RFC9449-5.1-1",
    "The metadata name the algorithms, and none of them is symmetric.",
    (c) => c.get(`${c.server.issuer}/.well-known/oauth-authorization-server`),
    that("dpop_signing_alg_values_supported of ES, PS, RS and Ed", (_, c) => {
      const list = c.server.metadata.dpop_signing_alg_values_supported;
      return Array.isArray(list) && list.length > 0 && list.every((alg) => /^(ES|PS|RS|Ed)/.test(alg));
    }),
    { needs: ["dpop", "metadata"] },
  ],
  [
    "dpop.query",
    "RFC9449-4.3-9",
    "Query and fragment of htu are ignored.",
    (c) => ask(c, c.proof({ claims: { htu: `${c.server.tokenEndpoint}?a=b#c` } })),
    given,
  ],
  [
    "dpop.unknown-claims",
    "RFC9449-4.2-8",
    "Claims that are not known are ignored.",
    (c) => ask(c, c.proof({ claims: { suite: 1 } })),
    given,
  ],
  [
    "dpop.bad-signature",
    "RFC9449-4.3-6",
    "A proof with a bad signature is refused.",
    (c) => ask(c, withBadSignature(c.proof())),
    WRONG,
  ],
  ["dpop.garbage", "RFC9449-4.3-2", "What is no JWT is refused.", (c) => ask(c, "suite"), WRONG],
  ["dpop.two", "RFC9449-4.3-1", "Two DPoP fields are refused.", (c) => ask(c, [c.proof(), c.proof()]), WRONG],
  wrong("typ", "RFC9449-4.3-4", "of another type", () => ({ header: { typ: "JWT" } })),
  wrong("alg-none", "RFC9449-4.3-5", "with alg none", () => ({ header: { alg: "none" } })),
  wrong("htm", "RFC9449-4.3-8", "for another method", () => ({ claims: { htm: "GET" } })),
  wrong("htu", "RFC9449-4.3-9", "for another URL", () => ({
    claims: { htu: "https://other-server.example/token" },
  })),
  wrong("htu-path", "RFC9449-4.3-9", "for another path", (c) => ({
    claims: { htu: `${c.server.tokenEndpoint}/x` },
  })),
  wrong("no-jti", "RFC9449-4.3-3", "without jti", () => ({ claims: { jti: undefined } })),
  wrong("no-iat", "RFC9449-4.3-3", "without iat", () => ({ claims: { iat: undefined } })),
  wrong("old", "RFC9449-4.3-11", "of an hour ago", () => ({ claims: { iat: seconds() - 3600 } })),
  wrong("future", "RFC9449-4.3-11", "of an hour from now", () => ({ claims: { iat: seconds() + 3600 } })),
  wrong("no-key", "RFC9449-4.3-6", "without its key", () => ({ header: { jwk: undefined } })),
  wrong("private-key", "RFC9449-4.3-7", "with a private key", (c) => ({
    header: { jwk: c.proofKey.privateKey.export({ format: "jwk" }) as Json },
  })),
  wrong("other-key", "RFC9449-4.3-6", "with another key than that of its signature", () => ({
    header: { jwk: bareJwk(makeKey("x").privateKey) },
  })),
  wrong("crit", "RFC7515-4.1.11-1", "with a critical header member", () => ({
    header: { crit: ["suite"], suite: 1 },
  })),
  ["dpop.replay", "RFC9449-11.1-2", "A proof is good for one request.", (c) => replayed(c), notGiven],
  [
    "dpop.replay-code",
    "RFC9449-5-3",
    "A proof that was used is invalid_dpop_proof.",
    (c) => replayed(c),
    WRONG,
    { basis: "dpop.replay" },
  ],
  [
    "dpop.no-authentication",
    "RFC9449-4-2",
    "A proof does not authenticate a client.",
    (c) =>
      c.post(
        "token_endpoint",
        { grant_type: "client_credentials", client_id: c.roles.machine.id, resource: c.names.api },
        { headers: { dpop: c.proof() } },
      ),
    nothing,
  ],
  [
    "dpop.introspected",
    "RFC9449-6.2-1",
    "Introspection tells the key of a bound token.",
    async (c) => c.introspect("gate", await c.tokenOf(ask(c, c.proof()))),
    answers(
      "cnf.jkt and token_type DPoP",
      (body, _, c) =>
        jktOf(body) === expected(c) && (body.token_type === undefined || body.token_type === "DPoP"),
    ),
    { needs: ["dpop", "introspection"] },
  ],
  [
    "dpop.exchange",
    "RFC9449-5-1",
    "An exchange with a proof gives a bound token.",
    (c) => c.exchange("planner", {}, { headers: { dpop: c.proof() } }),
    issues("cnf.jkt is the thumbprint", (claims, c) => jktOf(claims) === expected(c)),
    { needs: ["dpop", "delegation"] },
  ],
  [
    "dpop.exchange-wrong",
    "RFC9449-5-2",
    "An exchange with a wrong proof gives no token.",
    (c) => c.exchange("planner", {}, { headers: { dpop: c.proof({ claims: { htm: "GET" } }) } }),
    WRONG,
    { needs: ["dpop", "delegation"], basis: "dpop.exchange" },
  ],
  [
    "dpop.subject-stolen",
    "RFC9449-6-2",
    "A bound subject token without a proof of its key is not exchanged for an unbound one.",
    async (c) => {
      const first = await c.tokenOf(c.exchange("planner", {}, { headers: { dpop: c.proof() } }));
      return c.onward("booking", first, c.names.crew, { subject_token_type: ACCESS_TOKEN });
    },
    notGiven,
    { needs: ["dpop", "delegation", "nesting"], basis: "dpop.exchange" },
  ],
]);
