import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfirmation } from "../../src/spec/rfc7800.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";

const thumbprint = "ieJgPBGOgcJzDHiliyznWq2nHk527PZHaBlYo6jTJEo";
const jkt = { jkt: thumbprint };
const x5t = { "x5t#S256": thumbprint };

const cases: readonly (readonly [string, JsonObject, unknown])[] = [
  ["RFC9449-6-1 reads the thumbprint of a key", { cnf: jkt }, jkt],
  ["RFC8705-3.1-1 reads the thumbprint of a certificate", { cnf: x5t }, x5t],
  ["RFC7800-3.1-v2 other members beside one are ignored", { cnf: { ...jkt, kid: "k", more: {} } }, jkt],
  ["RFC9449-6-1 finds no key in claims without cnf", { jkt: thumbprint }, undefined],
  ["RFC7800-3.1-v1 knows no single key where there are two", { cnf: { ...jkt, ...x5t } }, "unknown"],
  [
    "RFC7800-3.1-v1 knows no single key beside a malformed one",
    { cnf: { ...jkt, "x5t#S256": 1 } },
    "unknown",
  ],
  [
    "RFC7800-3.1-v2 takes a key that is not understood as one that cannot be proven",
    { cnf: { jwk: {} } },
    "unknown",
  ],
  ["RFC7800-3.1-v2 takes an empty cnf so", { cnf: {} }, "unknown"],
  ...[null, "x", 1, [], [jkt], true].map(
    (cnf) => [`RFC7800-3.1-v2 takes ${JSON.stringify(cnf)} so`, { cnf } as JsonObject, "unknown"] as const,
  ),
  ["RFC8705-3.1-3 takes a padded thumbprint so", { cnf: { "x5t#S256": `${thumbprint}=` } }, "unknown"],
  [
    "RFC8705-3.1-4 takes a thumbprint with a line break so",
    { cnf: { "x5t#S256": `${thumbprint}\n` } },
    "unknown",
  ],
  ["RFC9449-6.1-1 takes a thumbprint that is too short so", { cnf: { jkt: thumbprint.slice(1) } }, "unknown"],
];
for (const [name, claims, want] of cases) {
  test(name, () => assert.deepEqual(readConfirmation(claims), want));
}
