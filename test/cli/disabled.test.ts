/** `mandate tokens disabled`: who is kept out now, since when, by which event and by whom. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { readEvent } from "../../src/audit/columns.ts";
import { readCandidates } from "../../src/cli/disabled.ts";
import { type EndingEvent, enableSubject, recordEnding } from "../../src/flows/endings.ts";
import { liftDisabled } from "../../src/policy/endings.ts";
import type { Settings } from "../../src/settings/settings.ts";
import { parseCommand, runCommand } from "../support/host.ts";
import { makeTrail } from "../support/trail.ts";

const CORP = "https://corp.example";
const settings = { agents: { named: new Map() }, policy: { digest: "d" } } as unknown as Settings;

async function makeSite(t: TestContext) {
  const { store, clock, journal: open } = await makeTrail(t);
  const ports = { clock, hash, journal: await open("as-1"), endings: store.endings };
  const ends = (sub: string, by: EndingEvent, disabled?: true) =>
    recordEnding(ports, { by: "subject", iss: CORP, sub, ...(disabled && { disabled }) }, by);
  return {
    ...{ store, clock, ports, ends },
    disable: (sub: string, by: Partial<EndingEvent> = {}) =>
      ends(sub, { type: "subject.disabled", reason: "by_operator", ...by }, true),
    enable: (sub: string) => enableSubject(ports, { iss: CORP, sub }, { reason: "by_operator" }),
    list: async (...words: string[]) => {
      const run = await runCommand(["tokens", "disabled", ...words], { settings, store });
      assert.equal(run.code, 0, run.err);
      return { ...run, lines: run.out.trimEnd().split("\n") };
    },
  };
}

test("POLICY-D-20 the subjects that are disabled now are listed with time, event and who did it", async (t) => {
  const site = await makeSite(t);
  assert.deepEqual((await site.list()).out, "");
  site.clock.set(Date.UTC(2027, 0, 1));
  await site.disable("alice", { detail: { uid: 501 } });
  site.clock.set(Date.UTC(2027, 0, 2));
  const desk = { client_id: "desk", auth_method: "client_secret_basic" } as const;
  await site.disable("bob", { reason: "by_administrator", client: desk });
  await site.disable("carol", { type: "signal.received", reason: "by_issuer", detail: { jti: "e-1" } });
  await site.ends("dave", { reason: "by_operator" });
  await site.ends("erin", { type: "signal.received", reason: "by_issuer" });
  await site.disable("frank");
  await site.enable("frank");
  const { lines, err } = await site.list();
  assert.equal(lines.length, 3, lines.join("\n"));
  assert.match(
    lines[0] ?? "",
    /^2027-01-01T\S+ as-1\/\d+ subject\.disabled allow by_operator .*alice.* uid=501 /,
  );
  assert.match(
    lines[1] ?? "",
    /^2027-01-02T\S+ as-1\/\d+ subject\.disabled allow by_administrator client=desk .*bob/,
  );
  assert.match(lines[2] ?? "", /signal\.received allow by_issuer .*carol.* jti=e-1 /);
  assert.match(err, /^By command, API or issuer; the trail was read back to 20\S+Z, and names no subject/);
  const json = (await site.list("--json")).lines.map((line) => JSON.parse(line).detail.ends.sub);
  assert.deepEqual(json, ["alice", "bob", "carol"]);
  const [header, ...rows] = (await site.list("--format", "csv")).lines;
  assert.deepEqual([header?.startsWith("time,log,seq,type"), rows.length], [true, 3]);
});

test("POLICY-D-20 a subject that is disabled again is listed by the event that began it", async (t) => {
  const site = await makeSite(t);
  const first = (sub: string) => site.disable(sub, { detail: { n: 1 } });
  const second = (sub: string) => site.disable(sub, { detail: { n: 2 } });
  await first("alice");
  await second("alice");
  await first("bob");
  await site.enable("bob");
  await second("bob");
  await first("carol");
  // An event of its issuer that is older than the disabling, and comes after it, enables nothing.
  const carol = { iss: CORP, sub: "carol" };
  const lift = { ...liftDisabled(hash.sha256, carol, site.clock.nowMs()), atMs: 1 };
  const event = { type: "subject.enabled", outcome: "allow", reason: "by_issuer", detail: carol } as const;
  assert.ok((await site.ports.journal.record({ event, lift })).ok);
  const { lines } = await site.list("--json");
  const told = lines.map((line) => JSON.parse(line).detail).map(({ n, ends }) => [ends.sub, n]);
  assert.deepEqual(told, [
    ["alice", 1],
    ["bob", 2],
    ["carol", 1],
  ]);
});

test("the trail is read back by so many events, and the time of the oldest is told", async (t) => {
  const site = await makeSite(t);
  for (const sub of ["alice", "bob", "carol"]) await site.disable(sub);
  const spans = (await site.store.audit.heads()).map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
  const { candidates, fromMs } = await readCandidates(site.store, spans, 2);
  const subjects = candidates.map(({ subject }) => subject.sub);
  assert.deepEqual([subjects, fromMs], [["bob", "carol"], candidates[0]?.record.timeMs]);
  assert.equal(readEvent(candidates[0]?.record.body ?? "")?.type, "subject.disabled");
});

test("a format that there is not is refused before the store is opened", async () => {
  const command = await parseCommand(["tokens", "disabled", "--format", "xml"]);
  assert.deepEqual(command.ok ? "" : command.error, "--format is not one of text, ndjson, csv, ocsf");
});
