import assert from "node:assert/strict";
import { test } from "node:test";
import { buildChallenge, type Challenge, parseBearer } from "../../src/spec/rfc6750.ts";
import { mutate, prng } from "../support/prng.ts";

const none = new Set<string>();
const TOKEN = "abcXYZ019-._~+/==";

const taken: [string, string, string][] = [
  ["RFC6750-2.1-1, RFC6750-2.1-3 a token of every character is accepted", `Bearer ${TOKEN}`, TOKEN],
  ["RFC6750-2.1-3 more than one space is accepted", `Bearer   ${TOKEN}`, TOKEN],
  ["RFC6750-2.1-1 the scheme in any case is accepted", `bEARER ${TOKEN}`, TOKEN],
  ["RFC6750-1.1-1 the case of the token is kept", "Bearer aA", "aA"],
];
for (const [name, header, token] of taken) {
  test(name, () => assert.deepEqual(parseBearer(header, none), { ok: true, value: token }));
}

const refused: [string, string | undefined, ReadonlySet<string>, string][] = [
  ["RFC6750-3.1-5 a missing header is treated as no attempt", undefined, none, "credentials_missing"],
  ["RFC6750-3.1-5 another scheme is treated as no attempt", "Basic YTpi", none, "scheme_unsupported"],
  [
    "RFC6750-3.1-5 a scheme that begins with Bearer is treated as another scheme",
    "Bearers abc",
    none,
    "scheme_unsupported",
  ],
  ["RFC6750-2.1-3 the scheme alone is refused", "Bearer", none, "credentials_malformed"],
  ["RFC6750-2.1-3 a scheme with spaces is refused", "Bearer  ", none, "credentials_malformed"],
  ["RFC6750-2.1-3 a space inside the token is refused", "Bearer a b", none, "credentials_malformed"],
  ["RFC6750-2.1-3 a trailing space is refused", "Bearer a ", none, "credentials_malformed"],
  ["RFC6750-2.1-3 a tab instead of a space is refused", "Bearer\ta", none, "scheme_unsupported"],
  ["RFC6750-2.1-3 padding inside the token is refused", "Bearer a=b", none, "credentials_malformed"],
  ["RFC6750-2.1-3 padding alone is refused", "Bearer =", none, "credentials_malformed"],
  ["RFC6750-2.1-3 a quoted token is refused", 'Bearer "a"', none, "credentials_malformed"],
  ["RFC6750-2.1-3 two tokens are refused", "Bearer a, Bearer b", none, "credentials_malformed"],
  ["RFC6750-2.1-3 a non-ASCII letter is refused", "Bearer ä", none, "credentials_malformed"],
  [
    "RFC6750-2-1 a token in both header and query is refused",
    "Bearer a",
    new Set(["access_token"]),
    "credentials_malformed",
  ],
  [
    "RFC6750-2.3-2 a token in the query is refused",
    undefined,
    new Set(["access_token"]),
    "credentials_malformed",
  ],
];
for (const [name, header, query, kind] of refused) {
  test(name, () => {
    const got = parseBearer(header, query);
    assert.equal(got.ok ? "ok" : got.error.kind, kind);
  });
}

test("RFC6750-1.1-1 a query parameter whose name differs in case is ignored", () => {
  assert.equal(parseBearer("Bearer a", new Set(["Access_Token", "limit"])).ok, true);
});

test("RFC6750-2.1-3 a random header is accepted only if it matches the grammar", () => {
  const random = prng(6750);
  for (let round = 0; round < 2000; round++) {
    const header = mutate(random, `Bearer ${TOKEN}`, ["", " ", "=", "\t", '"', "ä", "\0", ",", "a"]);
    const got = parseBearer(header, none);
    if (got.ok) assert.match(header, /^bearer +[\w.~+/-]+=*$/i);
    else assert.doesNotMatch(header, /^bearer +[\w.~+/-]+=*$/i);
  }
});

const challenges: [string, Challenge, string][] = [
  [
    "RFC6750-3-3 a challenge without error has one attribute",
    { realm: "as.example" },
    'Bearer realm="as.example"',
  ],
  [
    "RFC6750-3-5, RFC6750-3-6, RFC6750-3-7, RFC6750-3.1-4 a challenge has error, description and scope",
    { realm: "as.example", error: "insufficient_scope", description: "too little", scope: "audit:read" },
    'Bearer realm="as.example", error="insufficient_scope", error_description="too little", scope="audit:read"',
  ],
];
for (const [name, challenge, text] of challenges) {
  test(name, () => assert.equal(buildChallenge(challenge), text));
}

test("RFC6750-3-4 a challenge has each attribute once", () => {
  const text = buildChallenge({ realm: "r", error: "invalid_token", description: "d", scope: "s" });
  const names = [...text.matchAll(/(\w+)="/g)].map((match) => match[1]);
  assert.equal(new Set(names).size, 4);
  assert.equal(names.length, 4);
});

for (const bad of ['a"b', "a\\b", "a\nb", "ä", "", "\x7f"]) {
  test(`RFC6750-3-8, RFC6750-3-9 ${JSON.stringify(bad)} in a challenge is refused`, () => {
    assert.throws(() => buildChallenge({ realm: "r", description: bad }), TypeError);
    assert.throws(() => buildChallenge({ realm: "r", scope: bad }), TypeError);
    assert.throws(() => buildChallenge({ realm: bad }), TypeError);
  });
}
