/** Endings by every selector: what is shown beforehand, what ends, and what may be issued again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type EndingEvent, endTokens, previewEnding } from "../../src/flows/endings.ts";
import { ACCESS_TOKEN_SECONDS_MAX, ENDING_COUNT_MS, ENDING_REACH_MS } from "../../src/limits/tokens.ts";
import type { EndingSelector } from "../../src/policy/endings.ts";
import {
  booking,
  type Issued,
  KINDS,
  kiosk,
  OTHER_DOMAIN,
  openOffice,
  PARTNER,
  planner,
} from "../support/office.ts";
import { claimsOf, IDP, ISSUER } from "../support/world.ts";

const BY: EndingEvent = { reason: "by_operator", policy: { digest: "d" }, detail: { operator: "o" } };
const REACH_SECONDS = ENDING_REACH_MS / 1000;
const jtiOf = (token: string): string => String(claimsOf(token).jti);

type Office = Awaited<ReturnType<typeof openOffice>>;

/** A token of each kind, and two below it. */
async function issueAll({ token, onward }: Office): Promise<ReadonlyMap<Issued, readonly string[]>> {
  const issued = new Map<Issued, readonly string[]>();
  for (const kind of KINDS) {
    const first = await token(kind);
    const second = await onward(first);
    issued.set(kind, [first, second, await onward(second)]);
  }
  return issued;
}

async function jtisOf({ ports }: Office, selector: EndingSelector): Promise<readonly string[]> {
  const { count, tokens } = await previewEnding(ports, selector, { limit: 1_000 });
  assert.equal(count, tokens.length);
  return tokens.map(({ jti }) => jti);
}

type Row = {
  what: string;
  selector: (office: Office) => EndingSelector;
  /** The families that end: all of each, unless `from` says at which hop it begins. */
  ends: readonly Issued[];
  from?: number;
  /** Kinds of which no token is issued within the reach of the ending. */
  barred: readonly Issued[];
};

const ROWS: readonly Row[] = [
  {
    what: "the client",
    selector: () => ({ by: "client", clientId: "portal" }),
    ends: ["portal"],
    barred: ["portal"],
  },
  {
    what: "an actor in the first hop",
    selector: () => ({ by: "actor", spiffeId: planner }),
    ends: ["asked"],
    barred: ["asked"],
  },
  {
    what: "a workload that was given to its client",
    selector: () => ({ by: "actor", spiffeId: kiosk }),
    ends: ["kiosk", "invited"],
    barred: ["kiosk", "invited"],
  },
  {
    what: "an actor in a later hop",
    selector: () => ({ by: "actor", spiffeId: booking }),
    ends: KINDS,
    from: 1,
    barred: [],
  },
  {
    what: "a trust domain",
    selector: () => ({ by: "trust_domain", name: OTHER_DOMAIN }),
    ends: ["asked", "crew"],
    barred: ["asked", "crew"],
  },
  {
    what: "a subject",
    selector: () => ({ by: "subject", iss: PARTNER, sub: "u-77" }),
    ends: ["guest"],
    barred: ["guest"],
  },
  {
    what: "a client as the subject of its own tokens",
    selector: () => ({ by: "subject", iss: ISSUER, sub: "portal" }),
    ends: ["portal"],
    barred: ["portal"],
  },
  {
    what: "an issuer",
    selector: () => ({ by: "issuer", issuer: IDP }),
    ends: ["asked", "invited"],
    barred: ["asked", "invited"],
  },
  {
    what: "a consent",
    selector: ({ consent }) => ({ by: "consent", id: consent.id }),
    ends: ["asked"],
    barred: ["asked"],
  },
  { what: "a rule", selector: () => ({ by: "rule", id: "guests" }), ends: ["guest"], barred: ["guest"] },
  {
    what: "everything",
    selector: () => ({ by: "everything" }),
    ends: KINDS,
    barred: KINDS,
  },
  {
    what: "something unknown",
    selector: () => ({ by: "client", clientId: "unknown" }),
    ends: [],
    barred: [],
  },
];

for (const { what, selector: select, ends, from = 0, barred } of ROWS) {
  test(`POLICY-D-2 an ending by ${what} ends what it showed beforehand, and no more than its cut-off says`, async (t) => {
    const office = await openOffice(t);
    const { ports, tried, issued: tryIssue, pass, events } = office;
    const issued = await issueAll(office);
    const selector = select(office);
    const all = [...issued].flatMap(([kind, tokens]) =>
      tokens.map((token, hop) => ({ token, ended: ends.includes(kind) && hop >= from })),
    );
    const want = all.filter(({ ended }) => ended).map(({ token }) => jtiOf(token));
    assert.deepEqual((await jtisOf(office, selector)).toSorted(), want.toSorted());

    const nowMs = ports.clock.nowMs();
    const { eventId, cutOffMs, count, acceptedUntilSeconds } = await endTokens(ports, selector, BY);
    assert.deepEqual([cutOffMs, count], [nowMs + ENDING_REACH_MS, want.length]);
    const expiries = all.filter(({ ended }) => ended).map(({ token }) => Number(claimsOf(token).exp));
    assert.equal(acceptedUntilSeconds, want.length === 0 ? undefined : Math.max(...expiries));
    const event = (await events()).find(({ id }) => id === eventId);
    assert.deepEqual([event?.type, event?.outcome, event?.reason], ["token.revoked", "allow", "by_operator"]);
    const held = selector.by === "subject" ? { families: 0, sessions: 0 } : undefined;
    assert.deepEqual(event?.detail, {
      operator: "o",
      ...held,
      ends: { ...selector },
      cut_off_ms: cutOffMs,
      accepted_until_ms: nowMs + ENDING_REACH_MS + ACCESS_TOKEN_SECONDS_MAX * 1000,
    });
    assert.deepEqual(await jtisOf(office, selector), []);

    // Nothing ends by what is tried below, so that each is still as it was.
    const isBarred = from > 0 || what === "everything";
    for (const { token, ended } of all) {
      const refused = ended ? "subject_token_revoked" : isBarred ? "ended" : "good";
      assert.equal(await tried(token), refused);
    }
    for (const kind of KINDS) {
      assert.equal(await tryIssue(kind), barred.includes(kind) ? "ended" : "good", kind);
    }
    pass(REACH_SECONDS + 1);
    for (const kind of KINDS) assert.equal(await tryIssue(kind), "good", kind);
    for (const { token, ended } of all) {
      assert.equal(await tried(token), ended ? "subject_token_revoked" : "good");
    }
  });
}

test("AUDIT-D-5 an ending by token ends it and what is below it for good, and nothing beside it", async (t) => {
  const office = await openOffice(t);
  const { ports, tried, onward, token, pass } = office;
  const first = await token("portal");
  const second = await onward(first);
  const tokens = [first, second, await onward(second), await onward(first), await token("portal")];
  const selector = { by: "token", jti: jtiOf(second) } as const;
  const below = tokens.slice(1, 3).map(jtiOf);
  assert.deepEqual((await jtisOf(office, selector)).toSorted(), below.toSorted());
  const { cutOffMs, count } = await endTokens(ports, selector, BY);
  assert.deepEqual([cutOffMs, count], [undefined, 2]);
  const ended = "subject_token_revoked";
  assert.deepEqual(await Promise.all(tokens.map(tried)), ["good", ended, ended, "good", "good"]);
  pass(1);
  assert.equal((await endTokens(ports, selector, BY)).count, 0);
});

test("AUDIT-D-5 an ending of an actor token ends what was issued to it, and what is below that", async (t) => {
  const office = await openOffice(t);
  const { ports, tried, onward, token, byActorToken } = office;
  const actor = await token("kiosk");
  const first = await byActorToken(actor);
  const tokens = [actor, first, await onward(first), await byActorToken(await token("kiosk"))];
  const selector = { by: "token", jti: jtiOf(actor) } as const;
  assert.deepEqual((await jtisOf(office, selector)).toSorted(), tokens.slice(0, 3).map(jtiOf).toSorted());
  assert.equal((await endTokens(ports, selector, BY)).count, 3);
  const ended = "subject_token_revoked";
  assert.deepEqual(await Promise.all(tokens.map(tried)), [ended, ended, ended, "good"]);
});

test("POLICY-D-3 an ending by subject, issuer or everything refuses foreign tokens of before, and accepts later ones", async (t) => {
  const selectors: readonly EndingSelector[] = [
    { by: "subject", iss: IDP, sub: "u-1" },
    { by: "issuer", issuer: IDP },
    { by: "everything" },
  ];
  for (const selector of selectors) {
    const { ports, user, triedForeign, pass } = await openOffice(t);
    const before = await user();
    const undated = await user({ iat: undefined });
    assert.equal(await triedForeign(before), "good");
    assert.equal(await triedForeign(undated), "good");
    await endTokens(ports, selector, BY);
    pass(REACH_SECONDS);
    assert.equal(await triedForeign(await user()), "ended");
    pass(1);
    assert.equal(await triedForeign(before), "ended");
    // It does not tell when it was issued.
    assert.equal(await triedForeign(undated), "ended");
    assert.equal(await triedForeign(await user()), "good");
  }
});

test("POLICY-D-3 an ending of an actor leaves it free to exchange older subject tokens again", async (t) => {
  const { ports, user, triedForeign, pass } = await openOffice(t);
  const before = await user();
  await endTokens(ports, { by: "actor", spiffeId: kiosk }, BY);
  assert.equal(await triedForeign(before), "ended");
  pass(REACH_SECONDS + 1);
  assert.equal(await triedForeign(before), "good");
});

test("everything up to a time ends what was issued until then", async (t) => {
  const { ports, token, tried, pass } = await openOffice(t);
  const first = await token("portal");
  const upToMs = ports.clock.nowMs();
  pass(1);
  const second = await token("portal");
  const { count, cutOffMs } = await endTokens(ports, { by: "everything", upToMs }, BY);
  assert.deepEqual([count, cutOffMs], [1, upToMs]);
  assert.deepEqual([await tried(first), await tried(second)], ["subject_token_revoked", "good"]);
});

test("the list of what would end comes page by page, and leaves out what has ended or expired already", async (t) => {
  const office = await openOffice(t);
  const { ports, token, pass } = office;
  const expired = await token("portal");
  pass(299);
  const tokens = await Promise.all(Array.from({ length: 300 }, () => token("portal")));
  pass(1);
  const [gone = "", ...living] = tokens.map(jtiOf);
  await endTokens(ports, { by: "token", jti: gone }, BY);
  const selector = { by: "client", clientId: "portal" } as const;
  const listed: string[] = [];
  for (let afterJti = "", left = living.length; left > 0; ) {
    const page = await previewEnding(ports, selector, { afterJti, limit: 120 });
    assert.equal(page.count, left);
    assert.equal(page.tokens.length, Math.min(left, 120));
    listed.push(...page.tokens.map(({ jti }) => jti));
    left -= page.tokens.length;
    afterJti = listed.at(-1) ?? "";
  }
  assert.ok(!listed.includes(jtiOf(expired)));
  assert.deepEqual(listed, living.toSorted());
  assert.equal((await endTokens(ports, selector, BY)).count, living.length);
});

test("an ending whose tokens take too long to count says that there may be more, and ends all of them", async (t) => {
  const { ports, token, tried } = await openOffice(t);
  const tokens = await Promise.all(Array.from({ length: 3 }, () => token("portal")));
  const rest = jtiOf(tokens[0] ?? "");
  let monotonicMs = 0;
  const slow = {
    ...ports,
    clock: { ...ports.clock, monotonicMs: () => monotonicMs },
    endings: {
      ...ports.endings,
      // A stretch that takes long, and is not the last.
      async next(filter: Parameters<typeof ports.endings.next>[0]) {
        monotonicMs += ENDING_COUNT_MS;
        return { ...(await ports.endings.next(filter)), place: { expiresAtSeconds: 0, jti: rest } };
      },
    },
  };
  const selector = { by: "client", clientId: "portal" } as const;
  const page = await previewEnding(slow, selector, { limit: 2 });
  assert.deepEqual([page.count, page.tokens.length, page.more], [3, 2, true]);
  const { count, more } = await endTokens(slow, selector, BY);
  assert.deepEqual([count, more], [3, true]);
  let looks = 0;
  const never = {
    ...slow,
    endings: {
      ...slow.endings,
      async next(filter: Parameters<typeof ports.endings.next>[0]) {
        assert.ok(looks++ < 9, "the count of what no token carries has no end");
        return slow.endings.next(filter);
      },
    },
  };
  const none = await endTokens(never, { by: "client", clientId: "of no token" }, BY);
  assert.deepEqual([none.count, none.more], [0, true]);
  for (const one of tokens) assert.equal(await tried(one), "subject_token_revoked");
});
