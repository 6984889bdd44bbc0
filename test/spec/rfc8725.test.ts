import assert from "node:assert/strict";
import { test } from "node:test";
import { buildIdJagClaims, checkIdJag, ID_JAG_TYP } from "../../src/spec/id-jag.ts";
import { buildGrantClaims, GRANT_TYP } from "../../src/spec/identity-chaining.ts";
import { encodeBase64url, type Jws, type JwsHeader, parseJws } from "../../src/spec/rfc7515.ts";
import {
  checkClientAssertion,
  checkGrant,
  parseClientAssertion,
  parseGrant,
} from "../../src/spec/rfc7523.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import {
  ASSERTION_ALGORITHMS,
  checkAlgorithm,
  checkKind,
  checkType,
  JWT_TYPES,
  OWN_ALGORITHMS,
  SVID_ALGORITHMS,
} from "../../src/spec/rfc8725.ts";
import { AT_JWT, buildAccessTokenClaims } from "../../src/spec/rfc9068.ts";
import { checkJwtSvid, parseJwtSvid } from "../../src/spec/spiffe/jwt-svid.ts";

const header = (alg: string, typ?: string): JwsHeader => ({
  alg,
  ...(typ !== undefined && { typ }),
  members: {},
});

const { accessToken, clientAssertion, jwtSvid, grant, idJag, softwareStatement, dpopProof } = JWT_TYPES;

const types = [
  ["RFC9068-4-6 at+jwt is accepted", accessToken, "at+jwt", "ok"],
  ["RFC9068-4-6 application/at+jwt is accepted", accessToken, "application/at+jwt", "ok"],
  ["B8725-3.11-1 AT+JWT is accepted, because case does not matter", accessToken, "AT+JWT", "ok"],
  ["RFC9068-4-6 an access token without type is refused", accessToken, undefined, "jwt_type_refused"],
  ["RFC9068-4-6 JWT as an access token is refused", accessToken, "JWT", "jwt_type_refused"],
  [
    "B8725-3.11-1 the same subtype of another media type is refused",
    accessToken,
    "text/at+jwt",
    "jwt_type_refused",
  ],
  [
    "RFC8725-3.12-v1 a grant as an access token is refused",
    accessToken,
    "oauth-id-jag+jwt",
    "jwt_type_refused",
  ],
  [
    "RFC8417-4.2-1 a security event token as an access token is refused",
    accessToken,
    "secevent+jwt",
    "jwt_type_refused",
  ],
  ["B7523-4-9 a client assertion without type is accepted", clientAssertion, undefined, "ok"],
  ["B7523-4-9 JWT is accepted", clientAssertion, "JWT", "ok"],
  [
    "B7523-4-8, CHG-D-2 the type of client assertions is accepted",
    clientAssertion,
    "Client-Authentication+JWT",
    "ok",
  ],
  [
    "CHG-D-2 a type that another proposal has for them is refused",
    clientAssertion,
    "oauth-client-auth+jwt",
    "jwt_type_refused",
  ],
  ["RFC8725-3.12-v1 an access token as assertion is refused", clientAssertion, "at+jwt", "jwt_type_refused"],
  ["RFC8725-3.12-v1 a DPoP proof as assertion is refused", clientAssertion, "dpop+jwt", "jwt_type_refused"],
  [
    "RFC8725-3.12-v1 an ID-JAG as assertion is refused",
    clientAssertion,
    "oauth-id-jag+jwt",
    "jwt_type_refused",
  ],
  ["B8725-3.11-2 an empty type is refused", clientAssertion, "", "jwt_type_refused"],
  ["JSV-2.3-1 JOSE on a JWT-SVID is accepted", jwtSvid, "JOSE", "ok"],
  [
    "JSV-2.3-1 the type of client assertions on a JWT-SVID is refused",
    jwtSvid,
    "client-authentication+jwt",
    "jwt_type_refused",
  ],
  ["JSV-2.3-1 the type of WIT-SVIDs on a JWT-SVID is refused", jwtSvid, "wit+jwt", "jwt_type_refused"],
  ["RFC8725-3.11-v1 a typed grant is accepted", grant, "authz-grant+jwt", "ok"],
  ["RFC8725-3.12-v1 an ID-JAG as plain grant is refused", grant, "oauth-id-jag+jwt", "jwt_type_refused"],
  ["RFC8725-3.11-v1 an ID-JAG is accepted", idJag, "oauth-id-jag+jwt", "ok"],
  ["RFC8725-3.12-v1 an ID-JAG without type is refused", idJag, undefined, "jwt_type_refused"],
  ["RFC8725-3.12-v1 a plain grant as ID-JAG is refused", idJag, "authz-grant+jwt", "jwt_type_refused"],
  ["RFC7591-2.3-1 a software statement without type is accepted", softwareStatement, undefined, "ok"],
  ["RFC7591-2.3-1 JWT as a software statement is accepted", softwareStatement, "JWT", "ok"],
  [
    "RFC8725-3.12-v1 an access token as software statement is refused",
    softwareStatement,
    "at+jwt",
    "jwt_type_refused",
  ],
  [
    "RFC8725-3.12-v1 a grant as software statement is refused",
    softwareStatement,
    "authz-grant+jwt",
    "jwt_type_refused",
  ],
  ["RFC8725-3.11-v1 a DPoP proof is accepted", dpopProof, "dpop+jwt", "ok"],
  ["RFC8725-3.12-v1 an assertion as DPoP proof is refused", dpopProof, "JWT", "jwt_type_refused"],
] as const;

for (const [name, allowed, typ, want] of types) {
  test(name, () => {
    const got = checkType(header("ES256", typ), allowed);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

const algorithms = [
  ["RFC8725-3.1-v1 ES256 on an assertion is accepted", ASSERTION_ALGORITHMS, "ES256", "ok"],
  ["RFC7523-5-2 RS256 on an assertion is accepted", ASSERTION_ALGORITHMS, "RS256", "ok"],
  ["B8725-3.2-1 Ed25519 by its full name is accepted", ASSERTION_ALGORITHMS, "Ed25519", "ok"],
  ["RFC8725-3.1-v2 HMAC is refused", ASSERTION_ALGORITHMS, "HS256", "jwt_algorithm_refused"],
  [
    "RFC7518-3.6-v1, RFC8725-3.2-v5, B8725-3.2-2 none is refused",
    ASSERTION_ALGORITHMS,
    "none",
    "jwt_algorithm_refused",
  ],
  ["B8725-3.1-3 noNE is refused", ASSERTION_ALGORITHMS, "noNE", "jwt_algorithm_refused"],
  ["RFC7515-4.1.1-v2 es256 is refused", ASSERTION_ALGORITHMS, "es256", "jwt_algorithm_refused"],
  [
    "RFC8725-3.1-v2 an algorithm that is not on the list for assertions is refused",
    ASSERTION_ALGORITHMS,
    "RS512",
    "jwt_algorithm_refused",
  ],
  ["JSV-2.1-1 ES512 on a JWT-SVID is accepted", SVID_ALGORITHMS, "ES512", "ok"],
  ["JSV-2.1-1 EdDSA on a JWT-SVID is refused", SVID_ALGORITHMS, "EdDSA", "jwt_algorithm_refused"],
  ["RFC9068-2.1-4 RS256 on our own tokens is accepted", OWN_ALGORITHMS, "RS256", "ok"],
  ["RFC9068-2.1-3 none on our own tokens is refused", OWN_ALGORITHMS, "none", "jwt_algorithm_refused"],
] as const;

for (const [name, allowed, alg, want] of algorithms) {
  test(name, () => {
    const got = checkAlgorithm(header(alg), allowed);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

/** Members that tell a kind, with what each makes of a JWT where it is not lawful. */
const TELLING = {
  events: "untyped_event",
  nonce: "untyped_id_token",
  at_hash: "untyped_id_token",
  c_hash: "untyped_id_token",
  act: "jwt_of_actor",
  may_act: "jwt_of_actor",
} as const;
/** Every place where a JWT of others is taken; a new one answers here, or does not compile. */
const LAWFUL: Record<Parameters<typeof checkKind>[1], readonly (keyof typeof TELLING)[]> = {
  clientAssertion: [],
  jwtSvid: [],
  workload: [],
  softwareStatement: [],
  grant: ["act", "may_act"],
  subjectToken: ["act", "may_act"],
  typedAccessToken: ["act", "may_act", "nonce", "at_hash", "c_hash"],
  idToken: ["act", "may_act", "nonce", "at_hash", "c_hash"],
  consentToken: ["act", "may_act"],
  signIn: ["may_act", "nonce", "at_hash", "c_hash"],
  logoutToken: ["events"],
  securityEvent: ["events"],
  dpopProof: ["nonce"],
};
for (const [place, lawful] of Object.entries(LAWFUL)) {
  test(`CONF-D-7, RFC8725-3.12-v1 of the members that tell a kind, ${lawful.join(", ") || "none"} may stand in a JWT as ${place}`, () => {
    for (const [member, kind] of Object.entries(TELLING)) {
      for (const value of ["x", null, {}]) {
        const got = checkKind({ iss: "https://a.example", [member]: value }, place as keyof typeof LAWFUL);
        const isLawful = lawful.some((one) => one === member);
        assert.equal(got.ok ? "ok" : got.error.kind, isLawful ? "ok" : kind, member);
      }
    }
  });
}

test("JSV-2.1-1 a JWT-SVID may have exactly nine algorithms", () => {
  const families = ["RS", "ES", "PS"].flatMap((family) => ["256", "384", "512"].map((size) => family + size));
  assert.deepEqual(SVID_ALGORITHMS, families);
});

// --- kinds of JWT are mutually exclusive (3.12) -----------------------------------------------------------------

const now = 1_790_000_000;
const us = "https://as.example";
const idp = "https://idp.example";
const clientId = "c-booking";
const part = (value: JsonObject) => encodeBase64url(new TextEncoder().encode(JSON.stringify(value)));

function jws(typ: string | undefined, claims: JsonObject): Jws {
  const got = parseJws(`${part({ alg: "ES256", ...(typ !== undefined && { typ }) })}.${part(claims)}.AQID`);
  assert.ok(got.ok);
  return got.value;
}

/** Each use of a JWT and whether the token is accepted there, supposing that its signature is valid. */
const slots: Record<string, (token: Jws) => boolean> = {
  "an access token": ({ header }) => checkType(header, accessToken).ok,
  "a client assertion": (token) =>
    parseClientAssertion(token).ok &&
    checkClientAssertion(token, { issuer: us, audiences: [us], nowSeconds: now, skewSeconds: 30 }).ok,
  "a JWT-SVID": (token) =>
    parseJwtSvid(token).ok && checkJwtSvid(token, { audiences: [us], nowSeconds: now, skewSeconds: 30 }).ok,
  "a DPoP proof": ({ header }) => checkType(header, dpopProof).ok,
  "a plain grant": (token) => {
    const named = parseGrant(token, us);
    if (!named.ok || named.value.profile !== "jwt") return false;
    const rule = { audiences: [us], clientId, requireClientId: true, nowSeconds: now, skewSeconds: 30 };
    return checkGrant(token, rule).ok;
  },
  "an ID-JAG": (token) => {
    const named = parseGrant(token, us);
    if (!named.ok || named.value.profile !== "id-jag") return false;
    return checkIdJag(token, { issuer: us, clientId, nowSeconds: now, skewSeconds: 30 }).ok;
  },
};

const times = { iat: now, exp: now + 60 };
const issued = {
  issuer: us,
  subject: "u-77",
  scope: ["trips.read"],
  issuedAtSeconds: now,
  expiresAtSeconds: now + 60,
  jti: "j-1",
  chain: [],
};
const ofOurs = { ...issued, audience: us, clientId };
const toPartner = { ...issued, audience: "https://as.partner.example", clientIdThere: clientId, claims: {} };
const toUs = { ...toPartner, issuer: idp, audience: us };
const spiffeId = "spiffe://td.example/agents/booking";
const ofIssuer = { iss: idp, sub: "svc-booking", aud: us, jti: "j-1", ...times };
const idToken = { iss: idp, sub: "u-77", aud: clientId, nonce: "n", ...times };

/** Each token is as similar to the others as its document allows; the last element is the only use that accepts it. */
const kinds: [string, Jws, string | undefined][] = [
  ["our access token", jws(AT_JWT, buildAccessTokenClaims(ofOurs)), "an access token"],
  [
    "another issuer's access token",
    jws(AT_JWT, { ...buildAccessTokenClaims(ofOurs), iss: idp }),
    "an access token",
  ],
  [
    "a client's own assertion",
    jws(undefined, { ...ofIssuer, iss: clientId, sub: clientId, client_id: clientId }),
    "a client assertion",
  ],
  [
    "an assertion with the type of client assertions",
    jws("client-authentication+jwt", { ...ofIssuer, client_id: clientId }),
    "a client assertion",
  ],
  ["an assertion of a trusted issuer", jws("JWT", ofIssuer), "a client assertion"],
  ["a JWT-SVID", jws("JWT", { sub: spiffeId, aud: us, jti: "j-1", ...times }), "a JWT-SVID"],
  ["a JWT-SVID with an issuer", jws("JOSE", { iss: idp, sub: spiffeId, aud: us, ...times }), "a JWT-SVID"],
  ["a WIT-SVID", jws("wit+jwt", { iss: idp, sub: spiffeId, cnf: { jwk: {} }, ...times }), undefined],
  [
    "a DPoP proof",
    jws("dpop+jwt", { htm: "POST", htu: `${us}/token`, jti: "j-1", iat: now }),
    "a DPoP proof",
  ],
  ["an ID token", jws("JWT", idToken), undefined],
  ["an ID token without type", jws(undefined, { ...idToken, jti: "j-1" }), undefined],
  ["a logout token", jws("logout+jwt", { ...ofIssuer, events: {} }), undefined],
  ["a security event", jws("secevent+jwt", { ...ofIssuer, client_id: clientId, events: {} }), undefined],
  ...[undefined, "JWT"].flatMap((typ): [string, Jws, undefined][] =>
    [
      ["an ID token", { nonce: "n" }],
      ["an ID token without nonce", { at_hash: "h" }],
      ["a security event", { events: { e: {} } }],
    ].flatMap(([what, more]): [string, Jws, undefined][] => [
      [
        `${what} for us, typed ${typ},`,
        jws(typ, { ...ofIssuer, client_id: clientId, ...(more as object) }),
        undefined,
      ],
      [
        `${what} of a workload, typed ${typ},`,
        jws(typ, { ...ofIssuer, sub: spiffeId, ...(more as object) }),
        undefined,
      ],
    ]),
  ),
  ["the token of a delegation, typed JWT,", jws("JWT", { ...ofIssuer, act: { sub: "a" } }), undefined],
  ["a grant with the ID token's nonce", jws(GRANT_TYP, { ...buildGrantClaims(toUs), nonce: "n" }), undefined],
  ["a grant with actors", jws(GRANT_TYP, { ...buildGrantClaims(toUs), act: { sub: "a" } }), "a plain grant"],
  [
    "a JWT-SVID that acts for another",
    jws("JWT", { sub: spiffeId, aud: us, act: { sub: "a" }, ...times }),
    undefined,
  ],
  ["an introspection answer", jws("token-introspection+jwt", { iss: idp, aud: us, iat: now }), undefined],
  ["a transaction token", jws("txntoken+jwt", { ...ofIssuer, client_id: clientId }), undefined],
  ["a checkpoint of the audit trail", jws("audit-checkpoint+jwt", { ...ofIssuer, iss: us }), undefined],
  ["a software statement", jws("JWT", { iss: idp, software_id: "s", client_name: "n", iat: now }), undefined],
  ["our grant for a partner", jws(GRANT_TYP, buildGrantClaims(toPartner)), undefined],
  ["our ID-JAG for a partner", jws(ID_JAG_TYP, buildIdJagClaims({ ...toPartner, resources: [] })), undefined],
  ["our grant for this server", jws(GRANT_TYP, buildGrantClaims({ ...toPartner, audience: us })), undefined],
  [
    "our ID-JAG for this server",
    jws(ID_JAG_TYP, buildIdJagClaims({ ...toPartner, audience: us, resources: [] })),
    undefined,
  ],
  ["another issuer's grant", jws(GRANT_TYP, buildGrantClaims(toUs)), "a plain grant"],
  ["another issuer's ID-JAG", jws(ID_JAG_TYP, buildIdJagClaims({ ...toUs, resources: [] })), "an ID-JAG"],
];

for (const [kind, token, place] of kinds) {
  for (const [slot, accepts] of Object.entries(slots)) {
    test(`RFC8725-3.12-v1, RFC8725-2.8-v1 ${kind} as ${slot} is ${slot === place ? "accepted" : "refused"}`, () => {
      assert.equal(accepts(token), slot === place);
    });
  }
}

test("RFC8725-3.11-v3, RFC8725-3.11-v2 every typ that we issue names its kind and is read only as that kind", () => {
  const written = [AT_JWT, GRANT_TYP, ID_JAG_TYP];
  for (const typ of written) assert.match(typ, /^[a-z-]+\+jwt$/);
  const readers = written.map((typ) =>
    Object.entries(JWT_TYPES).flatMap(([kind, allowed]) =>
      checkType(header("ES256", typ), allowed).ok ? [kind] : [],
    ),
  );
  assert.deepEqual(readers, [["accessToken"], ["grant"], ["idJag"]]);
});
