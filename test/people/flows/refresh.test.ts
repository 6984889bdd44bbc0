/** Refresh tokens: what a use of one gives, and what ends them. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { recordEnding } from "../../../src/flows/endings.ts";
import { introspect } from "../../../src/flows/introspect.ts";
import { revoke } from "../../../src/flows/revoke.ts";
import { standing } from "../../../src/flows/standing.ts";
import { CODE_SECONDS, FAMILIES_MAX, REFRESH_ROTATIONS_MAX } from "../../../src/limits/people.ts";
import { successors } from "../../../src/people/adapters/sealed.ts";
import type { EndingSelector } from "../../../src/policy/endings.ts";
import { StoreUnavailable } from "../../../src/ports.ts";
import { err } from "../../../src/result.ts";
import { makeProver } from "../../support/dpop.ts";
import { formOf } from "../../support/flow.ts";
import { migratedFile } from "../../support/migrated.ts";
import { NOTES, PRIVATE, PUBLIC, SCOPES } from "../../support/people.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../../support/postgres.ts";
import { assertRandom, DRAWS } from "../../support/random.ts";
import {
  ALICE,
  claimsIn,
  errorOf,
  forRefresh,
  OTHER,
  openRefresh,
  type RefreshFlow,
  tokenOf,
  withIssuer,
  withRefresh,
  withRule,
} from "../../support/refresh.ts";
import { stop } from "../../support/stop.ts";

let database: SharedPostgres;
before(async () => {
  database = await sharePostgres();
});
after(() => stop(database));

const DAY = 24 * 3600;
const reasonOf = (answer: Awaited<ReturnType<RefreshFlow["ask"]>>): string =>
  answer.error === undefined ? "none" : answer.reason;

/** Whether the token of an answer is on record and not ended. */
const stands = async ({ ports }: RefreshFlow, answer: Awaited<ReturnType<RefreshFlow["ask"]>>) => {
  const facts = await ports.facts.token(String(claimsIn(answer).jti));
  return facts !== undefined && facts.ended === undefined;
};

// --- use --------------------------------------------------------------------------------------------------------

test("RFC6749-6-1, RFC6749-6-5, RFC6749-6-6, RFC9700-2.2.2-1, REFRESH-D-3, MCP-S.2-2 a public client gets an access token and the next refresh token", async (t) => {
  const flow = await openRefresh(t);
  const { answer } = await flow.give();
  const first = tokenOf(answer);
  assert.match(first, /^mrt_[A-Za-z0-9_-]{43}$/);
  const second = await flow.refresh(first);
  const next = tokenOf(second);
  assert.match(next, /^mrt_[A-Za-z0-9_-]{43}$/);
  assert.notEqual(next, first);
  assert.notEqual(claimsIn(second).jti, claimsIn(answer).jti);
  assert.equal(claimsIn(second).aud, NOTES);
  assert.notEqual(tokenOf(await flow.refresh(next)), next);
});

test("RFC6749-10.4-6 a refresh token has 252 random bits in 42 of its characters, and four more in the last", async (t) => {
  const flow = await openRefresh(t);
  const tokens = [await flow.start()];
  while (tokens.length < DRAWS) tokens.push(tokenOf(await flow.refresh(tokens.at(-1) ?? "")));
  assertRandom(
    tokens.map((token) => token.slice("mrt_".length)),
    42,
  );
});

test("REFRESH-D-12, RFC9068-2.2.1-2, RFC6749-10.4-3 user, client and sign-in are those of the click", async (t) => {
  const flow = await openRefresh(t);
  const { answer } = await flow.give();
  flow.pass(3600);
  const later = claimsIn(await flow.refresh(tokenOf(answer)));
  const { sub, client_id, auth_time, acr, scope } = claimsIn(answer);
  assert.deepEqual(
    [later.sub, later.client_id, later.auth_time, later.acr, later.scope],
    [sub, client_id, auth_time, acr, scope],
  );
  assert.deepEqual([sub, acr, later.iat], ["company:alice", "urn:acr:two", flow.nowSeconds + 3600]);
});

test("REFRESH-D-3, RFC9449-5-9, OAUTH21-4.3-2 a client that proves itself keeps its refresh token, whatever key it shows", async (t) => {
  const flow = await openRefresh(t);
  const [one, other] = [await makeProver(), await makeProver()];
  const token = await flow.start({ client: PRIVATE, by: one });
  for (const by of [one, other]) {
    const answer = await flow.refresh(token, {}, PRIVATE, by);
    assert.ok(answer.error === undefined);
    assert.equal(answer.refresh_token, undefined);
    assert.deepEqual(claimsIn(answer).cnf, { jkt: by.jkt });
  }
});

const withoutRefresh = [
  ["a rule does not say so", withRule({ refresh: false }), {}],
  ["the page did not say for how long", forRefresh(), { told: false }],
  [
    "the client does not declare the grant type",
    forRefresh(({ clients }) => ({
      clients: { ...clients, [PUBLIC]: { ...clients[PUBLIC], grantTypes: ["authorization_code"] } },
    })),
    {},
  ],
] as const;
for (const [why, configuration, how] of withoutRefresh) {
  test(`REFRESH-D-1, RFC9700-4.14.2-1 a code gives no refresh token where ${why}`, async (t) => {
    const flow = await openRefresh(t, configuration);
    const { answer } = await flow.give(how);
    assert.ok(answer.error === undefined);
    assert.equal(answer.refresh_token, undefined);
    assert.deepEqual(await flow.families(), []);
  });
}

// --- processes that share a token -------------------------------------------------------------------------------

test("REFRESH-D-4, REFRESH-D-5, FAPI2-5.3.2-1 five uses at once all go on, with one successor and an access token each", async (t) => {
  const flow = await openRefresh(t);
  const token = await flow.start();
  const answers = await Promise.all(Array.from({ length: 5 }, () => flow.refresh(token)));
  assert.equal(new Set(answers.map(tokenOf)).size, 1);
  assert.equal(new Set(answers.map((answer) => claimsIn(answer).jti)).size, 5);
  assert.deepEqual(
    (await flow.families()).map(({ family }) => family.generation),
    [2],
  );
  assert.equal(errorOf(await flow.refresh(tokenOf(answers[0] ?? assert.fail()))), "none");
});

test("REFRESH-D-5 a retry gets the same successor, decided for its own parameters", async (t) => {
  const flow = await openRefresh(t);
  const token = await flow.start();
  const next = tokenOf(await flow.refresh(token));
  const again = await flow.refresh(token, { scope: "notes.read" });
  assert.deepEqual([tokenOf(again), claimsIn(again).scope], [next, "notes.read"]);
  const tooMany = await flow.refresh(token, { scope: "notes.delete" });
  assert.equal(errorOf(tooMany), "scope_refused");
  assert.equal(tokenOf(await flow.refresh(token)), next);
});

const places = [
  ["SQLite", async () => ({ sqlite: await migratedFile() })],
  ["PostgreSQL", async () => ({ postgres: await freshDatabase(database) })],
] as const;
for (const [name, place] of places) {
  test(`REFRESH-D-5 fifty uses at once at three instances end nothing, also where the next token is used at once (${name})`, async (t) => {
    const shared = { place: await place(), encryptionKey: randomBytes(32) };
    const flows = await Promise.all(
      ["one", "two", "three"].map((log) => openRefresh(t, forRefresh(), { ...shared, log })),
    );
    const at = (index: number) => flows[index % flows.length] ?? assert.fail();
    const token = await at(0).start();
    const use = async (index: number, presented: string): Promise<string[]> => {
      const answer = await at(index).refresh(presented);
      if (answer.error === undefined) return [tokenOf(answer)];
      assert.deepEqual([answer.error, answer.waitSeconds], ["throttled", 1], answer.reason);
      return [];
    };
    const first = (
      await Promise.all(
        Array.from({ length: 50 }, async (_, index) => {
          const next = await use(index, token);
          return Promise.all(next.map((one) => use(index, one)));
        }),
      )
    ).flat(2);
    assert.equal(new Set(first).size, 1, "the uses of the next token have one successor");
    for (let late = 0; late < 3; late++) assert.deepEqual(await use(late, token), []);
    const [{ family, ended } = assert.fail("no family")] = await at(1).families();
    assert.deepEqual([family.generation, ended], [3, undefined]);
    assert.equal(errorOf(await at(2).refresh(first[0] ?? "")), "none");
  });
}

test("REFRESH-D-5 a family that is rotated too often within the window waits, since each rotation is noted", async (t) => {
  const flow = await openRefresh(t, withRefresh({ retrySeconds: 60 }));
  const first = await flow.start();
  let token = first;
  for (let count = 0; count < REFRESH_ROTATIONS_MAX; count++) token = tokenOf(await flow.refresh(token));
  for (const [presented, reason] of [
    [token, "refreshes_too_many"],
    [first, "refresh_token_replaced"],
  ] as const) {
    const answer = await flow.refresh(presented);
    assert.deepEqual([errorOf(answer), reasonOf(answer)], ["throttled", reason]);
  }
  flow.reload(withRefresh({ retrySeconds: 0 }));
  assert.equal(errorOf(await flow.refresh(token)), "none");
});

// --- from elsewhere ---------------------------------------------------------------------------------------------

const HOME = "2001:db8:1:2::7";
const networks = [
  ["another address of its /64", HOME, "2001:db8:1:2:ffff::1", "none", "refresh.retried"],
  ["another /64", HOME, "2001:db8:1:3::7", "none", "refresh.retried_elsewhere"],
  ["the same address of version 4", "192.0.2.1", "192.0.2.1", "none", "refresh.retried"],
  ["another address of version 4", "192.0.2.1", "192.0.2.2", "none", "refresh.retried_elsewhere"],
  ["version 4 instead of version 6", HOME, "192.0.2.1", "none", "refresh.retried_elsewhere"],
] as const;
for (const [what, first, then, reason, type] of networks) {
  test(`REFRESH-D-21, REFRESH-D-5 the first retry from ${what}: gives the same successor, as ${type}`, async (t) => {
    const flow = await openRefresh(t);
    const token = await flow.start();
    const next = tokenOf(await flow.refresh(token, {}, PUBLIC, undefined, first));
    const again = await flow.refresh(token, {}, PUBLIC, undefined, then);
    assert.deepEqual([reasonOf(again), tokenOf(again)], [reason, next]);
    const { grant, ...event } = (await flow.events()).findLast((one) => one.type === type) ?? assert.fail();
    const [{ family, retriedElsewhere } = assert.fail()] = await flow.families();
    assert.deepEqual(grant, { id: family.id, generation: 1 });
    assert.deepEqual(event.request, { id: "r-1", endpoint: "/token", source_ip: then });
    assert.equal(retriedElsewhere, type === "refresh.retried" ? undefined : true);
  });
}

for (const rotations of [0, 1, 3]) {
  test(`REFRESH-D-21, REFRESH-D-7 the second retry from elsewhere, ${rotations} rotations after the first: ends the family`, async (t) => {
    const flow = await openRefresh(t);
    let token = await flow.start();
    const elsewhere = () => flow.refresh(token, {}, PUBLIC, undefined, "198.51.100.1");
    let next = tokenOf(await flow.refresh(token));
    assert.equal(tokenOf(await elsewhere()), next);
    for (let count = 0; count < rotations; count++) {
      token = next;
      next = tokenOf(await flow.refresh(token));
    }
    assert.equal(tokenOf(await flow.refresh(token)), next, "a retry from the first source is none");
    assert.equal(reasonOf(await elsewhere()), "refresh_token_reused");
    assert.equal(reasonOf(await flow.refresh(next)), "refresh_token_ended");
    assert.equal((await flow.events()).at(-2)?.type, "refresh.reuse_detected");
  });
}

test("REFRESH-D-21 of five retries at once from elsewhere one is answered, and the family ends", async (t) => {
  const flow = await openRefresh(t);
  const token = await flow.start();
  const next = tokenOf(await flow.refresh(token));
  const answers = await Promise.all(
    [1, 2, 3, 4, 5].map((host) => flow.refresh(token, {}, PUBLIC, undefined, `198.51.100.${host}`)),
  );
  const given = answers.filter(({ error }) => error === undefined);
  assert.deepEqual(given.map(tokenOf), [next]);
  assert.equal(reasonOf(await flow.refresh(next)), "refresh_token_ended");
});

test("REFRESH-D-21 a thief at another address is seen at once, and stopped with the next token, whoever of both is quicker", async (t) => {
  for (const quicker of ["client", "thief"] as const) {
    const flow = await openRefresh(t);
    const by = { client: "192.0.2.1", thief: "198.51.100.1" };
    const slower = quicker === "client" ? "thief" : "client";
    let token = await flow.start();
    let answered = 0;
    for (let round = 0; round < 20; round++) {
      const first = await flow.refresh(token, {}, PUBLIC, undefined, by[quicker]);
      if (first.error !== undefined) break;
      const second = await flow.refresh(token, {}, PUBLIC, undefined, by[slower]);
      if (second.error !== undefined) break;
      answered++;
      token = tokenOf(first);
    }
    assert.equal(answered, 1, quicker);
    const types = (await flow.events()).map(({ type }) => type);
    assert.ok(types.includes("refresh.retried_elsewhere"));
    assert.ok(types.includes("refresh.reuse_detected"));
  }
});

test("REFRESH-D-21, REFRESH-D-8 a bound family is retried from anywhere with its key", async (t) => {
  const flow = await openRefresh(t);
  const owner = await makeProver();
  const token = await flow.start({ by: owner });
  const next = tokenOf(await flow.refresh(token, {}, PUBLIC, owner));
  for (const source of ["198.51.100.1", "198.51.100.2", HOME]) {
    assert.equal(tokenOf(await flow.refresh(token, {}, PUBLIC, owner, source)), next);
  }
  assert.equal((await flow.families())[0]?.retriedElsewhere, undefined);
});

test("REFRESH-D-21 the store has no address, and a digest of it that the token alone gives", async (t) => {
  const flow = await openRefresh(t);
  const [one, other] = [await flow.start(), await flow.start()];
  const found = await Promise.all(
    [one, other].map(async (token) => {
      await flow.refresh(token);
      return flow.ports.families.find(flow.ports.hash.sha256(token));
    }),
  );
  const digests = found.map((family) => family?.rotated?.latest[0]?.by ?? assert.fail());
  assert.ok(!JSON.stringify(found).includes("192.0.2.1"));
  assert.equal(new Set(digests).size, 2);
});

test("REFRESH-D-6 the store has the successor encrypted, for the token before alone, and until the next use", async (t) => {
  const flow = await openRefresh(t);
  const token = await flow.start();
  const next = tokenOf(await flow.refresh(token));
  const found = await flow.ports.families.find(flow.ports.hash.sha256(token));
  const sealed = found?.rotated?.sealed ?? assert.fail("nothing is kept");
  assert.ok(!JSON.stringify(found).includes(next));
  assert.equal(successors.open(token, sealed), next);
  assert.throws(() => successors.open(next, sealed));
  await flow.refresh(next);
  const after = await flow.ports.families.find(flow.ports.hash.sha256(next));
  assert.throws(() => successors.open(token, after?.rotated?.sealed ?? ""));
});

const windows = [
  ["REFRESH-D-5", 60, "none"],
  ["REFRESH-D-5", undefined, "none"],
  ["REFRESH-D-7", 0, "refresh_token_reused"],
] as const;
for (const [id, retrySeconds, reason] of windows) {
  test(`${id} a retry within ${retrySeconds} s of the rotation: ${reason}`, async (t) => {
    const flow = await openRefresh(t, withRefresh({ retrySeconds }));
    const token = await flow.start();
    await flow.refresh(token);
    // The clock of the store goes on by itself.
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(reasonOf(await flow.refresh(token)), reason);
  });
}

// --- reuse, other clients, other keys ---------------------------------------------------------------------------

test("REFRESH-D-7, RFC9700-4.14.2-3, RFC6749-10.4-5, OAUTH21-4.3.1-1, OAUTH21-4.3.1-2 an old token ends the family, its access tokens and its current token", async (t) => {
  const flow = await openRefresh(t);
  const first = await flow.give();
  const token = tokenOf(first.answer);
  const second = await flow.refresh(token);
  const third = await flow.refresh(tokenOf(second));
  const stolen = await flow.refresh(token, {}, PUBLIC, undefined, "198.51.100.1");
  assert.deepEqual([errorOf(stolen), reasonOf(stolen)], ["grant_refused", "refresh_token_reused"]);
  for (const answer of [first.answer, second, third]) assert.equal(await stands(flow, answer), false);
  assert.equal(reasonOf(await flow.refresh(tokenOf(third))), "refresh_token_ended");
  const [{ ended } = assert.fail("no family")] = await flow.families();
  assert.equal(ended?.reason, "refresh_token_reused");
  const events = await flow.events();
  const event = events.findLast(({ type }) => type === "refresh.reuse_detected");
  assert.equal(event?.outcome, "deny");
});

test("REFRESH-D-8, RFC9449-5-5, RFC9449-5-6, RFC9449-5-7 a bound token is of no use without its key, and an old one ends nothing", async (t) => {
  const flow = await openRefresh(t);
  const [owner, thief] = [await makeProver(), await makeProver()];
  const token = await flow.start({ by: owner });
  for (const by of [thief, undefined]) {
    const refused = await flow.refresh(token, {}, PUBLIC, by);
    assert.deepEqual([errorOf(refused), reasonOf(refused)], ["grant_refused", "refresh_key_not_proven"]);
  }
  const second = tokenOf(await flow.refresh(token, {}, PUBLIC, owner));
  assert.equal(tokenOf(await flow.refresh(token, {}, PUBLIC, owner)), second, "a retry");
  const third = tokenOf(await flow.refresh(second, {}, PUBLIC, owner));
  for (const [by, reason] of [
    [thief, "refresh_key_not_proven"],
    [undefined, "refresh_key_not_proven"],
    [owner, "refresh_token_replaced"],
  ] as const) {
    assert.equal(reasonOf(await flow.refresh(token, {}, PUBLIC, by)), reason);
  }
  const last = await flow.refresh(third, {}, PUBLIC, owner);
  assert.deepEqual(claimsIn(last).cnf, { jkt: owner.jkt });
});

test("REFRESH-D-18 a family that is not bound at its code is not bound later", async (t) => {
  const flow = await openRefresh(t);
  const [one, other] = [await makeProver(), await makeProver()];
  let token = await flow.start();
  for (const by of [one, other, undefined]) {
    const answer = await flow.refresh(token, {}, PUBLIC, by);
    assert.deepEqual(claimsIn(answer).cnf, by && { jkt: by.jkt });
    token = tokenOf(answer);
  }
});

test("REFRESH-D-9, RFC6749-6-4, RFC6749-10.4-4, OAUTH21-4.3-2 another client gets nothing; one that proved itself ends the family", async (t) => {
  const flow = await openRefresh(
    t,
    forRefresh(({ clients }) => ({
      clients: { ...clients, "second-app": { ...clients[PUBLIC] } },
    })),
  );
  const token = await flow.start();
  const unproven = await flow.refresh(token, {}, "second-app");
  assert.deepEqual(
    [errorOf(unproven), reasonOf(unproven)],
    ["grant_refused", "refresh_token_of_other_client"],
  );
  const next = tokenOf(await flow.refresh(token));
  const proven = await flow.refresh(next, {}, OTHER);
  assert.deepEqual([errorOf(proven), reasonOf(proven)], ["grant_refused", "refresh_token_of_other_client"]);
  assert.equal(reasonOf(await flow.refresh(next)), "refresh_token_ended");
  assert.equal((await flow.events()).filter(({ type }) => type === "refresh.ended").length, 1);
});

test("RFC6749-6-5 what is no refresh token of ours is unknown, whatever it looks like", async (t) => {
  const flow = await openRefresh(t);
  const token = await flow.start();
  for (const guess of [
    `${token}A`,
    token.slice(0, -1),
    token.toUpperCase(),
    "mrt_",
    "\u{1F511}",
    `mrt_${"A".repeat(43)}`,
  ]) {
    const refused = await flow.refresh(guess);
    assert.deepEqual([errorOf(refused), reasonOf(refused)], ["grant_refused", "refresh_token_unknown"]);
  }
  assert.equal(reasonOf(await flow.ask({ grant_type: "refresh_token" })), "refresh_token_missing");
  assert.equal(errorOf(await flow.refresh(token)), "none");
});

// --- scope and target -------------------------------------------------------------------------------------------

test("REFRESH-D-11, RFC6749-6-2, RFC6749-6-7, RFC9700-4.14.2-2 less may be asked for, and the next use has the whole again", async (t) => {
  const flow = await openRefresh(t);
  const narrow = await flow.refresh(await flow.start(), { scope: "notes.read" });
  assert.equal(claimsIn(narrow).scope, "notes.read");
  const whole = await flow.refresh(tokenOf(narrow));
  assert.equal(claimsIn(whole).scope, SCOPES.join(" "));
});

test("RFC6749-6-2, OAUTH21-4.3-1, REFRESH-D-11 more than the grant is refused as a whole, and uses nothing up", async (t) => {
  const flow = await openRefresh(t);
  const token = await flow.start({ scopes: ["notes.read"] });
  for (const scope of ["notes.write", "notes.read notes.write", "other", "a  b"]) {
    assert.equal(errorOf(await flow.refresh(token, { scope })), "scope_refused", scope);
  }
  assert.equal((await flow.families())[0]?.family.generation, 1);
  const wished = await flow.refresh(token, { scope: "notes.read offline_access" });
  assert.equal(claimsIn(wished).scope, "notes.read", "REFRESH-D-2");
});

test("RFC8707-2.2-3, RFC8707-2.2-4, OAUTH21-4.3-1, REFRESH-D-11 the resource may be repeated, and no other one is reached", async (t) => {
  const flow = await openRefresh(
    t,
    forRefresh(({ targets }) => ({
      targets: [...targets, { names: ["https://files.example"], scopes: SCOPES, people: true }],
    })),
  );
  const token = await flow.start();
  for (const resource of ["https://files.example", "https://unknown.example"]) {
    assert.equal(errorOf(await flow.refresh(token, { resource })), "target_refused");
    assert.equal(errorOf(await flow.refresh(token, { audience: resource })), "target_refused");
  }
  assert.equal(claimsIn(await flow.refresh(token, { resource: NOTES })).aud, NOTES);
});

// --- decided anew -----------------------------------------------------------------------------------------------

const narrowed = [
  ["the rule does not allow it any more", withRule({ refresh: false }), "subject_token_does_not_permit"],
  ["the rule is gone", forRefresh(() => ({ policies: [] })), "no_rule"],
  ["the rule names another client", withRule({ clients: [PRIVATE] }), "no_rule"],
  [
    "the rule names another user",
    withRule({ subjects: { issuers: ["https://login.example"], subs: ["bob"] } }),
    "no_rule",
  ],
  [
    "the client has not declared the grant type",
    forRefresh(({ clients }) => ({
      clients: { ...clients, [PUBLIC]: { ...clients[PUBLIC], grantTypes: ["authorization_code"] } },
    })),
    "grant_type_not_registered",
  ],
] as const;
for (const [why, configuration, reason] of narrowed) {
  test(`REFRESH-D-10 nothing is given while ${why}, and the family waits`, async (t) => {
    const flow = await openRefresh(t);
    const token = await flow.start();
    flow.reload(configuration);
    assert.equal(reasonOf(await flow.refresh(token)), reason);
    flow.reload(forRefresh());
    assert.equal(errorOf(await flow.refresh(token)), "none");
  });
}

test("HTTP-D-38 a client of the configuration that is removed and added again has its grants again", async (t) => {
  const flow = await openRefresh(t);
  const token = await flow.start();
  const jti = String(claimsIn((await flow.give()).answer).jti);
  const stands = () => standing(flow.ports, jti, flow.ports.clock.nowSeconds());
  flow.reload(forRefresh(({ clients }) => ({ clients: { ...clients, [PUBLIC]: undefined } })));
  assert.deepEqual(await stands(), err("token_client_gone"));
  flow.reload(forRefresh());
  assert.ok((await stands()).ok);
  assert.equal(errorOf(await flow.refresh(token)), "none");
});

const gone = [
  ["the user is disabled", withIssuer({ disabledSubjects: ["alice"] }), "subject_disabled"],
  ["the user has another name here", withIssuer({ subjects: { prefix: "staff:" } }), "token_issuer_narrowed"],
  [
    "the target is gone",
    forRefresh(({ targets, policies }) => ({
      targets: targets.map((target) => ({ ...target, names: ["https://other.example"] })),
      policies: policies.map((rule) => ({ ...rule, targets: ["https://other.example"] })),
    })),
    "target_unknown",
  ],
  [
    "the client became confidential",
    forRefresh(({ clients }) => ({ clients: { ...clients, [PUBLIC]: { ...clients[PRIVATE] } } })),
    "refresh_method_changed",
  ],
] as const;
for (const [why, configuration, reason] of gone) {
  test(`HTTP-D-37, REFRESH-D-15, REFRESH-D-10 the family ends when it is used while ${why}`, async (t) => {
    const flow = await openRefresh(t);
    const token = await flow.start();
    flow.reload(configuration);
    const refused = await flow.refresh(token);
    assert.deepEqual([errorOf(refused), reasonOf(refused)], ["grant_refused", reason]);
    flow.reload(forRefresh());
    assert.equal(reasonOf(await flow.refresh(token)), "refresh_token_ended");
    assert.equal((await flow.families())[0]?.ended?.reason, reason);
  });
}

test("REFRESH-D-10 only the consent of the grant counts, with the scopes that it has now", async (t) => {
  const flow = await openRefresh(t);
  const consent = await flow.consentOf(PUBLIC);
  const token = await flow.start({ consent });
  const { journal, clock } = flow.ports;
  const event = { type: "consent.recorded", outcome: "allow", reason: "by_subject" } as const;
  const less = { ...consent, version: 2, scopes: ["notes.read"] };
  assert.ok((await journal.record({ event, consent: { replace: less } })).ok);
  // Another consent of the same user for the same client and target, with more scopes.
  await flow.consentOf(PUBLIC);
  const answer = await flow.refresh(token);
  assert.equal(claimsIn(answer).scope, "notes.read");
  const withdrawn = { withdraw: consent.id, atSeconds: clock.nowSeconds() };
  assert.ok(
    (await journal.record({ event: { ...event, type: "consent.withdrawn" }, consent: withdrawn })).ok,
  );
  assert.equal(reasonOf(await flow.refresh(tokenOf(answer))), "refresh_token_ended");
  assert.equal(await stands(flow, answer), false);
});

// --- ends -------------------------------------------------------------------------------------------------------

test("REFRESH-D-13, OAUTH21-4.3.3-2, RFC9700-4.14.2-6 a family ends after a time without use, which each use moves", async (t) => {
  const flow = await openRefresh(t);
  let token = await flow.start();
  for (let week = 0; week < 3; week++) {
    flow.pass(7 * DAY - 60);
    token = tokenOf(await flow.refresh(token));
  }
  flow.pass(7 * DAY);
  assert.equal(reasonOf(await flow.refresh(token)), "refresh_token_expired");
});

test("REFRESH-D-13, REFRESH-D-12 a family ends so long after the click, and nothing of it lives longer", async (t) => {
  const flow = await openRefresh(t);
  let token = await flow.start();
  for (let day = 0; day < 29; day++) {
    flow.pass(DAY);
    token = tokenOf(await flow.refresh(token));
  }
  flow.pass(DAY - 60);
  const last = await flow.refresh(token);
  assert.ok(last.error === undefined);
  assert.equal(last.expires_in, 60);
  flow.pass(60);
  assert.equal(reasonOf(await flow.refresh(tokenOf(last))), "refresh_token_expired");
});

test("REFRESH-D-2 without offline_access a family ends twelve hours after the click", async (t) => {
  const flow = await openRefresh(t);
  const token = await flow.start({ offline: false });
  flow.pass(DAY / 2 - 10);
  const last = await flow.refresh(token);
  assert.equal(errorOf(last), "none");
  flow.pass(10);
  assert.equal(reasonOf(await flow.refresh(tokenOf(last))), "refresh_token_expired");
});

const shorter = [
  ["in all", { days: 2 }, {}],
  ["without use", { idleDays: 2 }, {}],
  ["without offline_access", { hours: 1 }, { offline: false }],
] as const;
for (const [what, setting, how] of shorter) {
  test(`REFRESH-D-13 a shorter time ${what} holds at once, a longer one for what is given then`, async (t) => {
    const flow = await openRefresh(t);
    const token = await flow.start(how);
    flow.pass("offline" in how ? 2 * 3600 : 3 * DAY);
    flow.reload(withRefresh(setting));
    assert.equal(reasonOf(await flow.refresh(token)), "refresh_token_expired");
    flow.reload(withRefresh({ days: 60, idleDays: 60, hours: 24 }));
    flow.pass("offline" in how ? 10 * 3600 : 5 * DAY);
    assert.equal(reasonOf(await flow.refresh(token)), "refresh_token_expired");
  });
}

const selectors: readonly EndingSelector[] = [
  { by: "client", clientId: PUBLIC },
  { by: "rule", id: "apps-for-people" },
  { by: "subject", ...ALICE },
  { by: "issuer", issuer: ALICE.iss },
  { by: "every_grant" },
  { by: "everything" },
];
for (const selector of selectors) {
  test(`REFRESH-D-15, REFRESH-D-14, OAUTH21-4.3.3-1, RFC9700-4.14.2-5 an ending by ${selector.by} ends the family and all that came of it`, async (t) => {
    const flow = await openRefresh(t);
    const first = await flow.give();
    const second = await flow.refresh(tokenOf(first.answer));
    await recordEnding(flow.ports, selector, { reason: "by_operator" });
    assert.equal(reasonOf(await flow.refresh(tokenOf(second))), "refresh_token_ended");
    for (const answer of [first.answer, second]) assert.equal(await stands(flow, answer), false);
    // What the user gives afterwards is another grant.
    flow.pass(60);
    assert.equal(errorOf(await flow.refresh(await flow.start())), "none");
  });
}

test("REFRESH-D-15, RFC6749-4.1.2-4 a code that comes twice ends the family, also long after its first access token", async (t) => {
  const flow = await openRefresh(t);
  const { answer, code } = await flow.give();
  const token = tokenOf(answer);
  // Its first access token was ended by itself.
  await recordEnding(flow.ports, { by: "token", jti: String(claimsIn(answer).jti) }, { reason: "by_client" });
  const second = await flow.refresh(token);
  flow.pass(30);
  assert.equal(reasonOf(await flow.ask(code)), "code_replayed");
  assert.equal(reasonOf(await flow.refresh(tokenOf(second))), "refresh_token_ended");
  assert.equal(await stands(flow, second), false);
  assert.equal((await flow.families())[0]?.ended?.reason, "code_replayed");
});

test("REFRESH-D-15, REFRESH-D-17, RFC7009-2-1, RFC7009-2.1-10 a client ends its family by any of its tokens, and learns nothing of others", async (t) => {
  const flow = await openRefresh(t);
  const end = (token: string, client = PUBLIC) =>
    revoke(
      flow.ports,
      flow.client(client),
      { id: "r-2", endpoint: "/revoke", source_ip: "::1" },
      formOf({ token }),
    );
  const old = await flow.start();
  const current = await flow.refresh(old);
  const others = await end(old, OTHER);
  assert.equal(others.ok ? "" : others.error.failure.kind, "token_of_another");
  assert.equal(await stands(flow, current), true);
  assert.ok((await end(old)).ok);
  assert.equal(await stands(flow, current), false);
  assert.equal(reasonOf(await flow.refresh(tokenOf(current))), "refresh_token_ended");
  assert.equal((await flow.families())[0]?.ended?.reason, "by_client");
});

test("REFRESH-D-16 an access token ends alone", async (t) => {
  const flow = await openRefresh(t);
  const { answer } = await flow.give();
  assert.ok(answer.error === undefined);
  const form = formOf({ token: answer.access_token });
  const request = { id: "r-2", endpoint: "/revoke", source_ip: "::1" };
  assert.ok((await revoke(flow.ports, flow.client(PUBLIC), request, form)).ok);
  assert.equal(await stands(flow, answer), false);
  assert.equal(await stands(flow, await flow.refresh(tokenOf(answer))), true);
});

test("RFC6749-4.1.2-1 a code is good for its time, and expired in the second that ends it", async (t) => {
  const flow = await openRefresh(t);
  assert.equal(errorOf((await flow.give({ afterSeconds: CODE_SECONDS - 1 })).answer), "none");
  assert.equal(reasonOf((await flow.give({ afterSeconds: CODE_SECONDS })).answer), "code_expired");
});

const ELSEWHERE = "https://elsewhere.example";
const withTwoTargets = forRefresh(({ targets, policies }) => ({
  targets: [...targets, { names: [ELSEWHERE], scopes: SCOPES, people: true }],
  policies: policies.map((rule) => ({ ...rule, targets: [NOTES, ELSEWHERE] })),
}));

test("HTTP-D-40, REFRESH-D-15 of more families for one client and target those end that were used longest ago, and none of another", async (t) => {
  const flow = await openRefresh(t, withTwoTargets);
  await flow.start({ offline: false });
  flow.pass((flow.ports.settings().signIn?.refresh.briefSeconds ?? 0) + 1);
  const others = [
    await flow.start({ client: PRIVATE }),
    await flow.start({ target: ELSEWHERE, consent: await flow.consentOf(PUBLIC, SCOPES, ELSEWHERE) }),
  ];
  flow.pass(1);
  const consent = await flow.consentOf(PUBLIC);
  const tokens: string[] = [];
  for (let family = 0; family < FAMILIES_MAX; family++) {
    tokens.push(await flow.start({ consent }));
    flow.pass(1);
  }
  const [first = "", second = ""] = tokens;
  const used = tokenOf(await flow.refresh(first));
  await flow.start({ consent });
  assert.equal(reasonOf(await flow.refresh(second)), "refresh_token_ended");
  assert.equal(errorOf(await flow.refresh(used)), "none");
  const ended = (await flow.families()).filter((one) => one.ended !== undefined);
  assert.deepEqual(
    ended.map((one) => one.ended?.reason),
    ["families_too_many"],
  );
  const told = (await flow.events()).filter(({ type }) => type === "refresh.ended");
  assert.deepEqual(
    told.map(({ reason }) => reason),
    ["families_too_many"],
  );
  assert.equal(errorOf(await flow.refresh(others[0] ?? "", {}, PRIVATE)), "none");
  assert.equal(errorOf(await flow.refresh(others[1] ?? "")), "none");
});

test("REFRESH-D-4, RFC6749-4.1.3-5 a store that is lost once the token is recorded costs the client nothing, since its code is used up", async (t) => {
  const flow = await openRefresh(t);
  const { list, ...families } = flow.ports.families;
  const lost = async () => {
    throw new StoreUnavailable("lost");
  };
  Object.assign(flow.ports, { families: { ...families, list: lost } });
  const token = tokenOf((await flow.give()).answer);
  Object.assign(flow.ports, { families: { ...families, list } });
  assert.equal(errorOf(await flow.refresh(token)), "none");
});

// --- elsewhere, and the audit trail -----------------------------------------------------------------------------

test("REFRESH-D-20 a refresh token is inactive to introspection, and nothing to an exchange", async (t) => {
  const flow = await openRefresh(t);
  const token = await flow.start({ client: PRIVATE });
  assert.deepEqual((await introspect(flow.ports, flow.client(PRIVATE), token)).answer, { active: false });
  for (const type of ["access_token", "refresh_token", "jwt"]) {
    const answer = await flow.ask(
      {
        grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
        subject_token: token,
        subject_token_type: `urn:ietf:params:oauth:token-type:${type}`,
      },
      PRIVATE,
    );
    assert.notEqual(errorOf(answer), "none", type);
  }
});

test("REFRESH-D-19, REFRESH-D-14, RFC6749-10.4-2, AUDIT-D-3 each step is an event with grant and generation, and none has a token", async (t) => {
  const flow = await openRefresh(t);
  const first = await flow.start();
  const second = tokenOf(await flow.refresh(first));
  await flow.refresh(first);
  const third = tokenOf(await flow.refresh(second));
  await flow.refresh(first, {}, PUBLIC, undefined, "198.51.100.1");
  const events = await flow.events();
  const [{ family } = assert.fail("no family")] = await flow.families();
  const steps = events.flatMap(({ type, grant }) => (grant === undefined ? [] : [[type, grant]]));
  assert.deepEqual(steps, [
    ["refresh.issued", { id: family.id, generation: 1 }],
    ["token.refreshed", { id: family.id, generation: 1 }],
    ["refresh.retried", { id: family.id, generation: 1 }],
    ["token.refreshed", { id: family.id, generation: 2 }],
    ["refresh.reuse_detected", { id: family.id, generation: 1 }],
  ]);
  const { hash } = flow.ports;
  const text = JSON.stringify([events, family]);
  for (const token of [first, second, third]) {
    for (const secret of [token, token.slice(4), hash.sha256(token)]) assert.ok(!text.includes(secret));
  }
});
