/** The consent page, as a flow, while the operator changes settings between the page and the click. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { recordEnding } from "../../../src/flows/endings.ts";
import { openAccount } from "../../../src/people/flows/account.ts";
import { decideReview, openReview } from "../../../src/people/flows/decide-review.ts";
import type { PeoplePorts } from "../../../src/people/ports.ts";
import type { PendingRequest } from "../../../src/people/records.ts";
import { StoreUnavailable } from "../../../src/ports.ts";
import { challengeOf, NOTES, PRIVATE, verifierOf, WEB_REDIRECT } from "../../support/people.ts";
import { ALICE, forRefresh, openRefresh, withIssuer, withRefresh, withRule } from "../../support/refresh.ts";

const NOTE = { id: "r-1", endpoint: "/authorize/review", source_ip: "192.0.2.1" };
const VISITOR = { browser: "browser", session: "session" };
const VERIFIER = verifierOf();

/** The rule with a limit of this path. */
const limitedTo = (path: string) =>
  forRefresh(({ policies, targets }) => ({
    targets: targets.map((target) => ({ ...target, details: { notebook: NOTEBOOK } })),
    policies: policies.map((rule) => ({ ...rule, details: [{ type: "notebook", path }] })),
  }));
const NOTEBOOK = { governs: ["notes.read"], fields: { path: { is: "string", narrows: "prefix" } } };

const changes = [
  [
    "a scope",
    withRule({ scopes: ["notes.read"] }),
    withRule({ scopes: ["notes.read", "notes.write"] }),
    true,
  ],
  ["refresh tokens", withRule({ refresh: false }), withRule({ refresh: true }), true],
  ["a longer time", withRefresh({ days: 3 }), withRefresh({ days: 30 }), true],
  ["more of an object", limitedTo("/team/a"), limitedTo("/team"), true],
  ["nothing", withRule({}), withRule({}), false],
] as const;
for (const [what, before, after, refused] of changes) {
  test(`PAGE-D-11, REFRESH-D-1 a click gives what its page showed: a reload in between adds ${what}`, async (t) => {
    const { flow, id, click } = await openPage(t, before);
    const first = await click();
    flow.reload(after);
    const outcome = await first();
    assert.equal(outcome.next, refused ? "notice" : "client");
    if (outcome.next === "notice") assert.deepEqual(outcome.notice.onwards, { page: "review", id });
    // The request waits: the page that shows what holds now is decided as ever.
    if (refused) assert.equal((await (await click())()).next, "client");
  });
}

test("RFC9126-7.4-1 a click after a reload that allows nothing of it is refused, and the reason is that of the policy", async (t) => {
  const { flow, click } = await openPage(t, withRule({}));
  const [allow, refuse] = [await click(), await click(false)];
  flow.reload(withRule({ clients: ["another-app"] }));
  const outcome = await allow();
  assert.ok(outcome.next === "client" && outcome.location.includes("error=access_denied"));
  assert.equal(outcome.refused, "no_rule");
  assert.equal((await refuse()).next, "notice", "it is decided");
});

test("PAGE-D-13, RFC6749-10.6-4 a redirect URI that its client has lost since the page was shown gets no code", async (t) => {
  const { flow, click } = await openPage(t, withRule({}));
  const first = await click();
  flow.reload(
    forRefresh(({ clients }) => ({
      clients: {
        ...clients,
        [PRIVATE]: { ...clients[PRIVATE], redirectUris: ["https://app.example/other"] },
      },
    })),
  );
  const outcome = await first();
  assert.ok(outcome.next === "notice");
  assert.equal(outcome.notice.reason, "redirect_uri_differs");
});

const mappings = [
  ["another prefix", { prefix: "staff:" }, false],
  [
    "a table that has another user under the name",
    { table: { alice: "company:bob", bob: "company:alice" } },
    false,
  ],
  ["a table without the user", { table: { bob: "company:alice" } }, false],
  ["a table that says the same", { table: { alice: "company:alice" } }, true],
] as const;
for (const [what, subjects, stands] of mappings) {
  test(`RFC7519-4.1.2-v1, PAGE-D-14 a session of before the mapping became ${what}: ${stands ? "stands" : "is over"}`, async (t) => {
    const { flow, id, click } = await openPage(t, withRule({}));
    const ports: PeoplePorts = { ...flow.ports, authFailures: { note: () => undefined } };
    const decide = await click();
    flow.reload(withIssuer({ subjects }));
    const want = stands ? "page" : "sign_in";
    assert.equal((await openReview(ports, NOTE, id, VISITOR, false)).next, want);
    assert.equal((await openAccount(ports, NOTE, VISITOR.session, () => ({}))).next, want);
    assert.equal((await decide()).next, stands ? "client" : "sign_in");
  });

  test(`RFC7519-4.1.2-v1 a code of before the mapping became ${what}: ${stands ? "gives a token" : "is refused"}`, async (t) => {
    const { flow, click } = await openPage(t, withRule({}));
    const outcome = await (await click())();
    const code = outcome.next === "client" ? new URL(outcome.location).searchParams.get("code") : null;
    flow.reload(withIssuer({ subjects }));
    const form = { grant_type: "authorization_code", code: code ?? "", redirect_uri: WEB_REDIRECT };
    const answer = await flow.ask({ ...form, code_verifier: VERIFIER }, PRIVATE);
    assert.equal(
      answer.error === undefined ? "none" : answer.reason,
      stands ? "none" : "token_issuer_narrowed",
    );
  });
}

for (const allows of [true, false]) {
  test(`PAGE-D-4 the answer of a recorded ${allows ? "consent" : "refusal"} is lost: the same click again has it, for a minute`, async (t) => {
    const { flow, click, lose } = await openPage(t, withRule({}));
    const [first, later] = [await click(allows), await click(allows)];
    lose();
    await assert.rejects(first, StoreUnavailable);
    const [again, twice] = [await first(), await later()];
    assert.ok(again.next === "client" && twice.next === "client");
    assert.match(again.location, allows ? /[?&]code=/ : /error=access_denied/);
    assert.equal(twice.location, again.location);
    const types = (await flow.events()).map(({ type }) => type).slice(-2);
    assert.deepEqual(types.at(-1), allows ? "consent.recorded" : "authorization.denied");
    assert.notEqual(types[0], types[1]);
    const other = await click(!allows);
    flow.pass(59);
    assert.equal((await first()).next, "client");
    assert.equal((await other()).next, "notice");
    flow.pass(1);
    const late = await first();
    assert.ok(late.next === "notice" && late.notice.kind === "request_decided");
  });
}

test("PAGE-D-4 the same click again, after a reload that allows less, has the answer of the first one", async (t) => {
  const { flow, click } = await openPage(t, withRule({}));
  const [decide, other] = [await click(), await click(false)];
  const first = await decide();
  flow.reload(withRule({ clients: ["another-app"] }));
  assert.deepEqual(await decide(), first);
  assert.ok(first.next === "client" && first.location.includes("code="));
  assert.equal((await other()).next, "notice");
});

test("PAGE-D-33, POLICY-D-23 a user who is disabled while their click for a client is on its way gives nothing, and is led to the sign-in", async (t) => {
  const { flow, click, meanwhile } = await openPage(t, withRule({}));
  const decide = await click();
  meanwhile(async () => {
    const ends = { by: "subject", ...ALICE, disabled: true } as const;
    await recordEnding(flow.ports, ends, { reason: "by_operator" });
  });
  assert.equal((await decide()).next, "sign_in");
  assert.deepEqual(await flow.ports.consents.list(ALICE), []);
});

/** A request of the client that waits for its user, and a page about it that can be opened and clicked. */
async function openPage(t: TestContext, before: object) {
  const flow = await openRefresh(t, before);
  let lost = false;
  let happens: (() => Promise<void>) | undefined;
  const journal: PeoplePorts["journal"] = {
    /** The store writes, and its answer is lost once. */
    async record(...entry) {
      const due = happens;
      happens = undefined;
      await due?.();
      const recorded = await flow.ports.journal.record(...entry);
      if (lost) {
        lost = false;
        throw new StoreUnavailable("lost");
      }
      return recorded;
    },
  };
  const ports: PeoplePorts = { ...flow.ports, journal, authFailures: { note: () => undefined } };
  const nowSeconds = ports.clock.nowSeconds();
  const expiresAtSeconds = nowSeconds + 600;
  const session = {
    origin: ALICE,
    sub: "company:alice",
    provider: "company",
    startedAtSeconds: nowSeconds,
  };
  const asked: PendingRequest = {
    id: "request",
    expiresAtSeconds,
    clientId: PRIVATE,
    startedAtSeconds: nowSeconds,
    redirectUri: WEB_REDIRECT,
    redirectUriSent: true,
    challenge: challengeOf(VERIFIER),
    target: NOTES,
    wishes: { prompt: [], acrValues: [] },
    renewals: 0,
  };
  const row = { kind: "session", key: VISITOR.session, version: 1, body: session, expiresAtSeconds } as const;
  await ports.shortLived.add(row);
  const id = ports.waiting.seal("request", VISITOR.browser, asked);
  const click = async (allows = true) => {
    const page = await openReview(ports, NOTE, id, VISITOR, false);
    assert.ok(page.next === "page");
    return async () => {
      const { formToken } = page;
      const ticked = { all: true, scopes: [], details: ["0"], agents: [] };
      return decideReview(ports, NOTE, id, VISITOR, { ...ticked, allows, confirmed: true, formToken });
    };
  };
  const lose = (): void => {
    lost = true;
  };
  /** Before the next entry is written. */
  const meanwhile = (what: () => Promise<void>): void => {
    happens = what;
  };
  return { flow, id, click, lose, meanwhile };
}
