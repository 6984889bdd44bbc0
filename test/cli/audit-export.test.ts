import assert from "node:assert/strict";
import { hash as sha256 } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { generateKeyPair, SignJWT } from "jose";
import { type HostRun, runCommandLine } from "../../scripts/command-line.ts";
import { eventHash } from "../../src/adapters/audit/chain.ts";
import { startRetention } from "../../src/adapters/audit/retention.ts";
import { openWitness } from "../../src/adapters/audit/witness.ts";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { KeysUnusable } from "../../src/adapters/crypto/seal.ts";
import { verifier } from "../../src/adapters/crypto/verifier.ts";
import { GENESIS_PREV } from "../../src/audit/event.ts";
import { type Files, verifyAudit } from "../../src/cli/audit/export.ts";
import { LogProof } from "../../src/cli/audit/log-proof.ts";
import { verifyLogs } from "../../src/cli/audit/trail.ts";
import { defined } from "../../src/result.ts";
import { compileAgents } from "../../src/settings/agents.ts";
import type { Settings } from "../../src/settings/settings.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { canonicalize } from "../../src/spec/rfc8785.ts";
import { runCommand, spawnCommandLine } from "../support/host.ts";
import { forget, issuing, loadVerifier } from "../support/receipts.ts";
import { EVENT, exportOf, ISSUER, makeTrail, record, TRAIL_KEY, type Trail } from "../support/trail.ts";

type Material = { events: string[]; checkpoints: string[]; witness: string[]; jwks: object; folder: string };

async function material({ store, signer }: Trail, folder: string): Promise<Material> {
  const checkpoints = await store.audit.checkpoints(new Map(), 1000);
  return {
    folder,
    events: await exportOf(store),
    checkpoints: checkpoints.map(({ jws }) => JSON.stringify({ checkpoint: jws })),
    witness: readFileSync(join(folder, "witness"), "utf8").split("\n").slice(0, -1),
    jwks: { keys: signer.published() },
  };
}

function scratch(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "mandate-verify-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/**
 * Two logs. as-1 has records 0 to 17 and checkpoints at 6, 12 and 17; the witness has the first two. admin has
 * records 0 to 3, which the checkpoints of as-1 cover.
 */
async function makeMaterial(t: TestContext): Promise<Material> {
  const folder = scratch(t);
  const trail = await makeTrail(t);
  const admin = await trail.journal("admin");
  const journal = await trail.journal("as-1");
  const witness = await openWitness({ file: join(folder, "witness") });
  const checkpoints = trail.checkpoints("as-1", journal, { witness });
  await record(admin, 3);
  await record(journal, 5, { ...EVENT, detail: { note: "\u2028 in one line \u0000\n" } });
  await checkpoints.write();
  await record(journal, 5);
  await checkpoints.write();
  await record(journal, 4);
  await checkpoints.close();
  assert.deepEqual(trail.faults, []);
  const made = await material(trail, folder);
  return { ...made, witness: made.witness.slice(0, 2) };
}

/** Writes the material to files; only the files in `given` are passed to the verifier. */
function files(made: Material, given: readonly ("checkpoints" | "witness" | "jwks")[]): Files {
  const write = (name: string, text: string): string => {
    writeFileSync(join(made.folder, name), text);
    return join(made.folder, name);
  };
  const lines = (list: readonly string[]): string => list.map((line) => `${line}\n`).join("");
  const writeIf = (name: (typeof ALL)[number], file: string, text: string): string | undefined =>
    given.includes(name) ? write(file, text) : undefined;
  return defined<Files>({
    export: write("export", lines(made.events)),
    checkpoints: writeIf("checkpoints", "checkpoints", lines(made.checkpoints)),
    witness: writeIf("witness", "kept", lines(made.witness)),
    jwks: writeIf("jwks", "jwks", JSON.stringify(made.jwks)),
  });
}

const ALL = ["checkpoints", "witness", "jwks"] as const;

async function verify(made: Material, given: Parameters<typeof files>[1] = ALL) {
  const { code, lines } = await verifyAudit(files(made, given));
  return { code, text: lines.join("\n") };
}

const placeOf = (body: string): string => {
  const { log, seq } = JSON.parse(body);
  return `${log}/${seq}`;
};
const index = (made: Material, place: string): number => {
  const found = made.events.findIndex((body) => placeOf(body) === place);
  assert.ok(found >= 0);
  return found;
};
const edit = (body: string, values: JsonObject): string => canonicalize({ ...JSON.parse(body), ...values });

/** Recomputes the chain of as-1 from a record on. */
function rechain(made: Material, from: number, change: (body: string) => string = (body) => body): void {
  let prev: string | undefined;
  for (const [at, body] of made.events.entries()) {
    const { log, seq } = JSON.parse(body);
    if (log !== "as-1" || seq < from) continue;
    const changed = seq === from ? change(body) : body;
    made.events[at] = prev === undefined ? changed : edit(changed, { prev });
    prev = eventHash(made.events[at] ?? "");
  }
}

test("AUDIT-D-7, RFC9162-2.1.1-2 an unchanged trail is accepted, and what is not proven is printed", async (t) => {
  const made = await makeMaterial(t);
  const { code, text } = await verify(made);
  assert.equal(code, 0, text);
  assert.match(text, /^as-1: 18 records, chain intact from record 0$/m);
  assert.match(text, /^admin: 4 records, chain intact from record 0$/m);
  // The witness does not have the third checkpoint.
  assert.match(text, /that as-1 had no further records; the last witnessed checkpoint covers 12 records/);
  assert.doesNotMatch(text, /Pass --witness|Pass --jwks/);
});

test("AUDIT-D-12 a retired log has ended, and a record behind its end is found", async (t) => {
  const folder = scratch(t);
  const trail = await makeTrail(t);
  const gone = await trail.journal("as-2");
  await record(gone, 2);
  await record(gone, 1, { type: "log.ended", outcome: "allow", reason: "by_operator" });
  const journal = await trail.journal("as-1");
  const witness = await openWitness({ file: join(folder, "witness") });
  await trail.checkpoints("as-1", journal, { witness }).close();
  const made = await material(trail, folder);
  const { code, text } = await verify(made, ["checkpoints"]);
  assert.equal(code, 0, text);
  assert.match(text, /^as-2: 4 records, chain intact from record 0, ended: the log was retired$/m);
  assert.doesNotMatch(text, /that as-2 had no further records/);
  await record(gone, 1);
  const { events } = await material(trail, folder);
  const further = await verify({ ...made, events }, ["checkpoints"]);
  assert.equal(further.code, 1);
  assert.match(further.text, /^as-2: record 4 follows the end of the log, which was retired$/m);
});

test("AUDIT-D-7 without a witness it prints that truncated tails and deleted logs are not proven absent", async (t) => {
  const made = await makeMaterial(t);
  const { code, text } = await verify(made, ["checkpoints"]);
  assert.equal(code, 0, text);
  assert.match(text, /Not proven: that no tail was truncated together with its checkpoints, that no log/);
  assert.match(text, /Not proven: the signatures of the checkpoints/);
  assert.match((await verify(made, [])).text, /no checkpoint covers it/);
});

type Tampering = { change: (made: Material) => void; says: RegExp; given?: Parameters<typeof files>[1] };

const tamperings: Record<string, Tampering> = {
  "a changed record": {
    change: (made) => {
      const at = index(made, "as-1/3");
      made.events[at] = edit(made.events[at] ?? "", { reason: "another" });
    },
    says: /^as-1: record 3 was changed$/m,
  },
  "a changed record, detected by the chain alone": {
    change: (made) => {
      const at = index(made, "as-1/3");
      made.events[at] = edit(made.events[at] ?? "", { outcome: "deny" });
    },
    given: [],
    says: /^as-1: record 3 was changed$/m,
  },
  "a changed link": {
    change: (made) => {
      const at = index(made, "as-1/4");
      made.events[at] = edit(made.events[at] ?? "", { prev: "0".repeat(64) });
    },
    given: [],
    says: /^as-1: record 4 was changed$/m,
  },
  "a changed last record that a checkpoint covers": {
    change: (made) => {
      const at = index(made, "admin/3");
      made.events[at] = edit(made.events[at] ?? "", { outcome: "deny" });
    },
    says: /^admin: (record 3|a record from 0 to 3) was changed and the chain recomputed or forked: /m,
  },
  "white space in a record": {
    change: (made) => {
      const at = index(made, "as-1/3");
      made.events[at] = (made.events[at] ?? "").replace("{", "{ ");
    },
    says: /^as-1: record 3 was changed$/m,
  },
  "a changed first record": {
    change: (made) => {
      const at = index(made, "as-1/0");
      made.events[at] = edit(made.events[at] ?? "", { reason: "another" });
    },
    given: [],
    says: /^as-1: record 0 was changed$/m,
  },
  "a missing record": {
    change: (made) => void made.events.splice(index(made, "as-1/7"), 1),
    says: /^as-1: record 7 is missing$/m,
  },
  "several missing records": {
    change: (made) => {
      for (const seq of [7, 8, 9]) made.events.splice(index(made, `as-1/${seq}`), 1);
    },
    says: /^as-1: records 7 to 9 are missing$/m,
  },
  "missing first records": {
    change: (made) => {
      for (const seq of [0, 1]) made.events.splice(index(made, `as-1/${seq}`), 1);
    },
    says: /^as-1: records 0 to 1 are missing$/m,
  },
  "missing first records up to a checkpoint, without an event of retention": {
    change: (made) => {
      made.events = made.events.filter((body) => {
        const { log, seq } = JSON.parse(body);
        return log !== "as-1" || seq >= 5;
      });
    },
    says: /^as-1: records 0 to 4 are missing$/m,
  },
  "a missing record whose successors were renumbered": {
    change: (made) => {
      made.events.splice(index(made, "as-1/7"), 1);
      for (const [at, body] of made.events.entries()) {
        const { log, seq } = JSON.parse(body);
        if (log === "as-1" && seq > 7) made.events[at] = edit(body, { seq: seq - 1 });
      }
    },
    says: /^as-1: record 7 was changed$/m,
  },
  "two swapped lines": {
    change: (made) => {
      const [a, b] = [index(made, "as-1/7"), index(made, "as-1/8")];
      [made.events[a], made.events[b]] = [made.events[b] ?? "", made.events[a] ?? ""];
    },
    says: /^as-1: record 7 follows record 8: the records were reordered$/m,
  },
  "two records with swapped numbers": {
    change: (made) => {
      const [a, b] = [index(made, "as-1/7"), index(made, "as-1/8")];
      const [seven = "", eight = ""] = [made.events[a], made.events[b]];
      const { time: early } = JSON.parse(seven);
      const { time: late } = JSON.parse(eight);
      made.events[a] = edit(eight, { seq: 7, time: early });
      made.events[b] = edit(seven, { seq: 8, time: late });
    },
    says: /^as-1: record 7 was changed$/m,
  },
  "a forked record": {
    change: (made) => {
      const at = index(made, "as-1/7");
      made.events.splice(at, 0, edit(made.events[at] ?? "", { reason: "another" }));
    },
    says: /^as-1: record 7 (occurs twice: the log is forked|follows record)/m,
  },
  "a duplicate record": {
    change: (made) => void made.events.push(made.events[index(made, "admin/3")] ?? ""),
    says: /^admin: record 3 occurs twice: the log is forked$/m,
  },
  "a chain recomputed from one record on": {
    change: (made) => rechain(made, 8, (body) => edit(body, { reason: "another" })),
    says: /^as-1: a record from 6 to 11 was changed and the chain recomputed or forked: .* differs$/m,
  },
  "a recomputed chain, detected by the witness alone": {
    change: (made) => rechain(made, 2, (body) => edit(body, { reason: "another" })),
    given: ["witness", "jwks"],
    says: /^as-1: a record from 0 to 5 was changed .*: the witness's checkpoint of as-1 at 6 differs$/m,
  },
  "a truncated tail": {
    change: (made) => {
      made.events = made.events.filter((body) => !/^as-1\/1[4-9]$/.test(placeOf(body)));
    },
    says: /^as-1: record 14 is missing: the log was truncated, or the export is older than the checkpoint of as-1 at 17, which covers 17 records$/m,
  },
  "a tail truncated together with its checkpoints": {
    change: (made) => {
      made.events = made.events.filter((body) => !/^as-1\/(8|9|1\d)$/.test(placeOf(body)));
      made.checkpoints.splice(1);
    },
    says: /^as-1: record 8 is missing: the log was truncated, or the export is older than the witness's checkpoint of as-1 at 12, which covers 12/m,
  },
  "a log deleted together with its checkpoints": {
    change: (made) => {
      made.events = made.events.filter((body) => !placeOf(body).startsWith("as-1/"));
      made.checkpoints = [];
    },
    says: /^as-1: the whole log is missing: the witness's checkpoint/m,
  },
  "a deleted log without checkpoints of its own": {
    change: (made) => {
      made.events = made.events.filter((body) => !placeOf(body).startsWith("admin/"));
    },
    given: ["witness", "jwks"],
    says: /^admin: the whole log is missing: /m,
  },
  "a second log.genesis": {
    change: (made) => {
      const at = index(made, "as-1/7");
      made.events[at] = edit(made.events[at] ?? "", { type: "log.genesis" });
    },
    given: [],
    says: /^as-1: record 7 is a second log.genesis$/m,
  },
  "a first record of another type": {
    change: (made) => {
      const at = index(made, "as-1/0");
      made.events[at] = edit(made.events[at] ?? "", { type: "token.issued" });
    },
    given: [],
    says: /^as-1: record 0 is not log.genesis$/m,
  },
  "a line that is not a record": {
    change: (made) => void made.events.push('{"v":1,"log":"as-1"}'),
    says: /export, line 23: this is not a record of an audit log$/m,
  },
  "a checkpoint with another signature": {
    change: (made) => {
      const { checkpoint } = JSON.parse(made.checkpoints[0] ?? "");
      const [header, , signature] = checkpoint.split(".");
      const [, payload] = JSON.parse(made.checkpoints[1] ?? "").checkpoint.split(".");
      made.checkpoints[1] = [header, payload, signature].join(".");
    },
    says: /checkpoints, line 2: this checkpoint has an invalid signature$/m,
  },
};

for (const [what, { change, says, given = ALL }] of Object.entries(tamperings)) {
  test(`AUDIT-D-7 the first bad record is named: ${what}`, async (t) => {
    const made = await makeMaterial(t);
    change(made);
    const { code, text } = await verify(made, given);
    assert.match(text, says);
    assert.equal(code, 1);
  });
}

const unseen: Record<string, (made: Material) => void> = {
  "a tail truncated together with its checkpoints": (made) => {
    made.events = made.events.filter((body) => !/^as-1\/(8|9|1\d)$/.test(placeOf(body)));
    made.checkpoints.splice(1);
  },
  "a log deleted together with its checkpoints": (made) => {
    made.events = made.events.filter((body) => !placeOf(body).startsWith("as-1/"));
    made.checkpoints = [];
  },
};
for (const [what, change] of Object.entries(unseen)) {
  test(`AUDIT-D-7 what cannot be detected without a witness is printed: ${what}`, async (t) => {
    const made = await makeMaterial(t);
    change(made);
    const { code, text } = await verify(made, ["checkpoints", "jwks"]);
    assert.equal(code, 0, text);
    assert.match(text, /Not proven: that no tail was truncated .*[\s\S]*Pass --witness/);
  });
}

test("RFC8725-3.11-v1 a checkpoint that is signed with an unknown key or has another type is refused", async (t) => {
  const made = await makeMaterial(t);
  const { privateKey } = await generateKeyPair("ES256");
  const sign = (typ: string) =>
    new SignJWT({ log: "as-1" }).setProtectedHeader({ alg: "ES256", kid: "x", typ }).sign(privateKey);
  made.checkpoints.push(await sign("at+jwt"));
  const { code, text } = await verify(made);
  assert.equal(code, 1);
  assert.match(text, /line 4: this checkpoint does not have the type or the claims of a checkpoint$/m);
  const { checkpoint } = JSON.parse(made.checkpoints[0] ?? "");
  const { privateKey: other } = await generateKeyPair("ES256");
  const claims = JSON.parse(Buffer.from(checkpoint.split(".")[1], "base64url").toString());
  const header = { alg: "ES256", kid: "x", typ: "audit-checkpoint+jwt" };
  made.checkpoints[3] = await new SignJWT(claims).setProtectedHeader(header).sign(other);
  const unknownKey = await verify(made);
  assert.equal(unknownKey.code, 1);
  assert.match(
    unknownKey.text,
    /line 4: this checkpoint is signed with a key that is not in --jwks \(kid x\)$/m,
  );
});

test("other lines of a witness are ignored and counted", async (t) => {
  const made = await makeMaterial(t);
  made.witness.push("Mandate listens", '{"level":"info"}', "");
  const { code, text } = await verify(made);
  assert.equal(code, 0);
  assert.match(text, /kept: ignored 3 lines that are not checkpoints$/m);
});

test("incomplete checkpoints of a witness are skipped, and named by their lines", async (t) => {
  const made = await makeMaterial(t);
  const [whole = ""] = made.witness;
  const logged = `{"time":"2026-11-24T00:00:00.000Z","level":"info","event":"checkpoint",${whole.slice(1)}`;
  made.witness.unshift(whole.slice(0, 40), logged.slice(0, 120));
  made.witness.push(whole.slice(0, -2), "Mandate listens");
  const { code, text } = await verify(made);
  assert.equal(code, 0, text);
  assert.match(
    text,
    new RegExp(`kept: skipped 3 incomplete checkpoints, at line 1, 2, ${made.witness.length - 1}: `),
  );
  assert.match(text, /kept: ignored 1 lines that are not checkpoints$/m);
});

test("AUDIT-D-8 records removed by retention are not missing, and the rest is proven from its checkpoint on", async (t) => {
  const folder = scratch(t);
  const trail = await makeTrail(t);
  const { store, signer, clock, timers, faults } = trail;
  const admin = await trail.journal("admin");
  const journal = await trail.journal("as-1");
  const witness = await openWitness({ file: join(folder, "witness") });
  const checkpoints = trail.checkpoints("as-1", journal, { witness });
  await record(admin, 4);
  await record(journal, 9);
  await checkpoints.write();
  await record(admin, 2);
  await record(journal, 3);
  clock.set(clock.nowMs() + 10 * 86_400_000);
  await record(journal, 3);
  await checkpoints.write();
  await record(journal, 3);
  const onFault = (words: string): void => void faults.push(words);
  const retention = startRetention({
    store,
    journal,
    signer,
    verifier,
    clock,
    timers,
    hash,
    digest: () => "",
    days: 9,
    onFault,
  });
  await retention.run();
  await retention.close();
  await checkpoints.close();
  assert.deepEqual(faults, []);
  const made = await material(trail, folder);
  const said: string[] = [];
  const say = (line: string): void => void said.push(line);
  const host = { agents: compileAgents({}), store, print: say, printError: say };
  assert.equal(await verifyLogs(host, false), 0, said.join("\n"));
  assert.match(said.join("\n"), /^as-1: \d+ events, chain intact from event 9 \(retention removed/m);
  const { code, text } = await verify(made);
  assert.equal(code, 0, text);
  assert.match(text, /^as-1: \d+ records, chain intact from record 9 \(retention removed/m);
  assert.match(text, /^admin: 3 records, chain intact from record 4 \(retention removed/m);

  const { events } = made;
  // The checkpoint at which the log now begins is required.
  assert.match(
    (await verify({ ...made, checkpoints: [], witness: [] })).text,
    /no checkpoint ends at record 9/,
  );
  // A further missing record was not removed by retention.
  const cut = events.filter((body) => placeOf(body) !== "as-1/9");
  const missing = await verify({ ...made, events: cut });
  assert.equal(missing.code, 1);
  assert.match(missing.text, /^as-1: .*record 9/m);
  const changed = [...events];
  const at = events.findIndex((body) => placeOf(body) === "as-1/11");
  changed[at] = edit(events[at] ?? "", { reason: "another" });
  assert.match((await verify({ ...made, events: changed })).text, /^as-1: record 11 was changed$/m);
});

test("the command prints its result and sets its exit code", async (t) => {
  const made = await makeMaterial(t);
  const run = (...words: string[]) => runCommandLine(["audit", "verify", ...words]);
  const given = files(made, ALL);
  const words = Object.entries(given).flatMap(([name, file]) => [`--${name}`, String(file)]);
  const good = await run(...words);
  assert.equal(good.code, 0, good.err);
  assert.match(good.out, /^No error found in 22 records\.$/m);
  writeFileSync(given.export, made.events.slice(1).join("\n"));
  const bad = await spawnCommandLine(["audit", "verify", ...words]);
  assert.equal(bad.code, 1);
  const told = JSON.parse((await run(...words, "--json")).out);
  assert.equal(told.result, "changed");
  assert.match(told.findings.join("\n"), /record 0 is missing/);
  assert.match(bad.err, /record 0 is missing/);
  const wrong: [words: string[], complaint: RegExp][] = [
    [
      ["--export", join(made.folder, "none")],
      /none"?: there is no such file or folder: correct its name, or make it\n$/,
    ],
    [["--other", "x"], /^Unknown option '--other'\n\nUsage:\n {2}mandate audit /],
    [["--jwks", "x"], /^--checkpoints, --witness, --jwks, --policies and --partial require --export\n/],
    [["--export", "x", "--config", "y"], /^--export cannot be combined with --config\n/],
  ];
  for (const [words, complaint] of wrong) {
    const result = await run(...words);
    assert.equal(result.code, 2, result.err);
    assert.match(result.err, complaint);
  }
  writeFileSync(given.export, '{"a":1}\nb\nc\n');
  const other = await run("--export", given.export);
  assert.deepEqual(
    [other.code, other.err.trimEnd().split("\n").length, /is not an export: its first line/.test(other.err)],
    [2, 1, true],
    other.err,
  );
  writeFileSync(given.export, "");
  assert.equal((await run("--export", given.export)).code, 2);
  writeFileSync(String(given.jwks), '{"keys":[]}');
  assert.equal((await run("--export", given.export, "--jwks", String(given.jwks))).code, 2);
});

// --- the export of the command ----------------------------------------------------------------------------------

const by = ({ store }: Trail, ...words: string[]): Promise<HostRun> => {
  const settings = { issuer: ISSUER, policy: { digest: "sha256:0" } } as Settings;
  return runCommand(["audit", ...words], { settings, store, encryptionKeys: [TRAIL_KEY] });
};
const exportBy = (trail: Trail, ...words: string[]): Promise<HostRun> => by(trail, "export", ...words);

/** What `audit verify` says of a folder, with these further words. */
const verifyFolder = (folder: string, ...words: string[]): Promise<HostRun> =>
  runCommandLine([
    ...["audit", "verify", "--export", join(folder, "events.ndjson")],
    ...["--checkpoints", join(folder, "checkpoints.ndjson"), "--jwks", join(folder, "jwks.json"), ...words],
  ]);

/** as-1 has records 0 to 35 and a checkpoint each ten; admin is named by them. Each record is a minute after the last. */
async function makeLongTrail(t: TestContext): Promise<Trail> {
  const trail = await makeTrail(t);
  const [admin, journal] = [await trail.journal("admin"), await trail.journal("as-1")];
  const checkpoints = trail.checkpoints("as-1", journal);
  for (let one = 0; one < 30; one++) {
    trail.clock.pass(60_000);
    if (one % 10 === 9) await checkpoints.write();
    await record(one % 5 === 4 ? admin : journal, 1);
  }
  await checkpoints.close();
  assert.deepEqual(trail.faults, []);
  return trail;
}

test("AUDIT-D-7 audit export writes a new folder that verify accepts, for its owner alone", async (t) => {
  const trail = await makeLongTrail(t);
  const parent = scratch(t);
  const folder = join(parent, "export");
  const run = await exportBy(trail, folder);
  assert.equal(run.code, 0, run.err);
  const verified = await verifyFolder(folder);
  assert.equal(verified.code, 0, verified.err);
  const { length } = readFileSync(join(folder, "events.ndjson"), "utf8").trimEnd().split("\n");
  assert.match(verified.out, new RegExp(`^No error found in ${length} records\\.$`, "m"));
  // The export is itself in the export (AUDIT-D-6).
  assert.match(readFileSync(join(folder, "events.ndjson"), "utf8"), /"command":"audit export"/);
  const modes = readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777]);
  assert.deepEqual(modes.toSorted(), [
    ["checkpoints.ndjson", 0o600],
    ["events.ndjson", 0o600],
    ["jwks.json", 0o600],
    ["policies.ndjson", 0o600],
  ]);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(parent), ["export"]);
  // The words that it prints are those that verify it.
  const words = run.out.split("\n").find((line) => line.includes("audit verify --export")) ?? "";
  assert.equal((await runCommandLine(words.trim().split(" ").slice(1))).code, 0, words);
});

const archivedPolicy = (title: string) => {
  const body = canonicalize({ issuer: "https://as.example", policies: [], targets: [], title, v: 1 });
  return { digest: `sha256:${sha256("sha256", body, "hex")}`, body, usedAtSeconds: 1_790_000_000 };
};

test("REPL-D-2 an export has the policies that decided, and an archive that was changed or is missing is told", async (t) => {
  const trail = await makeTrail(t);
  const policies = ["\u00fc \u2028", "other"].map(archivedPolicy);
  for (const one of policies) await trail.store.policies.add(one);
  const journal = await trail.journal("as-1");
  const checkpoints = trail.checkpoints("as-1", journal);
  await record(journal, 3);
  await checkpoints.close();
  const folder = join(scratch(t), "export");
  assert.equal((await exportBy(trail, folder)).code, 0);
  const file = join(folder, "policies.ndjson");
  const verified = () => verifyFolder(folder, "--policies", file);
  const good = await verified();
  assert.equal(good.code, 0, good.err);
  assert.match(good.out, /^Each of 2 archived policies has its digest\.$/m);
  const text = readFileSync(file, "utf8");
  const cases: readonly [string, RegExp][] = [
    [
      text.replace('"policies":[]', '"policies":[1]'),
      /line 1: the policy "?sha256:\w+"? does not have this digest/,
    ],
    [`${text}{}\n`, /line 3: this is not an archived policy/],
    [text.slice(0, -3), /line 2: this is not an archived policy/],
  ];
  for (const [changed, says] of cases) {
    writeFileSync(file, changed);
    const run = await verified();
    assert.equal(run.code, 1);
    assert.match(run.err, says);
    assert.match(run.err, /The trail is intact, and the archive of its policies is not/);
  }
});

test("REPL-D-2 audit verify tells a policy in the store that was changed", async (t) => {
  const trail = await makeTrail(t);
  const one = archivedPolicy("one");
  await trail.store.policies.add({ ...one, body: one.body.replace("one", "two") });
  await record(await trail.journal("as-1"), 1);
  const said: string[] = [];
  const say = (line: string): void => void said.push(line);
  const host = { agents: compileAgents({}), store: trail.store, print: say, printError: say };
  assert.equal(await verifyLogs(host, false), 1);
  assert.match(said.join("\n"), /the policy "?sha256:\w+"? does not have this digest: it was changed/);
});

test("audit export fills an empty folder; one that holds something, and a file, are refused and left as they are", async (t) => {
  const trail = await makeLongTrail(t);
  const parent = scratch(t);
  const [empty, full, file] = ["empty", "full", "file"].map((name) => join(parent, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(empty);
  mkdirSync(full);
  writeFileSync(join(full, "events.ndjson"), "kept");
  writeFileSync(file, "kept");
  assert.equal((await exportBy(trail, `${empty}/`)).code, 0);
  assert.equal((await verifyFolder(empty)).code, 0);
  for (const taken of [full, file]) {
    const run = await exportBy(trail, taken);
    assert.equal(run.code, 1);
    assert.match(run.err, /is not an empty folder, and nothing was written/);
  }
  assert.deepEqual(readdirSync(full), ["events.ndjson"]);
  assert.equal(readFileSync(join(full, "events.ndjson"), "utf8") + readFileSync(file, "utf8"), "keptkept");
  assert.deepEqual(readdirSync(parent).toSorted(), ["empty", "file", "full"]);
});

test("audit export that fails on its way leaves no folder", async (t) => {
  const trail = await makeLongTrail(t);
  const parent = scratch(t);
  const settings = { policy: { digest: "sha256:0" } } as Settings;
  // Keys are opened after the events are written, and these are not their keys.
  const other = { settings, store: trail.store, encryptionKeys: [new Uint8Array(32).fill(8)] as const };
  await assert.rejects(runCommand(["audit", "export", join(parent, "export")], other), KeysUnusable);
  assert.deepEqual(readdirSync(parent), []);
});

test("AUDIT-D-7 audit export hides no truncation: a checkpoint that covers more is exported too", async (t) => {
  const trail = await makeLongTrail(t);
  const folder = join(scratch(t), "export");
  const db = new DatabaseSync(trail.file);
  db.exec("delete from event where log = 'as-1' and seq > 20");
  db.close();
  assert.equal((await exportBy(trail, folder)).code, 0);
  const verified = await verifyFolder(folder);
  assert.equal(verified.code, 1);
  assert.match(verified.err, /^as-1: record 21 is missing: the log was truncated/m);
});

test("AUDIT-D-15 an export that is older than the witness is not called changed, and one that lost records since is", async (t) => {
  const trail = await makeLongTrail(t);
  const parent = scratch(t);
  const folder = join(parent, "export");
  assert.equal((await exportBy(trail, folder)).code, 0);
  // A minute later the log has grown, and the witness has a checkpoint of all of it.
  trail.clock.set(Date.now() + 60_000);
  const journal = await trail.journal("as-1");
  const witness = await openWitness({ file: join(parent, "witness") });
  const checkpoints = trail.checkpoints("as-1", journal, { witness });
  await record(journal, 5);
  await checkpoints.close();
  const words = ["--witness", join(parent, "witness")];
  const older = await verifyFolder(folder, ...words);
  assert.equal(older.code, 2, older.err);
  assert.match(
    older.err,
    /^as-1: the witness's checkpoint of as-1 at \d+ is younger than the export, which ends before it$/m,
  );
  assert.match(older.err, /^Not decided: .* Export again, and verify that with the same witness\.$/m);
  const events = join(folder, "events.ndjson");
  const lines = readFileSync(events, "utf8").trimEnd().split("\n");
  const last = lines.findLastIndex((line) => placeOf(line).startsWith("as-1/"));
  writeFileSync(events, lines.toSpliced(last, 1).join("\n"));
  const truncated = await verifyFolder(folder, ...words);
  assert.equal(truncated.code, 1, truncated.err);
  assert.match(truncated.err, /^as-1: record (\d+) is missing: the export was made of \d+ records$/m);
  const again = join(parent, "again");
  assert.equal((await exportBy(trail, again)).code, 0);
  const complete = await verifyFolder(again, ...words);
  assert.equal(complete.code, 0, complete.err);
});

test("AUDIT-D-7 a part of the trail is exported from a checkpoint on, and verified as a part", async (t) => {
  const trail = await makeLongTrail(t);
  const folder = join(scratch(t), "export");
  const all = (await exportOf(trail.store)).map((body) => JSON.parse(body));
  const ofLog = all.filter(({ log }) => log === "as-1");
  const [since, until] = [ofLog[18]?.time, ofLog[24]?.time];
  const run = await exportBy(trail, folder, "--since", since, "--until", until);
  assert.equal(run.code, 0, run.err);
  const lines = readFileSync(join(folder, "events.ndjson"), "utf8").trimEnd().split("\n");
  const exported = lines.map((line) => JSON.parse(line));
  const wanted = all.filter(({ time }) => time >= since && time < until);
  assert.ok(wanted.every(({ log, seq }) => lines.some((line) => placeOf(line) === `${log}/${seq}`)));
  assert.ok(exported.every(({ time }) => time < until));
  assert.ok(exported.length < all.length / 2);
  const verified = await verifyFolder(folder, "--partial");
  assert.equal(verified.code, 0, verified.err);
  assert.match(verified.out, /^as-1: \d+ records, chain intact from record 17 \(the part begins there, /m);
  assert.match(verified.out, /Not proven: what was before and behind the part/);
  // Not as the whole trail, and not when one of its records was changed or is missing.
  assert.equal((await verifyFolder(folder)).code, 1);
  const events = join(folder, "events.ndjson");
  const at = lines.findIndex((line) => placeOf(line) === "as-1/20");
  writeFileSync(events, lines.with(at, edit(lines[at] ?? "", { reason: "another" })).join("\n"));
  const changed = await verifyFolder(folder, "--partial");
  assert.deepEqual(
    [changed.code, /^as-1: .*record 20 was changed/m.test(changed.err)],
    [1, true],
    changed.err,
  );
  writeFileSync(events, lines.toSpliced(at, 1).join("\n"));
  assert.match((await verifyFolder(folder, "--partial")).err, /^as-1: record 20 is missing/m);
  const none = await exportBy(trail, join(folder, "none"), "--until", "2001-01-01T00:00:00Z");
  assert.deepEqual([none.code, /no event/.test(none.err)], [1, true]);
});

test("an export with a missing record and very many behind it is verified", () => {
  const proof = new LogProof([]);
  const rest = { prev: GENESIS_PREV, hash: GENESIS_PREV, genesis: false, ended: false, timeMs: 0, below: [] };
  for (let seq = 1; seq <= 300_000; seq++) proof.take({ seq, ...rest });
  proof.end(0);
  assert.equal(proof.failure, "record 0 is missing");
});

test("AUDIT-D-6, RCPT-D-6 audit receipt prints what a verifier accepts with the key of the log, and records that", async (t) => {
  const trail = await makeTrail(t);
  const journal = await trail.journal("as-1");
  const checkpoints = trail.checkpoints("as-1", journal);
  await journal.record({ event: issuing("t-1") });
  await journal.record({ event: { ...issuing("t-2"), job: { id: "job-1" } } });
  await journal.record({ event: { ...EVENT, type: "job.ended", job: { id: "job-1" } } });
  await checkpoints.close();
  const receipts = (...words: string[]) => by(trail, "receipt", ...words);
  const keys = (await by(trail, "keys")).out.split("\n").flatMap((line) => line.split(" ").slice(0, 1));
  const key = keys.filter((one) => one.startsWith("as.example/audit/as-1+"));
  const { verify, folder } = await loadVerifier();
  t.after(() => forget(folder));
  const one = await receipts("t-1");
  assert.equal(one.code, 0, one.err);
  assert.equal(verify(one.out, { keys: key }).token.jti, "t-1");
  assert.ok(!one.out.includes(Buffer.from("user-t-1").toString("base64").slice(0, -4)));
  const job = (await receipts("job-1", "--of-job", "--chain", "--rest")).out.split(/^(?=c2sp)/m);
  const types = job.map((text) => verify(text, { keys: key }).token.type);
  assert.deepEqual(types, ["token_exchange.delegation", "job.ended"]);
  const none = await receipts("t-9");
  assert.deepEqual([none.code, none.err], [1, "No event records a token with this jti: t-9.\n"]);
  await journal.record({ event: issuing("t-3") });
  assert.match((await receipts("t-3")).err, /No checkpoint covers event \d of as-1 yet/);
  const looks = (await exportOf(trail.store)).map((body) => JSON.parse(body).detail?.command);
  assert.equal(looks.filter((command) => command === "audit receipt").length, 4);
});
