/** The provider of a user is asked before a refresh, once its last word is old; and what follows from its answer. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { after, afterEach, before, test } from "node:test";
import { standing } from "../../../src/flows/standing.ts";
import {
  RECHECK_AGAIN_SECONDS,
  RECHECK_GRACE_SECONDS,
  RECHECK_UNASKED_SECONDS,
  RECHECK_WAIT_MS,
} from "../../../src/limits/people.ts";
import { makeProviderSecrets } from "../../../src/people/adapters/sealed.ts";
import { buildSession, findSession } from "../../../src/people/flows/session.ts";
import { migratedFile } from "../../support/migrated.ts";
import { CLIENT_AT_PROVIDER, startProvider, type TestProvider } from "../../support/provider.ts";
import { DAY, DUE, forRecheck, openRecheck, type RecheckFlow } from "../../support/recheck.ts";
import { claimsIn, errorOf, tokenOf } from "../../support/refresh.ts";
import { stop } from "../../support/stop.ts";

const WAIT_SECONDS = RECHECK_WAIT_MS / 1000;

let provider: TestProvider;
before(async () => {
  provider = await startProvider();
});
after(() => stop(provider));
afterEach(() => {
  provider.disabled.clear();
  provider.questions.length = 0;
  provider.refreshing = "none";
  provider.lies = {};
});

type Answer = Awaited<ReturnType<RecheckFlow["ask"]>>;
const reasonOf = (answer: Answer): string => (answer.error === undefined ? "none" : answer.reason);

/** Refreshes again and again, with the next token each time; the seconds after which that was refused, and why. */
async function refreshUntilRefused(
  flow: RecheckFlow,
  token: string,
  every: number,
  upTo: number,
): Promise<{ afterSeconds: number; reason: string }> {
  let current = token;
  for (let passed = every; passed <= upTo; passed += every) {
    flow.pass(every);
    const answer = await flow.refresh(current);
    if (answer.error !== undefined) return { afterSeconds: passed, reason: answer.reason };
    current = tokenOf(answer);
  }
  return { afterSeconds: upTo, reason: "none" };
}

test("RECHECK-D-1 a user is disabled at the provider: the first refresh after recheckSeconds is refused", async (t) => {
  const flow = await openRecheck(t, provider);
  await flow.signIn(provider.refreshToken("alice"));
  const token = await flow.start();
  provider.disabled.add("alice");
  const { afterSeconds, reason } = await refreshUntilRefused(flow, token, 300, 30 * DAY);
  assert.deepEqual([afterSeconds, reason], [DUE, "provider_denies_user"]);
  assert.deepEqual(provider.questions, ["refresh"]);
});

test("RECHECK-D-4 a user whose provider cannot be asked: refresh is refused when the sign-in is too old, until they sign in again", async (t) => {
  const flow = await openRecheck(t, provider);
  await flow.signIn();
  const token = await flow.start();
  flow.pass(RECHECK_UNASKED_SECONDS - 1);
  const next = tokenOf(await flow.refresh(token));
  flow.pass(1);
  const refused = await flow.refresh(next);
  assert.deepEqual([errorOf(refused), reasonOf(refused)], ["grant_refused", "sign_in_too_old"]);
  await flow.signIn();
  assert.equal(errorOf(await flow.refresh(next)), "none");
  assert.deepEqual(provider.questions, []);
});

test("RECHECK-D-4 a family of a version that asked no provider counts from its click, and is refused when that is too old", async (t) => {
  const flow = await openRecheck(t, provider);
  const token = await flow.start();
  flow.pass(RECHECK_UNASKED_SECONDS - 1);
  const next = tokenOf(await flow.refresh(token));
  flow.pass(1);
  assert.equal(reasonOf(await flow.refresh(next)), "sign_in_too_old");
});

test("RECHECK-D-1 a user who stays is asked about every recheckSeconds, and is never refused", async (t) => {
  provider.refreshing = "rotating";
  const flow = await openRecheck(t, provider);
  await flow.signIn(provider.refreshToken("alice"));
  const { reason } = await refreshUntilRefused(flow, await flow.start(), 300, 4 * 3600);
  assert.equal(reason, "none");
  assert.equal(provider.questions.length, (4 * 3600) / DUE);
  const told = (await flow.events()).filter(({ type }) => type === "user.rechecked");
  assert.equal(told.length, provider.questions.length);
  assert.deepEqual([told[0]?.outcome, told[0]?.reason], ["allow", "provider_confirmed"]);
});

test("RECHECK-D-5 what the provider denies ends the user's families, tokens and session here, and keeps their consents", async (t) => {
  const flow = await openRecheck(t, provider);
  const { ports } = flow;
  await flow.signIn(provider.refreshToken("alice"));
  const [one, other] = [await flow.start(), (await flow.give()).answer];
  const origin = { iss: provider.issuer, sub: "alice" };
  flow.pass(DUE);
  const session = {
    origin,
    sub: "company:alice",
    provider: "company",
    startedAtSeconds: ports.clock.nowSeconds(),
  };
  const { key, rows } = buildSession(ports, session, undefined);
  for (const row of rows) if ("add" in row) await ports.shortLived.add(row.add);
  assert.notEqual(await findSession(ports, key), undefined);
  provider.disabled.add("alice");
  assert.equal(reasonOf(await flow.refresh(one)), "provider_denies_user");
  assert.equal(reasonOf(await flow.refresh(tokenOf(other))), "refresh_token_ended");
  assert.equal(await findSession(ports, key), undefined);
  assert.deepEqual(await standing(ports, String(claimsIn(other).jti), flow.nowSeconds), {
    ok: false,
    error: "token_revoked",
  });
  const nowSeconds = ports.clock.nowSeconds();
  assert.equal((await ports.consents.standing(origin, { nowSeconds, limit: 5 })).length, 2);
  const ended = (await flow.events()).findLast(({ type }) => type === "refresh.ended");
  const { ends, cut_off_ms: cutOff } = (ended?.detail ?? {}) as Record<string, unknown>;
  assert.deepEqual([ended?.outcome, ends], ["deny", { by: "subject", ...origin }]);
  assert.ok(Number(cutOff) >= nowSeconds * 1000);
  // The row refuses by itself too, whatever becomes of the ending.
  assert.equal(provider.questions.length, 1);
});

test("RECHECK-D-5 consents are withdrawn too where goneEndsConsents is set", async (t) => {
  const flow = await openRecheck(t, provider, forRecheck(provider, { goneEndsConsents: true }));
  await flow.signIn(provider.refreshToken("alice"));
  const token = await flow.start();
  provider.disabled.add("alice");
  flow.pass(DUE);
  assert.equal(reasonOf(await flow.refresh(token)), "provider_denies_user");
  const origin = { iss: provider.issuer, sub: "alice" };
  const page = { nowSeconds: flow.ports.clock.nowSeconds(), limit: 5 };
  assert.deepEqual(await flow.ports.consents.standing(origin, page), []);
  const withdrawn = (await flow.events()).filter(({ type }) => type === "consent.withdrawn");
  assert.deepEqual(
    withdrawn.map(({ reason, subject }) => [reason, (subject as { sub: string }).sub]),
    [["provider_denies_user", "alice"]],
  );
});

test("RECHECK-D-5 a process that dies once the denial is noted leaves the ending to the next refresh, with the consents", async (t) => {
  const flow = await openRecheck(t, provider, forRecheck(provider, { goneEndsConsents: true }));
  const { ports } = flow;
  await flow.signIn(provider.refreshToken("alice"));
  const [one, other] = [await flow.start(), await flow.start()];
  provider.disabled.add("alice");
  flow.pass(DUE);
  // The trail is lost before the ending is written.
  const { record } = ports.journal;
  const lost = new Error("the process has died");
  Object.assign(ports.journal, { record: () => Promise.reject(lost) });
  await assert.rejects(flow.refresh(one), lost);
  Object.assign(ports.journal, { record });
  assert.equal(reasonOf(await flow.refresh(one)), "provider_denies_user");
  assert.equal(reasonOf(await flow.refresh(other)), "refresh_token_ended");
  const page = { nowSeconds: ports.clock.nowSeconds(), limit: 5 };
  assert.deepEqual(await ports.consents.standing({ iss: provider.issuer, sub: "alice" }, page), []);
  assert.equal(provider.questions.length, 1);
});

test("RECHECK-D-9 a user who was disabled in the hour of their session gives no client a token: the provider is asked before a code does", async (t) => {
  const flow = await openRecheck(t, provider);
  await flow.signIn(provider.refreshToken("alice"));
  const token = await flow.start();
  assert.deepEqual(provider.questions, []);
  provider.disabled.add("alice");
  flow.pass(DUE);
  const { answer, code } = await flow.give();
  assert.deepEqual([errorOf(answer), reasonOf(answer)], ["grant_refused", "provider_denies_user"]);
  assert.equal(reasonOf(await flow.refresh(token)), "refresh_token_ended");
  assert.equal(reasonOf(await flow.ask(code)), "code_replayed");
  assert.deepEqual(provider.questions, ["refresh"]);
});

test("RECHECK-D-9 a code gives tokens where the provider cannot be asked or wants the user, since the session of its click ends within the hour", async (t) => {
  const flow = await openRecheck(t, provider, forRecheck(provider, { recheckUnaskedSeconds: 30 }));
  await flow.signIn();
  flow.pass(DUE);
  assert.equal(errorOf((await flow.give()).answer), "none");
  await flow.signIn(provider.refreshToken("alice"));
  flow.pass(DUE);
  provider.lies = { asked: (response) => json(response, 400, '{"error":"login_required"}') };
  const { answer } = await flow.give();
  assert.equal(errorOf(answer), "none");
  assert.equal(reasonOf(await flow.refresh(tokenOf(answer))), "provider_wants_user");
});

test("RECHECK-D-9 a code of a provider that is silent after the grace stays good, and gives tokens when it answers", async (t) => {
  const flow = await openRecheck(t, provider, forRecheck(provider, { recheckGraceSeconds: 10 }));
  await flow.signIn(provider.refreshToken("alice"));
  flow.pass(DUE + 10);
  provider.lies = { asked: (response) => void response.destroy() };
  const { answer, code } = await flow.give();
  assert.equal(reasonOf(answer), "provider_silent");
  provider.lies = {};
  flow.pass(RECHECK_AGAIN_SECONDS);
  assert.equal(errorOf(await flow.ask(code)), "none");
});

test("RECHECK-D-6 a denial after an answer that got lost ends what the user has, and withdraws no consent", async (t) => {
  const flow = await openRecheck(t, provider, forRecheck(provider, { goneEndsConsents: true }));
  await flow.signIn(provider.refreshToken("alice"));
  const token = await flow.start();
  flow.pass(DUE);
  provider.lies = { asked: (response) => void response.destroy() };
  const next = tokenOf(await flow.refresh(token));
  provider.lies = {};
  provider.disabled.add("alice");
  flow.pass(RECHECK_AGAIN_SECONDS);
  assert.equal(reasonOf(await flow.refresh(next)), "provider_denies_user");
  const page = { nowSeconds: flow.ports.clock.nowSeconds(), limit: 5 };
  const origin = { iss: provider.issuer, sub: "alice" };
  assert.equal((await flow.ports.consents.standing(origin, page)).length, 1);
});

const json = (response: ServerResponse, status: number, text: string): void =>
  void response.writeHead(status, { "content-type": "application/json" }).end(text);

const answers: readonly (readonly [how: string, asked: (response: ServerResponse) => void])[] = [
  ["with 500", (response) => json(response, 500, "{}")],
  ["with garbage", (response) => json(response, 200, "garbage")],
  ["with an array", (response) => json(response, 200, "[]")],
  ["with a token type of its own", (response) => json(response, 200, '{"token_type":"N_A"}')],
  [
    "with a refresh token that is a number",
    (response) => json(response, 200, '{"token_type":"Bearer","refresh_token":7}'),
  ],
  [
    "with a redirect",
    (response) => void response.writeHead(302, { location: "https://other.example" }).end(),
  ],
  ["that it does not know this server", (response) => json(response, 401, '{"error":"invalid_client"}')],
  ["with too much", (response) => json(response, 200, `{"a":"${"x".repeat(200_000)}"}`)],
  ["by closing the connection", (response) => void response.destroy()],
  [
    "with an ID token of another user",
    (response) => {
      const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
      const claims = { iss: provider.issuer, aud: "mandate-at-company", sub: "bob" };
      const idToken = `${part({ alg: "ES256" })}.${part(claims)}.AA`;
      json(response, 200, JSON.stringify({ token_type: "Bearer", id_token: idToken }));
    },
  ],
];

for (const [how, asked] of answers) {
  test(`RECHECK-D-3, OIDC-12.2-1 a provider answers ${how}: refresh serves for recheckGraceSeconds, and then is refused until it answers`, async (t) => {
    const flow = await openRecheck(t, provider);
    await flow.signIn(provider.refreshToken("alice"));
    const token = await flow.start();
    provider.lies = { asked };
    flow.pass(DUE);
    const second = tokenOf(await flow.refresh(token));
    flow.pass(1);
    const third = tokenOf(await flow.refresh(second));
    // It is not asked again at once, whatever it answered.
    assert.equal(provider.questions.length, 1);
    flow.pass(RECHECK_GRACE_SECONDS - WAIT_SECONDS - 2);
    const fourth = tokenOf(await flow.refresh(third));
    // By then no question of another request can be under way, whose answer would be waited for.
    flow.pass(WAIT_SECONDS);
    const last = tokenOf(await flow.refresh(fourth));
    flow.pass(1);
    const refused = await flow.refresh(last);
    assert.deepEqual([errorOf(refused), reasonOf(refused)], ["provider_unreachable", "provider_silent"]);
    provider.lies = {};
    flow.pass(RECHECK_AGAIN_SECONDS);
    assert.equal(errorOf(await flow.refresh(last)), "none");
    const told = (await flow.events()).filter(({ type }) => type === "user.rechecked");
    assert.deepEqual(
      told.map(({ outcome }) => outcome),
      ["error", "error", "allow"],
    );
  });
}

for (const [status, error] of [
  [400, "invalid_grant"],
  [401, "invalid_grant"],
  [403, "invalid_grant"],
] as const) {
  test(`RECHECK-D-5 a provider answers ${error} with ${status}: refresh is refused, and all that the user has ends`, async (t) => {
    const flow = await openRecheck(t, provider);
    await flow.signIn(provider.refreshToken("alice"));
    const [one, other] = [await flow.start(), await flow.start()];
    flow.pass(DUE);
    provider.lies = { asked: (response) => json(response, status, JSON.stringify({ error })) };
    assert.equal(reasonOf(await flow.refresh(one)), "provider_denies_user");
    assert.equal(reasonOf(await flow.refresh(other)), "refresh_token_ended");
  });
}

for (const error of ["interaction_required", "login_required", "consent_required"]) {
  test(`RECHECK-D-8 a provider answers ${error}: refresh is refused at once, nothing ends, and it serves after the next sign-in`, async (t) => {
    const flow = await openRecheck(t, provider);
    await flow.signIn(provider.refreshToken("alice"));
    const token = await flow.start();
    flow.pass(DUE);
    provider.lies = { asked: (response) => json(response, 400, JSON.stringify({ error })) };
    const refused = await flow.refresh(token);
    assert.deepEqual([errorOf(refused), reasonOf(refused)], ["grant_refused", "provider_wants_user"]);
    // It is not asked again at once, and what it said stands until then.
    assert.equal(reasonOf(await flow.refresh(token)), "provider_wants_user");
    assert.equal(provider.questions.length, 1);
    await flow.signIn(provider.refreshToken("alice"));
    assert.equal(errorOf(await flow.refresh(token)), "none");
  });
}

test("RECHECK-D-1 a word that lies in the future, of a clock that was ahead, is asked for again", async (t) => {
  const flow = await openRecheck(t, provider);
  await flow.signIn(provider.refreshToken("alice"));
  const token = await flow.start();
  flow.pass(DAY);
  const next = tokenOf(await flow.refresh(token));
  flow.pass(-DAY);
  provider.disabled.add("alice");
  assert.equal(reasonOf(await flow.refresh(next)), "provider_denies_user");
});

test("RECHECK-D-2 of twenty refreshes of a user at once one asks, and all go on", async (t) => {
  provider.refreshing = "rotating";
  const flow = await openRecheck(t, provider);
  await flow.signIn(provider.refreshToken("alice"));
  const tokens = await Promise.all(Array.from({ length: 20 }, () => flow.start()));
  flow.pass(DUE);
  const answers = await Promise.all(tokens.map((token) => flow.refresh(token)));
  assert.deepEqual([...new Set(answers.map(errorOf))], ["none"]);
  assert.equal(provider.questions.length, 1);
  flow.pass(DUE);
  assert.equal(errorOf(await flow.refresh(tokenOf(answers[0] ?? assert.fail()))), "none");
});

for (const gone of [false, true]) {
  test(`RECHECK-D-2, RECHECK-D-3 several clients of a user wake up after the grace at once, at two instances: one asks, and all ${gone ? "are refused" : "go on"} by its answer`, async (t) => {
    const shared = { place: { sqlite: await migratedFile() }, encryptionKey: randomBytes(32) };
    const startMs = Math.floor(Date.now() / 1000) * 1000;
    const open = (log: string) => openRecheck(t, provider, forRecheck(provider), { ...shared, startMs, log });
    const [flow, other] = [await open("a"), await open("b")];
    await flow.signIn(provider.refreshToken("alice"));
    const tokens = await Promise.all(Array.from({ length: 6 }, () => flow.start()));
    flow.pass(12 * 3600 - 60);
    other.pass(12 * 3600 - 60);
    if (gone) provider.disabled.add("alice");
    const answers = await Promise.all(
      tokens.map((token, index) => (index % 2 === 0 ? flow : other).refresh(token)),
    );
    assert.deepEqual([...new Set(answers.map(errorOf))], [gone ? "grant_refused" : "none"]);
    assert.equal(provider.questions.length, 1);
  });
}

test("RECHECK-D-3 a client that comes while the provider does not answer, after the grace, is told when it may be asked again", async (t) => {
  const flow = await openRecheck(t, provider);
  await flow.signIn(provider.refreshToken("alice"));
  const token = await flow.start();
  flow.pass(12 * 3600 - 60);
  provider.lies = { asked: (response) => void response.destroy() };
  const waits = async () => {
    const { error, ...refused } = await flow.refresh(token);
    return [error, "waitSeconds" in refused ? refused.waitSeconds : undefined];
  };
  assert.deepEqual(await waits(), ["provider_unreachable", RECHECK_AGAIN_SECONDS]);
  flow.pass(RECHECK_AGAIN_SECONDS - 7);
  assert.deepEqual(await waits(), ["provider_unreachable", 7]);
  assert.equal(provider.questions.length, 1);
});

test("RECHECK-D-2 a denial of a sign-in ends nothing where the user has signed in again meanwhile", async (t) => {
  const flow = await openRecheck(t, provider);
  await flow.signIn(provider.refreshToken("alice"));
  const token = await flow.start();
  flow.pass(DUE);
  provider.lies = {
    asked: async (response) => {
      await flow.signIn(provider.refreshToken("alice"));
      json(response, 400, '{"error":"invalid_grant"}');
    },
  };
  const next = tokenOf(await flow.refresh(token));
  assert.equal(errorOf(await flow.refresh(next)), "none");
});

test("RECHECK-D-1 a provider whose introspection is asked: its refresh token is shown and never used, and an inactive one is refused", async (t) => {
  const flow = await openRecheck(t, provider, forRecheck(provider, {}, { recheck: "introspection" }));
  await flow.signIn(provider.refreshToken("alice"));
  const token = await flow.start();
  flow.pass(DUE);
  const next = tokenOf(await flow.refresh(token));
  provider.disabled.add("alice");
  flow.pass(DUE);
  assert.equal(reasonOf(await flow.refresh(next)), "provider_denies_user");
  assert.deepEqual(provider.questions, ["introspection", "introspection"]);
});

test("RECHECK-D-4 a provider that is not to be asked is not, and refresh is refused when the sign-in is too old", async (t) => {
  const flow = await openRecheck(t, provider, forRecheck(provider, {}, { recheck: "visit" }));
  await flow.signIn(provider.refreshToken("alice"));
  const token = await flow.start();
  flow.pass(RECHECK_UNASKED_SECONDS);
  assert.equal(reasonOf(await flow.refresh(token)), "sign_in_too_old");
  assert.deepEqual(provider.questions, []);
});

test("RECHECK-D-7 the store has the provider's refresh token encrypted, for this user alone, and no answer has it", async (t) => {
  const flow = await openRecheck(t, provider);
  const secret = provider.refreshToken("alice");
  await flow.signIn(secret);
  const { answer, code: _ } = await flow.give();
  const found = await flow.ports.families.find(flow.ports.hash.sha256(tokenOf(answer)));
  const { sealed = assert.fail(), origin = assert.fail() } = found?.recheck ?? {};
  assert.ok(!JSON.stringify([found, answer, await flow.events()]).includes(secret));
  const { providerSecrets } = flow.ports;
  const from = { issuer: origin.iss, clientId: CLIENT_AT_PROVIDER };
  assert.equal(providerSecrets.open(from, "alice", sealed), secret);
  assert.equal(providerSecrets.open(from, "bob", sealed), undefined);
});

test("RECHECK-D-7 the provider's refresh token goes to no other provider that gets its name, and is not used with another client_id", async (t) => {
  const base = forRecheck(provider);
  const flow = await openRecheck(t, provider, base);
  await flow.signIn(provider.refreshToken("alice"));
  const token = await flow.start();
  const other = await startProvider();
  t.after(() => other.close());
  flow.pass(DUE);
  flow.reload({
    ...base,
    trustedIssuers: { ...base.trustedIssuers, ...other.trusted({ subjects: { prefix: "partner:" } }) },
    signIn: { providers: { company: other.provider(), before: provider.provider() } },
  });
  const next = tokenOf(await flow.refresh(token));
  flow.reload({ ...base, signIn: { providers: { company: provider.provider({ clientId: "another" }) } } });
  const last = tokenOf(await flow.refresh(next));
  assert.deepEqual([other.questions, provider.questions], [[], []]);
  // It is as if the provider had given none.
  flow.pass(RECHECK_UNASKED_SECONDS);
  assert.equal(reasonOf(await flow.refresh(last)), "sign_in_too_old");
});

test("RECHECK-D-7 once the key-encryption key is replaced, the provider's refresh token is encrypted with the new one when it has been asked", async (t) => {
  const [encryptionKey, keyBefore] = [randomBytes(32), randomBytes(32)];
  const flow = await openRecheck(t, provider, forRecheck(provider), { encryptionKey, keyBefore });
  const secret = provider.refreshToken("alice");
  await flow.signIn(secret);
  const token = await flow.start();
  flow.pass(DUE);
  const next = tokenOf(await flow.refresh(token));
  assert.deepEqual(provider.questions, ["refresh"]);
  const sealed = (await flow.ports.families.find(flow.ports.hash.sha256(next)))?.recheck?.sealed;
  const from = { issuer: provider.issuer, clientId: CLIENT_AT_PROVIDER };
  assert.equal(makeProviderSecrets([encryptionKey]).open(from, "alice", sealed ?? ""), secret);
});
