import assert from "node:assert/strict";
import { test } from "node:test";
import { parseForm } from "../../src/spec/rfc6749.ts";
import type { Json } from "../../src/spec/rfc8259.ts";
import {
  ACCESS_TOKEN,
  buildAct,
  type Chain,
  fitsAct,
  ID_JAG,
  ID_TOKEN,
  JWT,
  mayActNames,
  parseAct,
  parseExchange,
} from "../../src/spec/rfc8693.ts";
import { prng } from "../support/prng.ts";

const issuer = "https://as.example";
const partner = "https://idp.example";

// --- request --------------------------------------------------------------------------------------------------------

const subject = { subject_token: "s", subject_token_type: ACCESS_TOKEN };
const delegation = { ...subject, actor_token: "a", actor_token_type: JWT };
const plain = { subjectToken: "s", subjectTokenType: ACCESS_TOKEN };

const requests: [string, Record<string, string>, object | string][] = [
  ["RFC8693-2.1-15, RFC8693-2.1-16 a subject token with its type is accepted", subject, plain],
  [
    "PROD-4.1-28 an access token as actor is accepted",
    { ...delegation, actor_token_type: ACCESS_TOKEN },
    { ...plain, actor: { token: "a", type: ACCESS_TOKEN } },
  ],
  [
    "RFC8693-2.1-17, PROD-4.1-22 an actor token is accepted",
    delegation,
    { ...plain, actor: { token: "a", type: JWT } },
  ],
  [
    "RFC8693-2.1-15, PROD-4.1-30 a missing subject token is refused",
    { subject_token_type: JWT },
    "subject_token_missing",
  ],
  [
    "RFC8693-2.1-15 an empty subject token is refused",
    { ...subject, subject_token: "" },
    "subject_token_missing",
  ],
  [
    "RFC8693-2.1-15, PROD-1.3-2 an actor token instead of a subject token is refused",
    { actor_token: "a", actor_token_type: JWT },
    "subject_token_missing",
  ],
  [
    "RFC8693-2.1-16, PROD-4.1-30 a missing subject token type is refused",
    { subject_token: "s" },
    "subject_token_type_missing",
  ],
  [
    "RFC8693-2.1-16 an empty subject token type is refused",
    { ...subject, subject_token_type: "" },
    "subject_token_type_missing",
  ],
  ["PROD-4.1-21 an access token as subject is accepted", subject, plain],
  [
    "PROD-4.1-27 a JWT as subject is accepted",
    { ...subject, subject_token_type: JWT },
    { ...plain, subjectTokenType: JWT },
  ],
  [
    "PROD-4.1-27 an ID token as subject is accepted",
    { ...subject, subject_token_type: ID_TOKEN },
    { ...plain, subjectTokenType: ID_TOKEN },
  ],
  [
    "PROD-4.1-27 a refresh token as subject is refused",
    { ...subject, subject_token_type: "urn:ietf:params:oauth:token-type:refresh_token" },
    "subject_token_type_unsupported",
  ],
  [
    "RFC8693-3-1 a short name as subject token type is refused",
    { ...subject, subject_token_type: "access_token" },
    "subject_token_type_unsupported",
  ],
  [
    "RFC8693-3-1 a subject token type in capitals is refused",
    { ...subject, subject_token_type: JWT.toUpperCase() },
    "subject_token_type_unsupported",
  ],
  [
    "RFC8693-3-1 a subject token type with a trailing blank is refused",
    { ...subject, subject_token_type: `${JWT} ` },
    "subject_token_type_unsupported",
  ],
  [
    "RFC8693-2.1-18 an actor token with its type is accepted",
    delegation,
    { ...plain, actor: { token: "a", type: JWT } },
  ],
  [
    "RFC8693-2.1-18 an actor token without its type is refused",
    { ...subject, actor_token: "a" },
    "actor_token_type_missing",
  ],
  [
    "RFC8693-2.1-19 an actor token type without an actor token is refused",
    { ...subject, actor_token_type: JWT },
    "actor_token_type_alone",
  ],
  [
    "RFC8693-2.1-19 an unknown actor token type without an actor token is refused",
    { ...subject, actor_token_type: "x" },
    "actor_token_type_alone",
  ],
  [
    "PROD-3-11 a type whose actor token is empty is refused",
    { ...delegation, actor_token: "" },
    "actor_token_type_alone",
  ],
  [
    "PROD-3-11 an actor token whose type is empty is refused",
    { ...delegation, actor_token_type: "" },
    "actor_token_type_missing",
  ],
  [
    "RFC6749-3.2-5, PROD-3-11 two empty actor parameters count as omitted: an impersonation is read",
    { ...subject, actor_token: "", actor_token_type: "" },
    plain,
  ],
  [
    "PROD-4.1-28 an ID token as actor is refused",
    { ...delegation, actor_token_type: ID_TOKEN },
    "actor_token_type_unsupported",
  ],
  [
    "RFC8693-2.1-14 an empty requested_token_type is treated as absent",
    { ...subject, requested_token_type: "" },
    plain,
  ],
  [
    "RFC8693-3-1 a request for an access token is accepted",
    { ...subject, requested_token_type: ACCESS_TOKEN },
    { ...plain, requestedType: "access_token" },
  ],
  [
    "RFC8693-3-1 a request for a JWT is accepted",
    { ...subject, requested_token_type: JWT },
    { ...plain, requestedType: "jwt" },
  ],
  [
    "RFC8693-3-2 a request for an ID-JAG is accepted",
    { ...delegation, requested_token_type: ID_JAG, audience: partner },
    { ...plain, actor: { token: "a", type: JWT }, requestedType: "id-jag" },
  ],
  [
    "IDJAG-4.3-1 a request for an ID-JAG without audience is refused",
    { ...subject, requested_token_type: ID_JAG },
    "id_jag_audience_missing",
  ],
  [
    "IDJAG-4.3-1 a resource is not accepted instead of the audience",
    { ...subject, requested_token_type: ID_JAG, resource: partner },
    "id_jag_audience_missing",
  ],
  [
    "IDJAG-4.3-1 an empty audience is treated as absent",
    { ...subject, requested_token_type: ID_JAG, audience: "" },
    "id_jag_audience_missing",
  ],
  ...[ID_TOKEN, "jwt", "id-jag", JWT.toUpperCase(), `${ID_JAG} `, `${JWT}#`].map(
    (type): [string, Record<string, string>, string] => [
      `RFC8693-3-1 a request for ${JSON.stringify(type)} is refused`,
      { ...subject, requested_token_type: type, audience: partner },
      "requested_token_type_unsupported",
    ],
  ),
  ...["refresh_token", "saml1", "saml2", "txn_tokens"].map(
    (type): [string, Record<string, string>, string] => [
      `RFC8693-3-1 a request for a ${type} is refused`,
      { ...subject, requested_token_type: `urn:ietf:params:oauth:token-type:${type}` },
      "requested_token_type_unsupported",
    ],
  ),
];

for (const [name, sent, want] of requests) {
  test(name, () => {
    const form = parseForm(new URLSearchParams(sent).toString());
    assert.ok(form.ok);
    const got = parseExchange(form.value);
    assert.deepEqual(got.ok ? got.value : got.error.kind, want);
  });
}

test("RFC6749-3.2-5, PROD-3-11 an actor token that is also sent empty counts once: a delegation is read", () => {
  const form = parseForm(`actor_token=&${new URLSearchParams(delegation)}`);
  assert.ok(form.ok);
  const got = parseExchange(form.value);
  assert.deepEqual(got.ok && got.value.actor, { token: "a", type: JWT });
});

test("IDJAG-4.3-1 a request for an ID-JAG with two audiences is refused", () => {
  const form = parseForm(
    `${new URLSearchParams({ ...subject, requested_token_type: ID_JAG })}&audience=a&audience=b`,
  );
  assert.ok(form.ok);
  assert.deepEqual(parseExchange(form.value), { ok: false, error: { kind: "id_jag_audience_several" } });
});

test("RFC8693-3-1 the token types are these URNs", () => {
  const names = [ACCESS_TOKEN, JWT, ID_TOKEN, ID_JAG].map((type) =>
    type.replace("urn:ietf:params:oauth:token-type:", ""),
  );
  assert.deepEqual(names, ["access_token", "jwt", "id_token", "id-jag"]);
});

// --- act ------------------------------------------------------------------------------------------------------------

const deep = (hops: number): Json => {
  let act: Json = { sub: "a1" };
  for (let hop = 2; hop <= hops; hop++) act = { sub: `a${hop}`, act };
  return act;
};
const hop = (sub: string, iss = issuer) => ({ sub, iss });
const claimed = (sub: string, iss: string) => ({ sub, iss, claimed: true }) as const;

const acts: [string, Json | undefined, object | string][] = [
  ["RFC8693-4.1-1 a missing act is read as an empty chain", undefined, []],
  ["RFC8693-4.1-1 an actor is read", { sub: "a" }, [hop("a")]],
  [
    "RFC8693-4.1-5, PROD-2.5r2-3 three hops are read, the current actor first",
    { sub: "c", act: { sub: "b", act: { sub: "a" } } },
    [hop("c"), hop("b"), hop("a")],
  ],
  ["RFC8693-4.1-2 the issuer of a hop is kept", { sub: "a", iss: partner }, [claimed("a", partner)]],
  [
    "RFC8693-4.1-2 a hop with our own issuer is taken for claimed, as our tokens show ours without",
    { sub: "a", iss: issuer },
    [claimed("a", issuer)],
  ],
  [
    "RFC8693-4.1-2 the issuer of a hop is not applied to the hop inside it",
    { sub: "b", iss: partner, act: { sub: "a" } },
    [claimed("b", partner), hop("a")],
  ],
  [
    "RFC8693-4.1-3, RFC8693-4.1-4 only sub and iss of a hop are read",
    { sub: "a", exp: 1, nbf: 9e12, aud: "x", name: "y", client_id: "z" },
    [hop("a")],
  ],
  ["RFC8693-4.1-1 a string is refused", "a", "act_malformed"],
  ["RFC8693-4.1-1 null is refused", null, "act_malformed"],
  ["RFC8693-4.1-1 an array is refused", [{ sub: "a" }], "act_malformed"],
  ["RFC8693-4.1-1 true is refused", true, "act_malformed"],
  ["RFC8693-4.1-1 an actor without sub is refused", {}, "act_malformed"],
  ["RFC8693-4.1-1 an empty sub is refused", { sub: "" }, "act_malformed"],
  ["RFC8693-4.1-1 a number as sub is refused", { sub: 1 }, "act_malformed"],
  ["RFC8693-4.1-1 an array as sub is refused", { sub: ["a"] }, "act_malformed"],
  ["RFC8693-4.1-2 an empty issuer is refused", { sub: "a", iss: "" }, "act_malformed"],
  ["RFC8693-4.1-2 null as issuer is refused", { sub: "a", iss: null }, "act_malformed"],
  ["RFC8693-4.1-5 null beneath an actor is refused", { sub: "a", act: null }, "act_malformed"],
  [
    "RFC8693-4.1-5 a malformed innermost hop is refused",
    { sub: "c", act: { sub: "b", act: { iss: issuer } } },
    "act_malformed",
  ],
  [
    "PROD-4.1v6-6 eight hops are accepted",
    deep(8),
    [8, 7, 6, 5, 4, 3, 2, 1].map((number) => hop(`a${number}`)),
  ],
  ["PROD-4.1v6-6 nine hops are refused", deep(9), "act_too_deep"],
  ["PROD-4.1v6-6 more than 8 KiB is refused", { sub: "a".repeat(8192) }, "act_too_large"],
  ["PROD-4.1v6-6 act is measured in bytes", { sub: "€".repeat(2800) }, "act_too_large"],
  ["PROD-4.1v6-6 less than 8 KiB is accepted", { sub: "€".repeat(2700) }, [hop("€".repeat(2700))]],
];

for (const [name, act, want] of acts) {
  test(name, () => {
    const got = parseAct(act, issuer, issuer);
    assert.deepEqual(got.ok ? got.value : got.error.kind, want);
  });
}

test("RFC8693-4.1-2 every hop in a token of another issuer is claimed, and one without iss has the issuer of the token", () => {
  const act = { sub: "c", act: { sub: "b", iss: issuer, act: { sub: "a", iss: partner } } };
  const got = parseAct(act, partner, issuer);
  assert.deepEqual(got.ok && got.value, [claimed("c", partner), claimed("b", issuer), claimed("a", partner)]);
});

test("PROD-4.1v6-6 the size limit applies to the chain with its new hop", () => {
  const long = (count: number) =>
    Array.from({ length: count }, (_, index) => hop(`${index}${"a".repeat(1900)}`));
  assert.equal(fitsAct(long(4)), true);
  assert.equal(fitsAct(long(5)), false);
});

const chains: [string, Chain, Json | undefined][] = [
  ["RFC8693-4.1-1 act for an empty chain is omitted", [], undefined],
  ["RFC8693-4.1-1 an actor of this issuer is written without iss", [hop("a")], { sub: "a" }],
  [
    "RFC8693-4.1-2 iss is written for an actor of another issuer",
    [hop("a", partner)],
    { sub: "a", iss: partner },
  ],
  [
    "RFC8693-4.1-5 three hops are written, the current actor outermost",
    [hop("c"), hop("b"), hop("a")],
    { sub: "c", act: { sub: "b", act: { sub: "a" } } },
  ],
  [
    "RFC8693-4.1-2 iss is written for a foreign hop inside one of ours",
    [hop("b"), hop("a", partner)],
    { sub: "b", act: { sub: "a", iss: partner } },
  ],
  [
    "RFC8693-4.1-2 our own iss is written for a hop that is only claimed",
    [hop("b"), claimed("a", issuer)],
    { sub: "b", act: { sub: "a", iss: issuer } },
  ],
];

for (const [name, chain, want] of chains) {
  test(name, () => assert.deepEqual(buildAct(chain, issuer), want));
}

test("RFC8693-4.1-5 seeded random chains keep every hop when written and read by any issuer", () => {
  const random = prng(8693);
  for (let round = 0; round < 300; round++) {
    const chain = Array.from({ length: random.below(9) }, () =>
      hop(random.pick(["a", "b", "spiffe://td.example/a"]), random.pick([issuer, partner])),
    );
    const by = random.pick([issuer, partner, "https://third.example"]);
    const act = buildAct(chain, by);
    if (act === undefined) assert.deepEqual(chain, []);
    else {
      const read = chain.map((one) => (one.iss === by ? one : claimed(one.sub, one.iss)));
      assert.deepEqual(parseAct(act, by, by), { ok: true, value: read });
    }
  }
});

// --- may_act --------------------------------------------------------------------------------------------------------

const planner = { sub: "spiffe://td.example/agents/planner", iss: issuer };
const platform = { sub: "platform://acme/agent%2F1", iss: issuer };
const local = { sub: "c-report", iss: issuer };

const mayActs: [string, Json, { sub: string; iss: string }, string, boolean][] = [
  ["RFC8693-4.4-1 a workload matches", { sub: planner.sub }, planner, issuer, true],
  ["RFC8693-4.4-1 a workload matches in a foreign token", { sub: planner.sub }, planner, partner, true],
  [
    "RFC8693-4.4-1 a workload matches with its issuer",
    { sub: planner.sub, iss: issuer },
    planner,
    partner,
    true,
  ],
  ["RFC8693-4.4-1 a client matches in a token of this issuer", { sub: "c-report" }, local, issuer, true],
  ["RFC8693-4.4-1 a client matches with its issuer", { sub: "c-report", iss: issuer }, local, partner, true],
  [
    "RFC8693-4.4-1 a client by name in a foreign token does not match",
    { sub: "c-report" },
    local,
    partner,
    false,
  ],
  [
    "RFC8693-4.4-1 a name with a colon is not treated as globally unique",
    { sub: "svc:report" },
    { sub: "svc:report", iss: issuer },
    partner,
    false,
  ],
  [
    "RFC8693-4.4-1 another workload does not match",
    { sub: "spiffe://td.example/agents/booking" },
    planner,
    issuer,
    false,
  ],
  [
    "RFC8693-4.4-1 the same name of another issuer does not match",
    { sub: planner.sub, iss: partner },
    planner,
    partner,
    false,
  ],
  [
    "WAG-4-2, RFC8693-4.4-1 the name of a platform's workload in a token of ours matches",
    { sub: platform.sub },
    platform,
    issuer,
    true,
  ],
  [
    "WAG-4-2, RFC8693-4.4-1 the same name in a token of another issuer does not match, since it has registrations of its own",
    { sub: platform.sub },
    platform,
    partner,
    false,
  ],
  ["RFC8693-4.4-1 a difference in case does not match", { sub: "C-Report" }, local, issuer, false],
  ["RFC8693-4.4-1 a may_act without sub does not match", { iss: issuer }, planner, issuer, false],
  ["RFC8693-4.4-1 a string does not match", planner.sub, planner, issuer, false],
  ["RFC8693-4.4-1 an array does not match", [{ sub: planner.sub }], planner, issuer, false],
  ["RFC8693-4.4-1 null does not match", null, planner, issuer, false],
  ["RFC8693-4.4-1 an array as sub does not match", { sub: [planner.sub] }, planner, issuer, false],
  ["RFC8693-4.4-1 null as issuer does not match", { sub: planner.sub, iss: null }, planner, issuer, false],
  [
    "RFC8693-4.4-3 times and audience are ignored",
    { sub: planner.sub, exp: 1, nbf: 9e12, aud: "x" },
    planner,
    issuer,
    true,
  ],
];

for (const [name, mayAct, party, tokenIssuer, want] of mayActs) {
  test(name, () => assert.equal(mayActNames(mayAct, party, tokenIssuer), want));
}
