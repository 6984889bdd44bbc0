import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { readAudit } from "../../src/config/audit.ts";
import { makeReader } from "../../src/config/reader.ts";
import { ConfigFile as Schema } from "../../src/config/schema.ts";
import { CHECKPOINT_EVENTS, CHECKPOINT_SECONDS, RETENTION_DAYS } from "../../src/limits/audit.ts";
import { LEASE_SECONDS } from "../../src/limits/store.ts";

const FOLDER = "/etc/mandate";
const STORE = { sqlite: "mandate.sqlite", startSeconds: 0 };

function read(audit: object) {
  const parsed = v.safeParse(Schema.entries.audit, { instance: "as-1", ...audit });
  if (!parsed.success) return undefined;
  const reader = makeReader(FOLDER, true);
  const value = readAudit({ audit: parsed.output, store: STORE }, FOLDER, reader);
  return { value, problems: reader.problems, warnings: reader.warnings };
}

const NAMED = { instance: "as-1", leaseSeconds: LEASE_SECONDS };

test("AUDIT-D-8 checkpoints and retention have defaults, and a witness has none", () => {
  assert.deepEqual(read({})?.value, {
    ...NAMED,
    checkpoint: { events: CHECKPOINT_EVENTS, seconds: CHECKPOINT_SECONDS },
    retentionDays: RETENTION_DAYS,
  });
  assert.deepEqual(read({ checkpoint: { events: 5 }, retentionDays: 30 })?.value, {
    ...NAMED,
    checkpoint: { events: 5, seconds: CHECKPOINT_SECONDS },
    retentionDays: 30,
  });
});

const url = "https://witness.example/checkpoints";
const witnesses: [string, unknown, object | string][] = [
  ["a file relative to the configuration", { file: "w" }, { file: `${FOLDER}/w` }],
  ["standard output", "stdout", "stdout"],
  ["a sink", { url }, { sink: { url, privateNetworks: [] } }],
  [
    "a sink in a private network",
    { url, privateNetworks: ["10.0.0.0/8"] },
    { sink: { url, privateNetworks: ["10.0.0.0/8"] } },
  ],
];
for (const [what, witness, want] of witnesses) {
  test(`the witness ${what} is accepted`, () => assert.deepEqual(read({ witness })?.value.witness, want));
}

const refused: [string, object][] = [
  ["a witness of another kind", { witness: "stderr" }],
  ["a witness over plain HTTP", { witness: { url: "http://witness.example/" } }],
  ["a witness with an unknown setting", { witness: { url, token: "x" } }],
  ["a checkpoint after zero events", { checkpoint: { events: 0 } }],
  ["a checkpoint after zero seconds", { checkpoint: { seconds: 0 } }],
  ["a checkpoint interval of more than a day", { checkpoint: { seconds: 86_401 } }],
  ["a lease of zero seconds", { leaseSeconds: 0 }],
  ["a lease of more than a minute", { leaseSeconds: 61 }],
  ["an instance name without characters", { instance: "" }],
  ["a retention of zero days", { retentionDays: 0 }],
  ["a retention of half a day", { retentionDays: 0.5 }],
];
for (const [what, audit] of refused) {
  test(`CONF-D-9 ${what} is refused`, () => assert.equal(read(audit), undefined));
}

test("an inline secret of a sink is refused in production", () => {
  const { problems = [] } = read({ witness: { url, authorization: "Bearer x" } }) ?? {};
  assert.deepEqual(problems, [
    'audit.witness.authorization: is inline, which the production profile refuses: use { "file": … } or { "env": … }',
  ]);
});

const INSTANCE = "MANDATE_TEST_INSTANCE";
const names: [name: string | undefined, instance: unknown, problem: RegExp | undefined][] = [
  ["as-2", { env: INSTANCE }, undefined],
  [undefined, { env: INSTANCE }, /^audit\.instance\.env: MANDATE_TEST_INSTANCE is not set/],
  ["", { env: INSTANCE }, /^audit\.instance\.env: is not an instance name/],
  ["as.2", { env: INSTANCE }, /^audit\.instance\.env: is not an instance name/],
  ["admin", { env: INSTANCE }, /^audit\.instance\.env: is reserved/],
  ["as-2", "admin", /^audit\.instance: is reserved/],
];
for (const [name, instance, problem] of names) {
  const what = `${JSON.stringify(instance)} where the environment has ${JSON.stringify(name)}`;
  test(`AUDIT-D-11 the name of the instance: ${what}`, (t) => {
    if (name !== undefined) process.env[INSTANCE] = name;
    t.after(() => delete process.env[INSTANCE]);
    const { value, problems = [] } = read({ instance }) ?? {};
    if (problem === undefined) assert.deepEqual([value?.instance, problems], [name, []]);
    else assert.match(problems.join(), problem);
  });
}

test("a lease is told to be without effect on SQLite", () => {
  assert.match(
    read({ leaseSeconds: 9 })?.warnings[0] ?? "",
    /^audit\.leaseSeconds: is without effect on SQLite/,
  );
  assert.deepEqual(read({})?.warnings, []);
});
