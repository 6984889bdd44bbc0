import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { generateKeyPair, SignJWT } from "jose";
import { verifyLogs } from "../../scripts/admin/audit.ts";
import type { Files } from "../../scripts/audit-verify.ts";
import { verifyAudit } from "../../scripts/audit-verify.ts";
import { eventHash } from "../../src/adapters/audit/journal.ts";
import { keepRetention } from "../../src/adapters/audit/retention.ts";
import { openWitness } from "../../src/adapters/audit/witness.ts";
import { verifier } from "../../src/adapters/crypto/jose.ts";
import type { Settings } from "../../src/settings/settings.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { canonicalize } from "../../src/spec/rfc8785.ts";
import type { Trail } from "../support/trail.ts";
import { EVENT, exportOf, makeTrail, record } from "../support/trail.ts";

const SCRIPT = join(import.meta.dirname, "../../scripts/audit-verify.ts");

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
 * Two logs. as-1: records 0 to 17, checkpoints at 6, 12 and 17, of which the witness has the first two. admin:
 * records 0 to 3, named by the checkpoints.
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

/** Writes them into files; without a name of its own a file is not given to the verifier. */
function files(made: Material, given: readonly ("checkpoints" | "witness" | "jwks")[]): Files {
  const write = (name: string, text: string): string => {
    writeFileSync(join(made.folder, name), text);
    return join(made.folder, name);
  };
  const lines = (list: readonly string[]): string => list.map((line) => `${line}\n`).join("");
  return {
    export: write("export", lines(made.events)),
    ...(given.includes("checkpoints") && { checkpoints: write("checkpoints", lines(made.checkpoints)) }),
    ...(given.includes("witness") && { witness: write("kept", lines(made.witness)) }),
    ...(given.includes("jwks") && { jwks: write("jwks", JSON.stringify(made.jwks)) }),
  };
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

/** Every record of as-1 from a place on, chained anew. */
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

test("AUDIT-D-7, RFC9162-2.1.1-2 finds nothing wrong with what was written, and says what it leaves open", async (t) => {
  const made = await makeMaterial(t);
  const { code, text } = await verify(made);
  assert.equal(code, 0, text);
  assert.match(text, /^as-1: 18 records, unbroken from the first$/m);
  assert.match(text, /^admin: 4 records, unbroken from the first$/m);
  // The third checkpoint, and the records behind it, the witness does not have.
  assert.match(
    text,
    /that as-1 had no more records than these; the last witnessed checkpoint vouches for 12 records/,
  );
  assert.doesNotMatch(text, /without a witness|Without --jwks/);
});

test("AUDIT-D-7 without a witness it says that a cut tail and a lost log are beyond it", async (t) => {
  const made = await makeMaterial(t);
  const { code, text } = await verify(made, ["checkpoints"]);
  assert.equal(code, 0, text);
  assert.match(
    text,
    /Not proven, without a witness: that no tail was cut off together with its checkpoints, that no log/,
  );
  assert.match(text, /Not proven: who signed the checkpoints/);
  assert.match((await verify(made, [])).text, /no checkpoint vouches for it/);
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
  "a changed record, from the chain alone": {
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
    says: /^admin: (record 3|the first bad one is among records 0 to 3): /m,
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
  "a missing beginning": {
    change: (made) => {
      for (const seq of [0, 1]) made.events.splice(index(made, `as-1/${seq}`), 1);
    },
    says: /^as-1: records 0 to 1 are missing$/m,
  },
  "a missing beginning up to a checkpoint, with no event of a removal": {
    change: (made) => {
      made.events = made.events.filter((body) => {
        const { log, seq } = JSON.parse(body);
        return log !== "as-1" || seq >= 5;
      });
    },
    says: /^as-1: records 0 to 4 are missing$/m,
  },
  "a missing record whose successors were numbered anew": {
    change: (made) => {
      made.events.splice(index(made, "as-1/7"), 1);
      for (const [at, body] of made.events.entries()) {
        const { log, seq } = JSON.parse(body);
        if (log === "as-1" && seq > 7) made.events[at] = edit(body, { seq: seq - 1 });
      }
    },
    says: /^as-1: record 7 was changed$/m,
  },
  "two records in each other's lines": {
    change: (made) => {
      const [a, b] = [index(made, "as-1/7"), index(made, "as-1/8")];
      [made.events[a], made.events[b]] = [made.events[b] ?? "", made.events[a] ?? ""];
    },
    says: /^as-1: record 7 stands behind record 8: the records were reordered$/m,
  },
  "two records in each other's places": {
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
    says: /^as-1: record 7 (is there twice: the log is forked|stands behind)/m,
  },
  "a record that is there twice": {
    change: (made) => void made.events.push(made.events[index(made, "admin/3")] ?? ""),
    says: /^admin: record 3 is there twice: the log is forked$/m,
  },
  "a chain computed anew from one record on": {
    change: (made) => rechain(made, 8, (body) => edit(body, { reason: "another" })),
    says: /^as-1: the first bad one is among records 6 to 11: .* vouches for another$/m,
  },
  "a chain computed anew, with only the witness to tell": {
    change: (made) => rechain(made, 2, (body) => edit(body, { reason: "another" })),
    given: ["witness", "jwks"],
    says: /^as-1: the first bad one is among records 0 to 5: .*the witness's checkpoint of as-1 at 6 vouches/m,
  },
  "a cut tail": {
    change: (made) => {
      made.events = made.events.filter((body) => !/^as-1\/1[4-9]$/.test(placeOf(body)));
    },
    says: /^as-1: record 14 is missing: the log is cut off, the checkpoint of as-1 at 17 vouches for 17 records$/m,
  },
  "a tail that was cut together with its checkpoints": {
    change: (made) => {
      made.events = made.events.filter((body) => !/^as-1\/(8|9|1\d)$/.test(placeOf(body)));
      made.checkpoints.splice(1);
    },
    says: /^as-1: record 8 is missing: the log is cut off, the witness's checkpoint of as-1 at 12 vouches for 12/m,
  },
  "a log that is gone with its checkpoints": {
    change: (made) => {
      made.events = made.events.filter((body) => !placeOf(body).startsWith("as-1/"));
      made.checkpoints = [];
    },
    says: /^as-1: the whole log is gone, record 0 first: the witness's checkpoint/m,
  },
  "a log without checkpoints of its own that is gone": {
    change: (made) => {
      made.events = made.events.filter((body) => !placeOf(body).startsWith("admin/"));
    },
    given: ["witness", "jwks"],
    says: /^admin: the whole log is gone, record 0 first: /m,
  },
  "a log that begins in the middle of one": {
    change: (made) => {
      const at = index(made, "as-1/7");
      made.events[at] = edit(made.events[at] ?? "", { type: "log.genesis" });
    },
    given: [],
    says: /^as-1: record 7 begins a log in the middle of one$/m,
  },
  "a first record that is no beginning": {
    change: (made) => {
      const at = index(made, "as-1/0");
      made.events[at] = edit(made.events[at] ?? "", { type: "token.issued" });
    },
    given: [],
    says: /^as-1: record 0 is not log.genesis$/m,
  },
  "a line that is no record": {
    change: (made) => void made.events.push('{"v":1,"log":"as-1"}'),
    says: /export, line 23: this is no record of an audit log$/m,
  },
  "a checkpoint with another signature": {
    change: (made) => {
      const { checkpoint } = JSON.parse(made.checkpoints[0] ?? "");
      const [header, , signature] = checkpoint.split(".");
      const [, payload] = JSON.parse(made.checkpoints[1] ?? "").checkpoint.split(".");
      made.checkpoints[1] = [header, payload, signature].join(".");
    },
    says: /checkpoints, line 2: this checkpoint has a wrong signature$/m,
  },
};

for (const [what, { change, says, given = ALL }] of Object.entries(tamperings)) {
  test(`AUDIT-D-7 names the first bad record: ${what}`, async (t) => {
    const made = await makeMaterial(t);
    change(made);
    const { code, text } = await verify(made, given);
    assert.match(text, says);
    assert.equal(code, 1);
  });
}

const unseen: Record<string, (made: Material) => void> = {
  "a tail that was cut together with its checkpoints": (made) => {
    made.events = made.events.filter((body) => !/^as-1\/(8|9|1\d)$/.test(placeOf(body)));
    made.checkpoints.splice(1);
  },
  "a log that is gone with its checkpoints": (made) => {
    made.events = made.events.filter((body) => !placeOf(body).startsWith("as-1/"));
    made.checkpoints = [];
  },
};
for (const [what, change] of Object.entries(unseen)) {
  test(`AUDIT-D-7 cannot see without a witness, and says so: ${what}`, async (t) => {
    const made = await makeMaterial(t);
    change(made);
    const { code, text } = await verify(made, ["checkpoints", "jwks"]);
    assert.equal(code, 0, text);
    assert.match(text, /Not proven, without a witness: /);
  });
}

test("RFC8725-3.11-v1 a checkpoint by a stranger's key, or of another type, vouches for nothing", async (t) => {
  const made = await makeMaterial(t);
  const { privateKey } = await generateKeyPair("ES256");
  const sign = (typ: string) =>
    new SignJWT({ log: "as-1" }).setProtectedHeader({ alg: "ES256", kid: "x", typ }).sign(privateKey);
  made.checkpoints.push(await sign("at+jwt"));
  const { code, text } = await verify(made);
  assert.equal(code, 1);
  assert.match(text, /line 4: this checkpoint does not say what a checkpoint says$/m);
  const { checkpoint } = JSON.parse(made.checkpoints[0] ?? "");
  const { privateKey: other } = await generateKeyPair("ES256");
  const claims = JSON.parse(Buffer.from(checkpoint.split(".")[1], "base64url").toString());
  const header = { alg: "ES256", kid: "x", typ: "audit-checkpoint+jwt" };
  made.checkpoints[3] = await new SignJWT(claims).setProtectedHeader(header).sign(other);
  const stranger = await verify(made);
  assert.equal(stranger.code, 1);
  assert.match(
    stranger.text,
    /line 4: this checkpoint is signed with a key that is not in the key set \(x\)$/m,
  );
});

test("what a witness has beside checkpoints is passed over, and said", async (t) => {
  const made = await makeMaterial(t);
  made.witness.push("Mandate listens", '{"level":"info"}', "");
  const { code, text } = await verify(made);
  assert.equal(code, 0);
  assert.match(text, /kept: 3 lines are no checkpoints and were passed over$/m);
});

test("AUDIT-D-8 what retention removed is not missing, and what follows is proven from its checkpoint on", async (t) => {
  const folder = scratch(t);
  const trail = await makeTrail(t);
  const { store, signer, clock, faults } = trail;
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
  const retention = keepRetention({ store, journal, signer, verifier, clock, days: 9, onFault });
  await retention.run();
  await retention.close();
  await checkpoints.close();
  assert.deepEqual(faults, []);
  const made = await material(trail, folder);
  const said: string[] = [];
  const say = (line: string): void => void said.push(line);
  const settings = { policy: { digest: "sha256:0" } } as Settings;
  assert.equal(await verifyLogs({ settings, store, print: say, printError: say }), 0, said.join("\n"));
  assert.match(said.join("\n"), /^as-1: \d+ events, chain intact from event 9 \(retention removed/m);
  const { code, text } = await verify(made);
  assert.equal(code, 0, text);
  assert.match(text, /^as-1: \d+ records, unbroken from record 9, where retention/m);
  assert.match(text, /^admin: 3 records, unbroken from record 4, where retention/m);

  const { events } = made;
  // The checkpoint that it begins with is what proves it.
  assert.match(
    (await verify({ ...made, checkpoints: [], witness: [] })).text,
    /no checkpoint vouches for record 9/,
  );
  // One more record is not retention's.
  const cut = events.filter((body) => placeOf(body) !== "as-1/9");
  const missing = await verify({ ...made, events: cut });
  assert.equal(missing.code, 1);
  assert.match(missing.text, /^as-1: .*record 9/m);
  const changed = [...events];
  const at = events.findIndex((body) => placeOf(body) === "as-1/11");
  changed[at] = edit(events[at] ?? "", { reason: "another" });
  assert.match((await verify({ ...made, events: changed })).text, /^as-1: record 11 was changed$/m);
});

test("the command prints its verdict and leaves its exit code", async (t) => {
  const made = await makeMaterial(t);
  const run = (...words: string[]) => spawnSync(process.execPath, [SCRIPT, ...words], { encoding: "utf8" });
  const given = files(made, ALL);
  const words = Object.entries(given).flatMap(([name, file]) => [`--${name}`, String(file)]);
  const good = run(...words);
  assert.equal(good.status, 0, good.stderr);
  assert.match(good.stdout, /Nothing is wrong with these 22 records\.$/m);
  writeFileSync(given.export, made.events.slice(1).join("\n"));
  const bad = run(...words);
  assert.equal(bad.status, 1);
  assert.match(bad.stderr, /record 0 is missing/);
  for (const wrong of [[], ["--export", join(made.folder, "none")], ["--other", "x"]]) {
    const result = run(...wrong);
    assert.equal(result.status, 2, result.stderr);
    assert.match(result.stderr, /npm run audit-verify/);
  }
  writeFileSync(given.export, "");
  assert.equal(run("--export", given.export).status, 2);
  writeFileSync(String(given.jwks), '{"keys":[]}');
  assert.equal(run("--export", given.export, "--jwks", String(given.jwks)).status, 2);
});
