import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { readAudit } from "../../src/config/audit.ts";
import { makeReader } from "../../src/config/reader.ts";
import type { ConfigFile } from "../../src/config/schema.ts";
import { ConfigFile as Schema } from "../../src/config/schema.ts";
import { CHECKPOINT_EVENTS, CHECKPOINT_SECONDS, RETENTION_DAYS } from "../../src/limits.ts";

const FOLDER = "/etc/mandate";

function read(audit: object) {
  const parsed = v.safeParse(Schema.entries.audit, { instance: "as-1", ...audit });
  if (!parsed.success) return undefined;
  const reader = makeReader(FOLDER, true);
  const value = readAudit({ audit: parsed.output } as ConfigFile, FOLDER, reader);
  return { value, problems: reader.problems };
}

test("AUDIT-D-8 checkpoints and retention have defaults; there is no witness unless one is named", () => {
  assert.deepEqual(read({})?.value, {
    checkpoint: { events: CHECKPOINT_EVENTS, seconds: CHECKPOINT_SECONDS },
    retentionDays: RETENTION_DAYS,
  });
  assert.deepEqual(read({ checkpoint: { events: 5 }, retentionDays: 30 })?.value, {
    checkpoint: { events: 5, seconds: CHECKPOINT_SECONDS },
    retentionDays: 30,
  });
});

const url = "https://witness.example/checkpoints";
const witnesses: [string, unknown, object | string][] = [
  ["a file, named relative to the configuration", { file: "w" }, { file: `${FOLDER}/w` }],
  ["standard output", "stdout", "stdout"],
  ["a sink", { url }, { sink: { url, privateNetworks: [] } }],
  [
    "a sink in a private network",
    { url, privateNetworks: ["10.0.0.0/8"] },
    { sink: { url, privateNetworks: ["10.0.0.0/8"] } },
  ],
];
for (const [what, witness, want] of witnesses) {
  test(`a witness is ${what}`, () => assert.deepEqual(read({ witness })?.value.witness, want));
}

const refused: [string, object][] = [
  ["a witness of another kind", { witness: "stderr" }],
  ["a witness over plain HTTP", { witness: { url: "http://witness.example/" } }],
  ["a witness with an unknown setting", { witness: { url, token: "x" } }],
  ["a checkpoint after no event", { checkpoint: { events: 0 } }],
  ["a checkpoint after no time", { checkpoint: { seconds: 0 } }],
  ["a checkpoint that never comes", { checkpoint: { seconds: 86_401 } }],
  ["a retention of nothing", { retentionDays: 0 }],
  ["a retention of half a day", { retentionDays: 0.5 }],
];
for (const [what, audit] of refused) {
  test(`refuses ${what}`, () => assert.equal(read(audit), undefined));
}

test("the secret of a sink is never inline in production", () => {
  const { problems = [] } = read({ witness: { url, authorization: "Bearer x" } }) ?? {};
  assert.deepEqual(problems, [
    'audit.witness.authorization: is inline, which the production profile refuses: use { "file": … } or { "env": … }',
  ]);
});
