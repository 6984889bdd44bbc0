/** What ends when a user's sign-ins end: sessions, links at which they are asked, what they gave. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { endTokens, recordEnding } from "../../../src/flows/endings.ts";
import { ENDING_REACH_MS } from "../../../src/limits/tokens.ts";
import { askUser } from "../../../src/people/flows/ask-user.ts";
import { openAsked } from "../../../src/people/flows/asked.ts";
import { buildSession, findSession } from "../../../src/people/flows/session.ts";
import type { Session } from "../../../src/people/records.ts";
import { type EndingSelector, grantKeys } from "../../../src/policy/endings.ts";
import { defined } from "../../../src/result.ts";
import { ALICE, LOGIN, openRefresh, type RefreshFlow } from "../../support/refresh.ts";

const SUBJECT: EndingSelector = { by: "subject", ...ALICE };
const end = ({ ports }: RefreshFlow, selector: EndingSelector) =>
  recordEnding(ports, selector, { reason: "by_operator" });

/** A session of alice that begins now, by its key. */
async function openSession({ ports }: RefreshFlow, extra: Partial<Session> = {}): Promise<string> {
  const startedAtSeconds = ports.clock.nowSeconds();
  const session = { origin: ALICE, sub: "company:alice", provider: "company", startedAtSeconds, ...extra };
  const { key, rows } = buildSession(ports, session, undefined);
  for (const row of rows) if ("add" in row) await ports.shortLived.add(row.add);
  return key;
}

test("PAGE-D-14 a session that began before the cut-off of its subject has ended, and one that began after it lives", async (t) => {
  const flow = await openRefresh(t);
  const before = await openSession(flow);
  flow.pass(10);
  const after = await openSession(flow);
  await end(flow, { ...SUBJECT, upToMs: (flow.nowSeconds + 5) * 1000 });
  assert.equal(await findSession(flow.ports, before), undefined);
  assert.equal((await findSession(flow.ports, after))?.key, after);
});

test("an ending of a user tells in answer and event how many families and sessions it closed, and a second one tells none", async (t) => {
  const flow = await openRefresh(t);
  // Both came of one sign-in, which is older than the session.
  await flow.start();
  await flow.start();
  await openSession(flow);
  flow.pass(10);
  const upToMs = flow.nowSeconds * 1000;
  flow.pass(10);
  await openSession(flow);
  await openSession(flow, { origin: { ...ALICE, sub: "bob" } });
  const details: unknown[] = [];
  const journal: typeof flow.ports.journal = {
    record(entry, deadline) {
      details.push(entry.event.detail);
      return flow.ports.journal.record(entry, deadline);
    },
  };
  const ports = { ...flow.ports, journal };
  const endAlice = async (extra: object = {}) =>
    (await endTokens(ports, { ...SUBJECT, ...extra }, { reason: "by_operator" })).held;
  assert.deepEqual(await endAlice({ upToMs }), { families: 2, sessions: 1 });
  assert.deepEqual(await endAlice(), { families: 0, sessions: 1 });
  assert.deepEqual(await endAlice(), { families: 0, sessions: 0 });
  assert.partialDeepStrictEqual(details, [
    { families: 2, sessions: 1 },
    { families: 0, sessions: 1 },
    { families: 0, sessions: 0 },
  ]);
  const { held } = await endTokens(ports, { by: "rule", id: "any" }, { reason: "by_operator" });
  assert.equal(held, undefined);
});

test("OIDCB-2.1-2 the end of one sign-in ends its session, and no other of the user", async (t) => {
  const flow = await openRefresh(t);
  const [one, other, none] = [
    await openSession(flow, { sid: "one" }),
    await openSession(flow, { sid: "other" }),
    await openSession(flow),
  ];
  await end(flow, { by: "sign_in", iss: LOGIN, sid: "one" });
  const found = await Promise.all([one, other, none].map((key) => findSession(flow.ports, key)));
  assert.deepEqual(
    found.map((session) => session?.key),
    [undefined, other, none],
  );
});

test("REFRESH-D-14 what a user gives carries the key of its sign-in, if the provider named that", () => {
  const given = { id: "g", clientId: "c", origin: ALICE, consentId: "k" };
  const times = { signedInAtSeconds: 50, startedAtSeconds: 60 };
  const keysOf = (sid?: string) => grantKeys((text) => text, defined({ ...given, ...times, sid }));
  const own = keysOf("one").filter(({ key }) => !keysOf().some((one) => one.key === key));
  assert.deepEqual(own, [{ key: `["sign_in","${LOGIN}"`.slice(0, 22), sinceMs: 50_000 }]);
});

test("PAGE-D-23 a link from before its user's tokens were ended is refused, and the agent that asks again gets it anew", async (t) => {
  const flow = await openRefresh(t);
  const ports = { ...flow.ports, authFailures: { note: () => undefined } };
  const [target = assert.fail()] = ports.settings().policy.targets.values();
  const ask = async (): Promise<string> => {
    const subject = { origin: ALICE, audiences: [], scopes: [], chain: [], tokenType: "jwt" } as const;
    const nowSeconds = ports.clock.nowSeconds();
    const times = { expiresAtSeconds: nowSeconds + 300, issuer: LOGIN };
    const access = { mode: "delegation", clientId: "agent", subject: { ...subject, ...times } } as const;
    const order = { access } as unknown as Parameters<typeof askUser>[1];
    const missing = { target, scope: ["notes.read"] } as unknown as Parameters<typeof askUser>[2];
    const { errorUri = "" } = await askUser(ports, order, missing, nowSeconds);
    return errorUri.slice(errorUri.indexOf("=") + 1);
  };
  type Visitor = Parameters<typeof openAsked>[3];
  const request = { id: "r", endpoint: "/ask", source_ip: "192.0.2.1" };
  const visit = async (id: string, session?: string) => {
    const visitor = { browser: undefined, session } as unknown as Visitor;
    const page = await openAsked(ports, request, id, visitor, false);
    return page.next === "notice" ? page.notice.reason : page.next;
  };
  const link = await ask();
  assert.equal(await visit(link), "sign_in");
  await end(flow, SUBJECT);
  flow.pass(ENDING_REACH_MS / 1000 + 1);
  // PAGE-D-33: the link alone tells nothing of its user.
  assert.equal(await visit(link), "sign_in");
  assert.equal(await visit(link, await openSession(flow)), "ended");
  assert.equal(await ask(), link);
  assert.equal(await visit(link), "sign_in");
});
