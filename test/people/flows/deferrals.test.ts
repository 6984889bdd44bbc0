/** Waiting for a user, without sockets: certificates, assertions that are valid once, partners, and a click meanwhile. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type TestContext, test } from "node:test";
import type { AuditEvent } from "../../../src/audit/event.ts";
import type { Authenticated } from "../../../src/flows/authenticate-client.ts";
import type { KeyEvidence } from "../../../src/flows/prove-keys.ts";
import { answerTokenRequest } from "../../../src/flows/token.ts";
import { recordRefusalOf } from "../../../src/http/form.ts";
import { cancelDeferral } from "../../../src/people/flows/cancel-deferral.ts";
import { linkOf } from "../../../src/people/flows/deferrals.ts";
import { StoreUnavailable } from "../../../src/ports.ts";
import type { Guard, PendingConsent } from "../../../src/records.ts";
import { DEFERRED, DRAFT } from "../../../src/spec/deferred-token-response.ts";
import { DRAFT as ID_JAG } from "../../../src/spec/id-jag.ts";
import { DRAFT as CHAINING } from "../../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE } from "../../../src/spec/spiffe/client-auth.ts";
import { AT_TOKEN, formOf, openFlow } from "../../support/flow.ts";
import { makeForeign } from "../../support/foreign.ts";
import { claimsOf, EXCHANGE, ISSUER, JWT, TRUST_DOMAIN, workload } from "../../support/world.ts";

const LOGIN = "https://login.example";
const PARTNER = "https://as.partner.example";
const ALICE = { iss: LOGIN, sub: "alice" };
const planner = workload("agents/planner");
const scopes = ["trips.read"];
const asking = {
  allow: "delegation",
  actors: [planner],
  subjects: { issuers: [LOGIN] },
  subjectToken: { audiences: [ISSUER] },
  consent: "record",
  askUser: true,
  scopes,
};
const CONFIGURATION = {
  trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" } } },
  trustedIssuers: { [LOGIN]: { keys: { url: `${LOGIN}/jwks` }, acceptAs: ["jwt"], subjects: "keep" } },
  signIn: { providers: { company: { issuer: LOGIN, clientId: "mandate" } } },
  targets: [
    { names: ["booking"], scopes },
    { kind: "partner", issuer: PARTNER, scopes, claims: ["department"] },
  ],
  policies: [
    { ...asking, id: "asks", targets: ["booking"] },
    { ...asking, id: "abroad", issues: "grant", targets: [PARTNER] },
  ],
  drafts: [SPIFFE, DRAFT, CHAINING, ID_JAG],
};

/** The certificate of a handshake, which is told from others by its bytes. */
const leafOf = (byte: number, notAfterSeconds: number): KeyEvidence["leaf"] => {
  const value = { der: new Uint8Array([byte]), notBeforeSeconds: 0, notAfterSeconds };
  return { ok: true, value } as unknown as KeyEvidence["leaf"];
};

async function openWaiting(t: TestContext) {
  const signers = { [LOGIN]: await makeForeign(LOGIN), [TRUST_DOMAIN]: await makeForeign(TRUST_DOMAIN) };
  const flow = await openFlow(t, CONFIGURATION, signers);
  const { ports, people, nowSeconds } = flow;
  const exp = nowSeconds + 600;
  const token = await signers[LOGIN].sign({
    ...{ ...ALICE, aud: ISSUER, scope: "trips.read", iat: nowSeconds, exp },
    ...{ department: "sales", email: "alice@login.example" },
  });
  const actor = await signers[TRUST_DOMAIN].sign({ sub: planner, aud: ISSUER, exp }, { typ: "JWT" });
  const throttle = { failed: () => 0 };
  const authFailures = { note: () => {} };
  const send = async (
    form: Record<string, string>,
    by: Partial<Authenticated> = {},
    leaf?: KeyEvidence["leaf"],
  ) => {
    const client = { ...flow.client(planner), ...by };
    const request = { id: randomUUID(), endpoint: "/token", source_ip: "192.0.2.1" };
    const evidence = leaf === undefined ? AT_TOKEN : { ...AT_TOKEN, leaf };
    const answered = await answerTokenRequest(
      ports,
      { client, form: formOf(form), request },
      evidence,
      people,
    );
    if (answered.ok) return { kind: "token", reason: "", ...answered.value };
    const { error } = answered;
    const failure =
      error.event === undefined
        ? error.failure
        : await recordRefusalOf({ ...ports, throttle, authFailures } as never, client, error, request);
    return { ...failure, access_token: "" };
  };
  const ask = (more: Record<string, string> = {}, by?: Partial<Authenticated>, leaf?: KeyEvidence["leaf"]) =>
    send(
      {
        grant_type: EXCHANGE,
        subject_token: token,
        subject_token_type: JWT,
        actor_token: actor,
        actor_token_type: JWT,
        audience: "booking",
        completion_mode: "deferred",
        ...more,
      },
      by,
      leaf,
    );
  const wait = async (...asked: Parameters<typeof ask>): Promise<string> => {
    const answer = await ask(...asked);
    assert.equal(answer.kind, "interaction_required", JSON.stringify(answer));
    return "deferral" in answer ? (answer.deferral?.code ?? "") : "";
  };
  const poll = (code: string, by?: Partial<Authenticated>, leaf?: KeyEvidence["leaf"]) => {
    flow.pass(60);
    return send({ grant_type: DEFERRED, deferral_code: code }, by, leaf);
  };
  const allow = (targets = ["booking"]) => flow.consent({ origin: ALICE, actor: planner, targets, scopes });
  return { ...flow, ask, wait, poll, allow, exp };
}

test("DTR-6.4-7, DTR-11.1-2 a code that was given over a certificate needs it at the poll and for its cancellation", async (t) => {
  const { wait, poll, allow, ports, client, exp } = await openWaiting(t);
  const [own, other] = [leafOf(1, exp), leafOf(2, exp)];
  const code = await wait({}, {}, own);
  await allow();
  for (const leaf of [undefined, other]) {
    const { kind, reason } = await poll(code, {}, leaf);
    assert.deepEqual([kind, reason], ["grant_refused", "deferral_key_not_proven"]);
  }
  const request = { id: "r", endpoint: "/revoke", source_ip: "192.0.2.1" };
  const cancelled = await cancelDeferral(ports, { client: client(planner), request }, code);
  assert.ok("refused" in cancelled, JSON.stringify(cancelled));
  assert.equal((await poll(code, {}, own)).kind, "token");
});

test("DTR-6.6-2, DTR-D-8 a code of one workload is unknown to another of the same client", async (t) => {
  const { wait, poll, allow } = await openWaiting(t);
  const client = { clientId: "crew" };
  const code = await wait({}, client);
  await allow();
  const { kind, reason } = await poll(code, { ...client, workload: workload("agents/other") });
  assert.deepEqual([kind, reason], ["grant_refused", "deferral_unknown"]);
  assert.equal((await poll(code, client)).kind, "token");
});

test("DTR-D-7, DTR-D-10 an assertion that is valid once is spent by the wait, and by each poll that waits on", async (t) => {
  const { wait, ask, poll, exp, events } = await openWaiting(t);
  const once = (jti: string): { spends: Guard } => ({
    spends: { kind: "jti_fresh", issuer: planner, jti, expiresAtSeconds: exp },
  });
  const code = await wait({}, once("first"));
  assert.equal((await ask({ scope: "trips.read" }, once("first"))).kind, "client_refused");
  assert.equal((await poll(code, once("first"))).kind, "client_refused");
  assert.equal((await poll(code, once("second"))).kind, "interaction_required");
  assert.equal((await poll(code, once("second"))).kind, "client_refused");
  const before = (await events()).length;
  assert.equal((await poll(code)).kind, "interaction_required");
  assert.equal((await events()).length, before);
});

test("DTR-D-10, AUDIT-D-13 polls are counted in the row of the question, which a cancellation tells with their number", async (t) => {
  const { wait, poll, ports, client, events } = await openWaiting(t);
  const code = await wait();
  const before = (await events()).length;
  for (let round = 0; round < 3; round++) assert.equal((await poll(code)).kind, "interaction_required");
  assert.equal((await events()).length, before);
  const pollsOf = async () =>
    (await ports.pendingConsents.list(ports.hash.sha256(JSON.stringify([LOGIN, "alice"])), 0)).map(
      ({ polls, pollsRecorded }) => [polls, pollsRecorded],
    );
  assert.deepEqual(await pollsOf(), [[3, 0]]);
  const request = { id: "r", endpoint: "/revoke", source_ip: "192.0.2.1" };
  assert.ok("cancelled" in (await cancelDeferral(ports, { client: client(planner), request }, code)));
  const { type, policy } = (await events()).at(-1) as AuditEvent;
  const { asked } = (policy ?? {}) as { asked?: { count: number; last: string } };
  assert.deepEqual([type, asked?.count], ["deferral.cancelled", 3]);
  assert.ok(Date.parse(asked?.last ?? "") > 0);
  assert.deepEqual(await pollsOf(), [[3, 3]]);
});

for (const [when, isWritten] of [
  ["before it is written", false],
  ["after it was written, with its answer lost", true],
] as const)
  test(`AUDIT-D-13, DTR-8.2-1 what a question counted is told once by a cancellation that fails ${when} and is sent again`, async (t) => {
    const { wait, poll, ports, client, events } = await openWaiting(t);
    const code = await wait();
    for (let round = 0; round < 3; round++) assert.equal((await poll(code)).kind, "interaction_required");
    const { journal } = ports;
    const record = journal.record.bind(journal);
    const request = { id: "r", endpoint: "/revoke", source_ip: "192.0.2.1" };
    const cancelled = () => cancelDeferral(ports, { client: client(planner), request }, code);
    journal.record = async (...entry) => {
      if (isWritten) await record(...entry);
      throw new StoreUnavailable("lost");
    };
    await assert.rejects(cancelled, StoreUnavailable);
    journal.record = record;
    const again = await cancelled();
    assert.deepEqual(again, isWritten ? { nothing: "deferral_cancelled" } : { cancelled: true });
    const told = (await events()).filter(({ type }) => type === "deferral.cancelled");
    assert.deepEqual(
      told.map(({ policy }) => (policy as { asked?: { count?: number } }).asked?.count),
      [3],
    );
  });

test("AUDIT-D-13, DTR-D-14 a cancellation that meets polls of its question tells each of them", async (t) => {
  const { wait, poll, ports, client, events } = await openWaiting(t);
  const [code, other] = [await wait(), await wait({}, { clientId: planner })];
  assert.equal((await poll(code)).kind, "interaction_required");
  const { journal, pendingConsents } = ports;
  const record = journal.record.bind(journal);
  const request = { id: "r", endpoint: "/revoke", source_ip: "192.0.2.1" };
  const cancels = (one: string) => cancelDeferral(ports, { client: client(planner), request }, one);
  journal.record = async (...entry) => {
    journal.record = record;
    assert.ok("cancelled" in (await cancels(other)));
    return record(...entry);
  };
  assert.ok("cancelled" in (await cancels(code)));
  const told = (await events()).filter(({ type }) => type === "deferral.cancelled");
  assert.deepEqual(
    told.map(({ policy }) => (policy as { asked?: { count?: number } }).asked?.count),
    [undefined, 1],
  );
  const [question] = await pendingConsents.list(ports.hash.sha256(JSON.stringify([LOGIN, "alice"])), 0);
  assert.deepEqual([question?.closed, question?.polls, question?.pollsRecorded], [true, 1, 1]);
});

test("AUDIT-D-13 a poll of a question that changes in the same moment is an event", async (t) => {
  const { wait, poll, ports, events } = await openWaiting(t);
  const code = await wait();
  const { pendingConsents } = ports;
  // Another instance changes the row each time before the poll is counted.
  const counts = pendingConsents.poll.bind(pendingConsents);
  pendingConsents.poll = async (pending, now) => {
    await pendingConsents.replace({ ...pending, version: pending.version + 1 });
    return counts(pending, now);
  };
  assert.equal((await poll(code)).kind, "interaction_required");
  const [type, reason] = [(await events()).at(-1)?.type, (await events()).at(-1)?.reason];
  assert.deepEqual([type, reason], ["deferral.refused", "consent_pending"]);
  pendingConsents.poll = counts;
  assert.equal((await poll(code)).kind, "interaction_required");
});

test("DTR-4.1-1, DTR-12.2-1 a grant for a partner has what the first request could have, and no other claim is kept", async (t) => {
  const { wait, poll, allow, ports } = await openWaiting(t);
  const code = await wait({ audience: PARTNER, requested_token_type: JWT });
  await allow([PARTNER]);
  const kept = await ports.shortLived.find("deferral", linkOf(ports.hash, code), 0);
  assert.deepEqual(kept?.body.facts.subjectClaims, { department: "sales" });
  const granted = await poll(code);
  assert.equal(granted.kind, "token", JSON.stringify(granted));
  const claims = claimsOf(granted.access_token);
  assert.deepEqual([claims.aud, claims.department, claims.email], [PARTNER, "sales", undefined]);
  assert.equal("issued_token_type" in granted ? granted.issued_token_type : "", JWT);
});

test("DTR-D-6 a click while the poll is decided gives the token of that poll, or of the next", async (t) => {
  const { wait, poll, allow, ports } = await openWaiting(t);
  const code = await wait();
  const { facts, pendingConsents } = ports;
  // The user allows, and the question is marked as decided, just after the consents were read.
  const read = facts.consents.bind(facts);
  let clicked = false;
  facts.consents = async (...asked) => {
    const found = await read(...asked);
    if (!clicked) {
      clicked = true;
      await allow();
      const open = await pendingConsents.list(ports.hash.sha256(JSON.stringify([LOGIN, "alice"])), 0);
      const [question] = open as [PendingConsent];
      await pendingConsents.replace({ ...question, version: question.version + 1, decided: true });
    }
    return found;
  };
  assert.equal((await poll(code)).kind, "interaction_required");
  assert.equal((await poll(code)).kind, "token");
});

test("DTR-6.6-2 a code of no form of ours is refused as an unknown one is", async (t) => {
  const { poll } = await openWaiting(t);
  for (const code of ["x", "mdc_", `mdc_${"é".repeat(43)}`, "\u{1F511}", "a".repeat(9_000)]) {
    const { kind, reason } = await poll(code);
    assert.deepEqual([kind, reason], ["grant_refused", "deferral_unknown"]);
  }
});
