/** Deferred token responses while things change: other instances, keys, endings, rules, a restart; and without the draft. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { DEFERRAL_CODE, DEFERRED, DRAFT } from "../../src/spec/deferred-token-response.ts";
import { DRAFT as SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { asOperator, type Exchanging, exchange, linkIn, PLANNER, TRIPS } from "../support/asking-agents.ts";
import {
  answerLink,
  cancel,
  forDeferral,
  outcome,
  pageOf,
  poll,
  type Waiting,
  waitFor,
} from "../support/deferral.ts";
import { makeProver } from "../support/dpop.ts";
import { shownBy } from "../support/markup.ts";
import { type Asked, Browser, files, redeem, request, verifierOf, WEB_REDIRECT } from "../support/people.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { reload } from "../support/reload.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, ISSUER, makeWorld, type World } from "../support/world.ts";

type Rule = Record<string, unknown> & { id: string };

let provider: TestProvider;
let database: SharedPostgres;
let world: World;
let beside: ServerProcess;

before(async () => {
  [provider, database] = await Promise.all([startProvider(), sharePostgres()]);
  const base = forDeferral(provider);
  world = await makeWorld(
    { ...base, registration: { mode: "open", open: { scopes: ["notes.read"] } } },
    { files: files(provider), clock: true, postgres: await freshDatabase(database) },
  );
  beside = await world.beside("beside");
});
after(() => stop(beside, world, provider, database));

/** The user's token is of the time of the servers, which a test moves. */
async function withToken({ user = "alice", ...asked }: Exchanging): Promise<Exchanging> {
  const iat = Math.floor(world.nowMs() / 1000);
  const token = await provider.userToken(user, ISSUER, { scope: TRIPS.join(" "), iat, exp: iat + 300 });
  return { token, ...asked };
}
const wait = async (asked: Exchanging): Promise<Waiting> => waitFor(world, provider, await withToken(asked));
const ask = async (asked: Exchanging) => exchange(world, provider, await withToken(asked));
const allow = (waiting: Waiting, user: string) => answerLink(world, provider, waiting.link, "allow", user);

// --- two instances ------------------------------------------------------------------------------------------------

test("DTR-6.5-2, DTR-D-6 of polls at two instances at once, one gives a token", async () => {
  for (let round = 0; round < 6; round++) {
    const user = `racer-${round}`;
    const waiting = await wait({ user });
    await allow(waiting, user);
    const both = await Promise.all([poll(world, waiting), poll(world, waiting, { port: beside.port })]);
    assert.deepEqual(both.map(outcome).sort(), ["invalid_grant", "token"]);
  }
});

test("DTR-8.2-4, DTR-8.2-1 of a poll and a cancellation at once, one comes first, and nothing is given after it", async () => {
  for (let round = 0; round < 4; round++) {
    const user = `canceller-${round}`;
    const waiting = await wait({ user });
    await allow(waiting, user);
    const [polled, cancelled] = await Promise.all([
      poll(world, waiting, { port: beside.port }),
      cancel(world, waiting),
    ]);
    assert.equal(cancelled.status, 200);
    const before = outcome(polled);
    assert.ok(["token", "access_denied"].includes(before), before);
    assert.equal(outcome(await poll(world, waiting)), before === "token" ? "invalid_grant" : "access_denied");
  }
});

test("DTR-D-2, DTR-D-11, DTR-6.4-4, DTR-6.4-6 each code has a link of its own to the one question, and a fifth is refused", async () => {
  const user = "anna";
  const codes: Waiting[] = [];
  for (let count = 0; count < 4; count++) codes.push(await wait({ user }));
  assert.equal(new Set(codes.map(({ link }) => link)).size, 4);
  const fifth = await ask({ user, form: { completion_mode: "deferred" } });
  assert.deepEqual([outcome(fifth), fifth.body.deferral_code], ["invalid_request", undefined]);
  const plain = await ask({ user });
  assert.notEqual(linkIn(plain), "");
  const [first, second, ...others] = codes;
  assert.ok(first !== undefined && second !== undefined);
  await cancel(world, first);
  // DTR-6.4-6: the link of the cancelled code is dead, and that of another answers for all.
  const { page } = await pageOf(world, provider, first.link, user);
  assert.match(shownBy(page.text), /There is nothing to decide here/);
  await allow(second, user);
  for (const one of [second, ...others]) assert.equal(outcome(await poll(world, one)), "token");
  assert.equal(outcome(await poll(world, first)), "access_denied");
});

test("DTR-D-2, DTR-D-14 a question that an agent asks again by its link stays open when the code is cancelled", async () => {
  const user = "bert";
  const waiting = await wait({ user });
  const link = linkIn(await ask({ user }));
  await cancel(world, waiting);
  assert.equal((await answerLink(world, provider, link, "allow", user)).status, 200);
  assert.equal(outcome(await ask({ user })), "token");
});

test("DTR-D-9, POLICY-D-21 after three cancellations the question is not opened again, and the client is told so", async () => {
  const user = "cora";
  for (let count = 0; count < 3; count++) await cancel(world, await wait({ user }));
  const refused = await ask({ user, form: { completion_mode: "deferred" } });
  assert.deepEqual([outcome(refused), refused.body.deferral_code], ["invalid_request", undefined]);
  const events = await world.events();
  const asked = (events.at(-1)?.policy as { asked: object } | undefined)?.asked;
  assert.deepEqual(asked, { refused: "deferrals_cancelled" });
  assert.equal(events.at(-1)?.reason, "deferrals_cancelled");
  assert.match(String(refused.body.error_description), /cancelled the same question too often/);
});

// --- who asks -----------------------------------------------------------------------------------------------------

test("DTR-5-1, DTR-5.1-1, DTR-5.3-2, DTR-D-3 a client that does not say that it can wait is refused as ever", async () => {
  for (const completion_mode of ["", "immediate", "deferreds", "DEFERRED", "x y z"]) {
    const answer = await ask({ user: "dora", form: { completion_mode } });
    assert.equal(outcome(answer), "invalid_request");
    assert.match(linkIn(answer), /ask\?r=/);
    assert.deepEqual([answer.body.deferral_code, answer.body.interaction_uri], [undefined, undefined]);
  }
  const among = await ask({ user: "dora", form: { completion_mode: "x deferred y" } });
  assert.deepEqual([outcome(among), among.body.error_uri], ["interaction_required", undefined]);
});

test("DTR-6.3-1 a request that lacks more than the consent is refused, and not deferred", async () => {
  const form = { completion_mode: "deferred" };
  const cases: Exchanging[] = [
    { target: "nowhere" },
    { scope: "trips.pay" },
    { token: "no token" },
    { path: "agents/quiet" },
    { path: "agents/unknown" },
  ];
  for (const one of cases) {
    const answer = await ask({ user: "dirk", ...one, form });
    assert.equal(answer.status, 400);
    assert.notEqual(outcome(answer), "interaction_required", JSON.stringify(one));
    assert.equal(answer.body.deferral_code, undefined);
  }
});

test("DTR-5.2-2, DTR-5.2-1 a client that said so at the authorization endpoint alone is refused with its code", async () => {
  const redeemed = async (hint: Asked, form: Asked) => {
    const verifier = verifierOf();
    const code = await new Browser(world, provider).codeFor(request(verifier, hint), "emil");
    return redeem(world, code, verifier, form);
  };
  const mode = { completion_mode: "deferred" };
  assert.equal(outcome(await redeemed(mode, {})), "invalid_request");
  assert.equal(outcome(await redeemed(mode, mode)), "token");
  assert.equal(outcome(await redeemed({}, mode)), "token");
});

test("DTR-D-4, DTR-6.4-5 the link shows nothing to another user, and gives nothing without a click", async () => {
  const waiting = await wait({ user: "emma" });
  const { page } = await pageOf(world, provider, waiting.link, "mallory");
  assert.match(shownBy(page.text), /There is nothing to decide here/);
  await pageOf(world, provider, waiting.link, "emma");
  assert.equal(outcome(await poll(world, waiting)), "interaction_required");
});

// --- keys ---------------------------------------------------------------------------------------------------------

test("DTR-6.4-7, DTR-11.1-2, DTR-11.1-3 a code is bound to the key of its request: poll and cancellation need it, and the token has it", async () => {
  const user = "fred";
  const [own, other] = [await makeProver(), await makeProver()];
  const proof = (by: typeof own, path = "/token") => ({ DPoP: by.prove(`${ISSUER}${path}`) });
  const waiting = await wait({ user, headers: proof(own) });
  await allow(waiting, user);
  assert.equal(outcome(await poll(world, waiting)), "invalid_dpop_proof");
  world.pass(10);
  assert.equal(outcome(await poll(world, waiting, { headers: proof(other) })), "invalid_dpop_proof");
  assert.equal(outcome(await cancel(world, waiting)), "invalid_dpop_proof");
  const byOther = await cancel(world, waiting, { headers: proof(other, "/revoke") });
  assert.equal(outcome(byOther), "invalid_dpop_proof");
  world.pass(10);
  const granted = await poll(world, waiting, { headers: proof(own) });
  assert.deepEqual([granted.status, granted.body.token_type], [200, "DPoP"], granted.text);
  assert.deepEqual(claimsOf(granted.body.access_token).cnf, { jkt: own.jkt });
  const second = await wait({ user: "fritz", headers: proof(own) });
  assert.equal((await cancel(world, second, { headers: proof(own, "/revoke") })).status, 200);
  assert.equal(outcome(await poll(world, second, { headers: proof(own) })), "access_denied");
});

test("DTR-D-7 the proof of a request that is deferred is used up", async () => {
  const headers = { DPoP: (await makeProver()).prove(`${ISSUER}/token`) };
  const waiting = await wait({ user: "frida", headers });
  const again = await ask({
    user: "frida",
    scope: "trips.read",
    headers,
    form: { completion_mode: "deferred" },
  });
  assert.equal(outcome(again), "invalid_dpop_proof");
  assert.equal(outcome(await poll(world, waiting)), "invalid_dpop_proof");
});

test("DTR-D-12 an address for notifications is left out of a registration, and the token for them is dropped unread", async () => {
  const metadata = {
    redirect_uris: [WEB_REDIRECT],
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code"],
    deferred_client_notification_endpoint: "https://app.example/deferred",
  };
  const registered = await world.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(metadata),
  });
  assert.equal(registered.status, 201, registered.text);
  assert.equal("deferred_client_notification_endpoint" in registered.body, false);
  const client_notification_token = "a token that no notification has";
  await wait({ user: "falk", form: { client_notification_token } });
  assert.equal(JSON.stringify(await world.events()).includes(client_notification_token), false);
});

// --- what ends a wait ---------------------------------------------------------------------------------------------

const ENDINGS = [
  ["its client", { client: PLANNER }],
  ["the actor", { actor: PLANNER }],
  ["the rule", { rule: "agents-ask" }],
  ["everything", { everything: {} }],
] as const;
for (const [what, body] of ENDINGS) {
  test(`DTR-D-15, DTR-11.7-1 an ending of ${what} ends the wait, decided or not`, async () => {
    const users = ["open", "given"].map((state) => `${what} ${state}`.replaceAll(" ", "-"));
    const [open = assert.fail(), given = assert.fail()] = await Promise.all(
      users.map((user) => wait({ user })),
    );
    await allow(given, users[1] ?? "");
    assert.equal((await asOperator(world, "/revocations", body)).status, 200);
    // What begins after the reach of the ending is not hurt.
    world.pass(11);
    assert.equal(outcome(await poll(world, open)), "access_denied");
    assert.equal(outcome(await poll(world, given)), "access_denied");
    const later = await wait({ user: `${users[0]}-later` });
    assert.equal(outcome(await poll(world, later)), "interaction_required");
  });
}

test("DTR-D-15, DTR-11.7-1 an ending of the subject, or its disabling, ends the wait", async () => {
  for (const [index, extra] of [{}, { disabled: true }].entries()) {
    const user = `subject-${index}`;
    const [open, given] = [await wait({ user }), await wait({ user, scope: "trips.read" })];
    await allow(given, user);
    const subject = { iss: provider.issuer, sub: user };
    assert.equal((await asOperator(world, "/revocations", { subject, ...extra })).status, 200);
    for (const one of [open, given]) assert.equal(outcome(await poll(world, one)), "access_denied");
  }
});

test("DTR-11.7-1, DTR-D-6 a consent that is taken back before the poll gives nothing", async () => {
  const user = "gerd";
  const waiting = await wait({ user });
  const { browser, page } = await pageOf(world, provider, waiting.link, user);
  await browser.decide(page);
  const account = await browser.get("/account");
  const [, token = "", consent = ""] =
    /name="token" value="([^"]*)"><input type="hidden" name="consent" value="([^"]*)"/.exec(account.text) ??
    [];
  assert.equal((await browser.post("/account/withdraw", { token, consent })).status, 303);
  assert.equal(outcome(await poll(world, waiting)), "access_denied");
});

test("DTR-11.7-1, DTR-D-15 the end of the token that was exchanged ends the wait", async () => {
  const user = "hanna";
  const first = await wait({ user });
  await allow(first, user);
  const { body } = await poll(world, first);
  const own = { own: body.access_token, path: "agents/booking", target: "https://api.example" };
  const waiting = await wait(own);
  await allow(waiting, user);
  const { jti } = claimsOf(body.access_token);
  assert.equal((await asOperator(world, "/revocations", { token: jti })).status, 200);
  assert.equal(outcome(await poll(world, waiting, { path: "agents/booking" })), "access_denied");
});

test("DTR-4.1-1 what the user gives in part is given in part", async () => {
  const user = "ida";
  const waiting = await wait({ user });
  const { browser, page } = await pageOf(world, provider, waiting.link, user);
  await browser.decide(page, { all: "", scope: "trips.read" });
  const granted = await poll(world, waiting);
  assert.deepEqual([granted.status, granted.body.scope], [200, "trips.read"]);
});

describe("with other rules", () => {
  const rules = (change: (rule: Rule) => object) =>
    reload(world, ({ policies }) => ({
      policies: (policies as Rule[]).map((rule) => (rule.id === "agents-ask" ? change(rule) : rule)),
    }));

  test("DTR-11.7-1, DTR-D-6 what the rule at the poll allows is given, and no more", async () => {
    const [narrowed, gone] = [await wait({ user: "jana" }), await wait({ user: "jens" })];
    await allow(narrowed, "jana");
    await rules((rule) => ({ ...rule, scopes: ["trips.read"] }));
    const granted = await poll(world, narrowed);
    assert.deepEqual([granted.status, granted.body.scope], [200, "trips.read"]);
    await rules((rule) => ({ ...rule, askUser: false }));
    assert.equal(outcome(await poll(world, gone)), "access_denied");
    await rules((rule) => ({ ...rule, askUser: true, scopes: ["trips.read", "trips.book"] }));
    world.pass(10);
    assert.equal(outcome(await poll(world, gone)), "access_denied");
  });

  test("DTR-D-1 a wait outlives a restart, and is found by another instance", async () => {
    const user = "karl";
    const waiting = await wait({ user });
    await beside.stop();
    beside = await world.beside("beside");
    assert.equal(outcome(await poll(world, waiting, { port: beside.port })), "interaction_required");
    await allow(waiting, user);
    world.pass(10);
    assert.equal(outcome(await poll(world, waiting, { port: beside.port })), "token");
  });

  test("DTR-5.1-2, DTR-8.4-1, DTR-5.1-3, CHG-D-6 metadata, grant and answer are there with the draft alone", async () => {
    const metadata = async () => (await world.get("/.well-known/oauth-authorization-server")).body;
    const on = await metadata();
    assert.equal(on.deferred_token_response_supported, true);
    assert.deepEqual(on.revocation_endpoint_token_type_values_supported, [DEFERRAL_CODE]);
    assert.ok((on.grant_types_supported as string[]).includes(DEFERRED));
    const waiting = await wait({ user: "lena" });
    await reload(world, () => ({ drafts: [SPIFFE] }));
    const off = await metadata();
    assert.equal(off.deferred_token_response_supported, undefined);
    assert.equal(off.revocation_endpoint_token_type_values_supported, undefined);
    assert.ok(!(off.grant_types_supported as string[]).includes(DEFERRED));
    const plain = await ask({ user: "lena", form: { completion_mode: "deferred" } });
    assert.notEqual(linkIn(plain), "");
    assert.equal(outcome(await poll(world, waiting)), "unsupported_grant_type");
    await reload(world, () => ({ drafts: [SPIFFE, DRAFT] }));
    assert.equal(outcome(await poll(world, waiting)), "interaction_required");
  });
});
