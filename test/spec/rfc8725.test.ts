import assert from "node:assert/strict";
import { test } from "node:test";
import type { JwsHeader } from "../../src/spec/rfc7515.ts";
import {
  ASSERTION_ALGORITHMS,
  checkAlgorithm,
  checkType,
  JWT_TYPES,
  OWN_ALGORITHMS,
  SVID_ALGORITHMS,
} from "../../src/spec/rfc8725.ts";

const header = (alg: string, typ?: string): JwsHeader => ({
  alg,
  ...(typ !== undefined && { typ }),
  members: {},
});

const { accessToken, clientAssertion, jwtSvid, grant, idJag, dpopProof } = JWT_TYPES;

const types = [
  ["RFC9068-4-6 accepts at+jwt", accessToken, "at+jwt", "ok"],
  ["RFC9068-4-6 accepts application/at+jwt", accessToken, "application/at+jwt", "ok"],
  ["B8725-3.11-1 accepts AT+JWT, for case does not count", accessToken, "AT+JWT", "ok"],
  ["RFC9068-4-6 refuses an access token without type", accessToken, undefined, "jwt_type_refused"],
  ["RFC9068-4-6 refuses JWT as an access token", accessToken, "JWT", "jwt_type_refused"],
  ["B8725-3.11-1 refuses another tree with the same name", accessToken, "text/at+jwt", "jwt_type_refused"],
  ["RFC8725-3.12-v1 refuses a grant as an access token", accessToken, "oauth-id-jag+jwt", "jwt_type_refused"],
  ["B7523-4-9 accepts a client assertion without type", clientAssertion, undefined, "ok"],
  ["B7523-4-9 accepts JWT", clientAssertion, "JWT", "ok"],
  ["B7523-4-8 accepts the type of client assertions", clientAssertion, "Client-Authentication+JWT", "ok"],
  ["RFC8725-3.12-v1 refuses an access token as assertion", clientAssertion, "at+jwt", "jwt_type_refused"],
  ["RFC8725-3.12-v1 refuses a DPoP proof as assertion", clientAssertion, "dpop+jwt", "jwt_type_refused"],
  ["RFC8725-3.12-v1 refuses an ID-JAG as assertion", clientAssertion, "oauth-id-jag+jwt", "jwt_type_refused"],
  ["B8725-3.11-2 refuses an empty type", clientAssertion, "", "jwt_type_refused"],
  ["JSV-2.3-1 accepts JOSE on a JWT-SVID", jwtSvid, "JOSE", "ok"],
  [
    "JSV-2.3-1 refuses the type of client assertions there",
    jwtSvid,
    "client-authentication+jwt",
    "jwt_type_refused",
  ],
  ["JSV-2.3-1 refuses a WIT-SVID there", jwtSvid, "wit+jwt", "jwt_type_refused"],
  ["RFC8725-3.11-v1 accepts a typed grant", grant, "authz-grant+jwt", "ok"],
  ["RFC8725-3.12-v1 refuses an ID-JAG as plain grant", grant, "oauth-id-jag+jwt", "jwt_type_refused"],
  ["RFC8725-3.11-v1 accepts an ID-JAG", idJag, "oauth-id-jag+jwt", "ok"],
  ["RFC8725-3.12-v1 refuses an ID-JAG without type", idJag, undefined, "jwt_type_refused"],
  ["RFC8725-3.11-v1 accepts a DPoP proof", dpopProof, "dpop+jwt", "ok"],
  ["RFC8725-3.12-v1 refuses an assertion as DPoP proof", dpopProof, "JWT", "jwt_type_refused"],
] as const;

for (const [name, allowed, typ, want] of types) {
  test(name, () => {
    const got = checkType(header("ES256", typ), allowed);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

const algorithms = [
  ["RFC8725-3.1-v1 accepts ES256 on an assertion", ASSERTION_ALGORITHMS, "ES256", "ok"],
  ["RFC7523-5-2 accepts RS256 on an assertion", ASSERTION_ALGORITHMS, "RS256", "ok"],
  ["B8725-3.2-1 accepts Ed25519 by its full name", ASSERTION_ALGORITHMS, "Ed25519", "ok"],
  ["RFC8725-3.1-v2 refuses HMAC", ASSERTION_ALGORITHMS, "HS256", "jwt_algorithm_refused"],
  ["RFC7518-3.6-v1 refuses none", ASSERTION_ALGORITHMS, "none", "jwt_algorithm_refused"],
  ["B8725-3.1-3 refuses noNE", ASSERTION_ALGORITHMS, "noNE", "jwt_algorithm_refused"],
  ["RFC7515-4.1.1-v2 refuses es256", ASSERTION_ALGORITHMS, "es256", "jwt_algorithm_refused"],
  [
    "RFC8725-3.1-v2 refuses an algorithm of another slot",
    ASSERTION_ALGORITHMS,
    "RS512",
    "jwt_algorithm_refused",
  ],
  ["JSV-2.1-1 accepts ES512 on a JWT-SVID", SVID_ALGORITHMS, "ES512", "ok"],
  ["JSV-2.1-1 refuses EdDSA on a JWT-SVID", SVID_ALGORITHMS, "EdDSA", "jwt_algorithm_refused"],
  ["RFC9068-2.1-4 accepts RS256 on our own tokens", OWN_ALGORITHMS, "RS256", "ok"],
  ["RFC9068-2.1-3 refuses none on our own tokens", OWN_ALGORITHMS, "none", "jwt_algorithm_refused"],
] as const;

for (const [name, allowed, alg, want] of algorithms) {
  test(name, () => {
    const got = checkAlgorithm(header(alg), allowed);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

test("JSV-2.1-1 knows exactly nine algorithms", () => {
  const families = ["RS", "ES", "PS"].flatMap((family) => ["256", "384", "512"].map((size) => family + size));
  assert.deepEqual(SVID_ALGORITHMS, families);
});
