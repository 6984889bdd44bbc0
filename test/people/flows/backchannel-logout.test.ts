/** The provider says that a user has signed out there: what ends, and which tokens are refused. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type Answer, encodeForm } from "../../../scripts/http-client.ts";
import { exchange, forAskingAgents, TRIPS } from "../../support/asking-agents.ts";
import {
  AS_WEB,
  Browser,
  files,
  forPeople,
  locationOf,
  redeem,
  request,
  verifierOf,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { EXCHANGE, ISSUER, JWT, type Service } from "../../support/world.ts";

let provider: TestProvider;
let other: TestProvider;
let service: Service;
before(async () => {
  [provider, other] = await Promise.all([startProvider(), startProvider()]);
  const base = forPeople(provider);
  service = await makeService(
    {
      ...base,
      policies: base.policies.map((rule) => ({ ...rule, refresh: true })),
      limits: { ...base.limits, failuresPerMinuteBySource: 100_000 },
    },
    { files: files(provider) },
  );
});
after(() => stop(service, provider, other));
afterEach(() => {
  provider.lies = {};
});

const send = (logoutToken: string, path = "/backchannel-logout/company"): Promise<Answer> =>
  service.get(path, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: encodeForm({ logout_token: logoutToken }),
  });

/** A user who signed in in a session `sid` of the provider, and gave refresh tokens to a client in it. */
async function userWith(user: string, sid?: string, authTime?: number) {
  provider.lies = {
    claims: (claims) => ({ ...claims, sid, ...(authTime === undefined ? {} : { auth_time: authTime }) }),
  };
  const browser = new Browser(service, provider);
  const verifier = verifierOf();
  const code = await browser.codeFor(request(verifier, { scope: "notes.read offline_access" }), user);
  const given = await redeem(service, code, verifier);
  assert.equal(given.status, 200, given.text);
  provider.lies = {};
  const token = String(given.body.refresh_token);
  return {
    signedIn: async () => (await browser.get("/account")).status === 200,
    refresh: async () =>
      (await service.token({ grant_type: "refresh_token", refresh_token: token }, AS_WEB)).body.error ??
      "none",
  };
}

test("OIDCB-2.5-1, OIDCB-2.7-1, OIDCB-2.8-1, OIDCB-2.8-3 a logout of a subject ends their sessions and refresh tokens at once, and no other user's", async () => {
  const [alice, bob] = [await userWith("alice"), await userWith("bob", "of-bob")];
  const answer = await send(await provider.logoutToken({ sub: "alice" }));
  assert.deepEqual([answer.status, answer.text, answer.headers["cache-control"]], [200, "", "no-store"]);
  assert.deepEqual([await alice.signedIn(), await alice.refresh()], [false, "invalid_grant"]);
  assert.deepEqual([await bob.signedIn(), await bob.refresh()], [true, "none"]);
  const event = (await service.events()).findLast(({ type }) => type === "user.signed_out");
  const { ends } = (event?.detail ?? {}) as { ends?: { sub?: string } };
  const { sub } = (event?.subject ?? {}) as { sub?: string };
  assert.deepEqual([event?.reason, sub, ends?.sub], ["by_provider", "alice", "alice"]);
});

test("RECHECK-D-4, REFRESH-D-2 the page tells how often a user has to sign in here where their provider cannot be asked, and no other user", async () => {
  const shown = async (refreshing: "none" | "same"): Promise<boolean> => {
    provider.refreshing = refreshing;
    const asked = request(verifierOf(), { scope: "notes.read offline_access" });
    const page = await new Browser(service, provider).review(asked, "hana");
    assert.match(page.text, /go on without asking you again for 30 days/);
    return page.text.includes("and you sign in here every 24 hours");
  };
  assert.deepEqual([await shown("none"), await shown("same")], [true, false]);
  provider.refreshing = "none";
});

test("OIDCB-2.6-4, OIDCB-D-2 a logout with a sid ends what was given in that session, and no other of the user", async () => {
  const [desk, phone] = [await userWith("carol", "desk"), await userWith("carol", "phone")];
  assert.equal((await send(await provider.logoutToken({ sub: "carol", sid: "desk" }))).status, 200);
  assert.deepEqual([await desk.signedIn(), await desk.refresh()], [false, "invalid_grant"]);
  assert.deepEqual([await phone.signedIn(), await phone.refresh()], [true, "none"]);
  assert.equal((await send(await provider.logoutToken({ sid: "phone" }))).status, 200);
  assert.deepEqual([await phone.signedIn(), await phone.refresh()], [false, "invalid_grant"]);
});

test("OIDCB-2.6-4, OIDCB-2.1-2 a logout with a sid ends what agents exchanged of that session's tokens, at an issuer that sends no events", async (t) => {
  const base = forAskingAgents(provider);
  const policies = base.policies.map((rule) =>
    rule.id === "agents-ask"
      ? { ...rule, askUser: false, consent: "implied", acknowledge: "subjects-not-asked" }
      : rule,
  );
  const agents = await makeService({ ...base, policies }, { files: files(provider) });
  t.after(() => agents.stop());
  const tokenOf = (sid: string) => provider.userToken("carol", ISSUER, { sid, scope: TRIPS.join(" ") });
  const [desk, phone] = [await tokenOf("desk"), await tokenOf("phone")];
  const given = async (token: string) =>
    String((await exchange(agents, provider, { token })).body.access_token ?? "nothing");
  const onward = async (own: string) =>
    (await exchange(agents, provider, { own, path: "agents/booking", target: "https://api.example" })).status;
  const [ofDesk, ofPhone] = [await given(desk), await given(phone)];
  assert.deepEqual([await onward(ofDesk), await onward(ofPhone)], [200, 200]);
  const logoutToken = await provider.logoutToken({ sub: "carol", sid: "desk" });
  const answer = await agents.get("/backchannel-logout/company", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: encodeForm({ logout_token: logoutToken }),
  });
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual([await onward(ofDesk), await onward(ofPhone)], [400, 200]);
  assert.deepEqual([await given(desk), (await given(phone)) === "nothing"], ["nothing", false]);
});

test("OIDCB-D-1 a logout token is accepted with its type, with that of a JWT, and without one", async () => {
  for (const typ of ["logout+jwt", "JWT", undefined])
    assert.equal((await send(await provider.logoutToken({ sid: "unknown" }, { typ }))).status, 200, `${typ}`);
});

test("OIDCB-D-2 a logout of a session that is not known here is accepted", async () => {
  assert.equal((await send(await provider.logoutToken({ sid: "unknown" }))).status, 200);
});

test("OIDCB-2.7-1, RECHECK-D-1 a user who signs in again after a logout has what they give then, though their provider asked them for nothing", async () => {
  await userWith("gina");
  const now = Math.floor(Date.now() / 1000);
  assert.equal((await send(await provider.logoutToken({ sub: "gina", iat: now - 100 }))).status, 200);
  const again = await userWith("gina", undefined, now - 3600);
  assert.deepEqual([await again.signedIn(), await again.refresh()], [true, "none"]);
});

test("OIDCB-2.6-7, OIDCB-2.4-1 a logout token that was used before is refused, and ends nothing again", async () => {
  const token = await provider.logoutToken({ sub: "dora" });
  assert.equal((await send(token)).status, 200);
  const again = await send(token);
  assert.equal(again.status, 400);
  const ends = (await service.events()).filter(
    ({ type, subject }) =>
      type === "user.signed_out" && (subject as { sub?: string } | undefined)?.sub === "dora",
  );
  assert.equal(ends.length, 1);
});

const now = Math.floor(Date.now() / 1000);
const EVENT = "http://schemas.openid.net/event/backchannel-logout";
const refused: readonly (readonly [what: string, claims: object, header?: object])[] = [
  ["OIDCB-2.6-3 of another issuer", { iss: "https://other.example" }],
  ["OIDCB-2.6-3 for another client", { aud: "another" }],
  ["OIDCB-2.6-3 for us and another client", { aud: ["mandate-at-company", "another"] }],
  ["OIDCB-2.4-1, OIDCB-2.6-3 without an audience", { aud: undefined }],
  ["OIDCB-2.6-3 that has expired", { iat: now - 200, exp: now - 100 }],
  ["OIDCB-2.4-1, OIDCB-2.6-3 without exp", { exp: undefined }],
  ["OIDCB-2.4-1, OIDCB-2.6-3 without iat", { iat: undefined }],
  ["OIDCB-2.6-3 of an hour ago", { iat: now - 3600 }],
  ["OIDCB-2.6-3 of the future", { iat: now + 600, exp: now + 900 }],
  ["OIDCB-2.4-1, OIDCB-2.6-4 without a subject or a session", { sub: undefined }],
  ["OIDCB-2.6-4 whose sid is a number", { sid: 7 }],
  ["OIDCB-2.6-4 whose sub is a list", { sub: ["erin"] }],
  ["OIDCB-2.6-4 whose sub is a list beside a sid", { sub: ["erin"], sid: "of-erin" }],
  ["OIDCB-2.6-4 whose sub is empty beside a sid", { sub: "", sid: "of-erin" }],
  ["OIDCB-2.4-1, OIDCB-2.6-5 without events", { events: undefined }],
  ["OIDCB-2.4-1, OIDCB-2.6-5 with another event", { events: { "urn:other": {} } }],
  ["OIDCB-2.6-5 whose event is true", { events: { [EVENT]: true } }],
  ["OIDCB-2.6-5 whose events are a list", { events: [EVENT] }],
  ["OIDCB-2.6-6 with a nonce", { nonce: "n" }],
  ["CONF-D-7 of one who acts for the user", { act: { sub: "support" } }],
  ["OIDCB-2.4-1 without a jti", { jti: undefined }],
  ["OIDCB-D-1 typed as an access token", {}, { typ: "at+jwt" }],
  ["OIDCB-D-1 typed as a security event", {}, { typ: "secevent+jwt" }],
  ["OIDCB-2.6-1 with a key that the provider does not publish", {}, { kid: "unknown" }],
];
for (const [index, [what, claims, header]] of refused.entries()) {
  test(`${what}: the logout token is refused, and nothing ends`, async () => {
    // One for each, because a user has a limited number of refresh tokens.
    const user = `erin-${index}`;
    const erin = await userWith(user, "of-erin");
    const answer = await send(await provider.logoutToken({ sub: user, ...claims }, header));
    assert.deepEqual(
      [answer.status, answer.body, answer.headers["cache-control"]],
      [400, { error: "invalid_request", error_description: "the logout token is not accepted" }, "no-store"],
    );
    assert.deepEqual([await erin.signedIn(), await erin.refresh()], [true, "none"]);
  });
}

test("OIDCB-2.6-2, OIDCB-2.8-2 a token that is forged, unsigned, of a symmetric key, garbage, oversized, an ID token or a token of the user is refused", async () => {
  const erin = await userWith("erin");
  const good = await provider.logoutToken({ sub: "erin" });
  const [, claims = ""] = good.split(".");
  const header = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  provider.lies = { foreignKey: true };
  const forged = await provider.logoutToken({ sub: "erin" });
  provider.lies = {};
  const tokens = [
    forged,
    `${header({ alg: "none" })}.${claims}.`,
    `${header({ alg: "HS256", typ: "logout+jwt" })}.${claims}.AAAA`,
    `${good.slice(0, -4)}AAAA`,
    "garbage",
    "",
    `${header({ alg: "ES256" })}.${"A".repeat(40_000)}.AA`,
    await provider.userToken("erin", "mandate-at-company", { nonce: "n", auth_time: now }),
    await provider.userToken("erin", "mandate-at-company"),
  ];
  for (const token of tokens) {
    const { status, body } = await send(token);
    assert.deepEqual([status, body.error], [400, "invalid_request"], token.slice(0, 60));
  }
  const joined = await service.get("/backchannel-logout/company", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: `logout_token=${good}=more`,
  });
  assert.equal(joined.status, 400);
  const twice = await service.get("/backchannel-logout/company", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: `logout_token=${good}&logout_token=${good}`,
  });
  const inJson = await service.get("/backchannel-logout/company", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ logout_token: good }),
  });
  assert.deepEqual([twice.status, inJson.status], [400, 400]);
  assert.deepEqual([await erin.signedIn(), await erin.refresh()], [true, "none"]);
  assert.equal((await send(good, "/backchannel-logout/another")).status, 404);
  assert.equal((await send(await other.logoutToken({ sub: "erin" }))).status, 400);
  assert.deepEqual([await erin.signedIn(), await erin.refresh()], [true, "none"]);
});

test("OIDC-3.1.3.7-11, OIDCB-2.6-6 a logout token in place of the ID token is refused at sign-in, whatever its type", async () => {
  for (const typ of ["logout+jwt", "JWT"]) {
    const token = await provider.logoutToken({ sub: "frank" }, { typ });
    provider.lies = {
      answer: () => ({ status: 200, body: { access_token: "a", token_type: "Bearer", id_token: token } }),
    };
    const browser = new Browser(service, provider);
    const first = await browser.follow(await browser.get("/account"));
    const toProvider = first.status === 303 ? locationOf(first) : assert.fail(first.text);
    const back = await browser.get(provider.signIn(toProvider, "frank"));
    assert.notEqual(back.status, 303, typ);
    const event = (await service.events()).findLast(({ type }) => type === "user.signin_failed");
    assert.equal(event?.reason, typ === "JWT" ? "untyped_event" : "jwt_type_refused");
  }
});

test("RFC8725-3.12-v1 a logout token is refused as a subject token, whatever its type and audience", async (t) => {
  const service = await makeService(forAskingAgents(provider), { files: files(provider) });
  t.after(() => service.stop());
  const svid = await service.svid("agents/planner");
  for (const typ of ["logout+jwt", "JWT"]) {
    const token = await provider.logoutToken({ sub: "frank", aud: ISSUER }, { typ });
    const answer = await service.token({
      grant_type: EXCHANGE,
      ...service.as(svid),
      subject_token: token,
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      actor_token: svid,
      actor_token_type: JWT,
      audience: "booking-agent",
    });
    assert.equal(answer.status, 400, answer.text);
    const event = (await service.events()).findLast(({ type }) => type === "token_exchange.denied");
    assert.match(String(event?.reason), /^subject_(untyped_event|jwt_type_refused)$/);
  }
});
