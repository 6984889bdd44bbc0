/** What a provider says of a user's groups when it is asked about them: who left a group is refused, and nothing else counts. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { standing } from "../../../src/flows/standing.ts";
import { ok } from "../../../src/result.ts";
import { parseJwkSet, selectKey } from "../../../src/spec/rfc7517.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { forRecheck, openRecheck, type RecheckFlow } from "../../support/recheck.ts";
import { claimsIn, tokenOf } from "../../support/refresh.ts";
import { stop } from "../../support/stop.ts";

let provider: TestProvider;
before(async () => {
  provider = await startProvider();
});
after(() => stop(provider));
afterEach(() => {
  provider.questions.length = 0;
  provider.lies = {};
});

type Source = "sign_in" | "userinfo";
const reasonOf = (answer: Awaited<ReturnType<RecheckFlow["ask"]>>): string =>
  answer.error === undefined ? "none" : answer.reason;

/** A flow in which the provider has said these groups at a sign-in; `say` changes what it says from now on. */
async function openGroups(t: Parameters<typeof openRecheck>[0], source: Source, lies: object = {}) {
  let groups = ["Engineering"];
  const say = (...said: string[]): void => {
    groups = said;
  };
  // Its metadata are read at once.
  provider.lies = { userInfo: (sub) => ({ sub, groups }), ...lies };
  const base = forRecheck(provider);
  const claims = { "/groups": ["Engineering"] };
  const flow = await openRecheck(t, provider, {
    ...base,
    trustedIssuers: provider.trusted({ claimsFrom: [source], claimsMaxSeconds: 900 }),
    policies: base.policies.map((rule) => ({ ...rule, subjects: { ...rule.subjects, claims } })),
  });
  const { ports } = flow;
  const keys = parseJwkSet(JSON.stringify({ keys: [{ ...provider.key().jwk, kid: provider.key().kid }] }));
  assert.ok(keys.ok);
  const key: typeof ports.issuers.key = async (_, header) => {
    const found = selectKey(keys.value, header);
    return found.ok ? ok(found.value) : assert.fail();
  };
  Object.assign(ports, { issuers: { key } });
  provider.lies = {
    idTokens: true,
    claims: (said) => ({ ...said, groups, iat: ports.clock.nowSeconds() }),
    ...provider.lies,
  };
  await flow.signIn(provider.refreshToken("alice"));
  const origin = { iss: provider.issuer, sub: "alice" };
  const atSeconds = ports.clock.nowSeconds();
  const word = { origin, atSeconds, values: { "/groups": groups }, expiresAtSeconds: atSeconds + 9999 };
  const event = { type: "user.signed_in", outcome: "allow", reason: "signed_in" } as const;
  assert.ok((await ports.journal.record({ event, claims: word })).ok);
  return { ...flow, say };
}

for (const source of ["sign_in", "userinfo"] as const) {
  test(`PCL-D-8, PCL-D-9 by ${source}: once half of its time is over the provider is heard anew, and who left is refused`, async (t) => {
    const flow = await openGroups(t, source);
    const first = await flow.start();
    flow.pass(300);
    const second = tokenOf(await flow.refresh(first));
    assert.equal(provider.questions.length, 0);
    flow.pass(200);
    const answer = await flow.refresh(second);
    assert.equal(reasonOf(answer), "none");
    assert.equal(provider.questions.length, 1);
    flow.say("Sales");
    flow.pass(460);
    assert.equal(reasonOf(await flow.refresh(tokenOf(answer))), "claims_differ");
    assert.ok((await flow.families())[0]?.ended);
    // A click of who is in the group again.
    flow.say("Engineering");
    flow.pass(460);
    const again = await flow.give();
    assert.equal(reasonOf(again.answer), "none");
  });
}

test("PCL-D-9 what is out is refused by look-up as soon as the provider has said so, and ends on record", async (t) => {
  const flow = await openGroups(t, "userinfo");
  const { answer } = await flow.give();
  const { jti } = claimsIn(answer);
  const { ports } = flow;
  const look = () => standing(ports, String(jti), ports.clock.nowSeconds());
  assert.ok((await look()).ok);
  const origin = { iss: provider.issuer, sub: "alice" };
  const atSeconds = ports.clock.nowSeconds() + 1;
  const word = { origin, atSeconds, values: { "/groups": [] }, expiresAtSeconds: atSeconds + 9999 };
  const event = { type: "user.rechecked", outcome: "allow", reason: "provider_confirmed" } as const;
  await ports.journal.record({ event, claims: word });
  assert.deepEqual(await look(), { ok: false, error: "token_claims_changed" });
});

const untimed = (said: object) => ({ ...said, groups: ["Engineering"], iat: "9999999999" });
const silent: readonly (readonly [string, Source, object])[] = [
  ["no ID token", "sign_in", { idTokens: undefined }],
  ["an ID token with another signature", "sign_in", { foreignKey: true }],
  ["an ID token whose time is a text", "sign_in", { claims: untimed }],
  ["userinfo of another user", "userinfo", { userInfo: () => ({ sub: "bob", groups: ["Engineering"] }) }],
  ["no userinfo endpoint", "userinfo", { userInfo: undefined }],
];
for (const [what, source, lies] of silent) {
  test(`PCL-D-8 a recheck with ${what} says nothing of groups: the old ones count for their time, then none`, async (t) => {
    const flow = await openGroups(t, source, lies);
    const first = await flow.start();
    flow.pass(500);
    const answer = await flow.refresh(first);
    assert.equal(reasonOf(answer), "none");
    assert.equal(provider.questions.length, 1);
    flow.pass(401);
    assert.equal(reasonOf(await flow.refresh(tokenOf(answer))), "claims_too_old");
  });
}
