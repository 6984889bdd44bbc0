import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfirmation } from "../../src/spec/rfc7800.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";

const thumbprint = "ieJgPBGOgcJzDHiliyznWq2nHk527PZHaBlYo6jTJEo";
const jkt = { jkt: thumbprint };
const x5t = { "x5t#S256": thumbprint };

const cases: readonly (readonly [string, JsonObject, unknown])[] = [
  ["RFC9449-6-1 the thumbprint of a key is read", { cnf: jkt }, jkt],
  ["RFC8705-3.1-1 the thumbprint of a certificate is read", { cnf: x5t }, x5t],
  ["RFC7800-3.1-v2 other members beside one are ignored", { cnf: { ...jkt, kid: "k", more: {} } }, jkt],
  ["RFC9449-6-1 no key is found in claims without cnf", { jkt: thumbprint }, undefined],
  ["RFC7800-3.1-v1 no single key is known where there are two", { cnf: { ...jkt, ...x5t } }, "unknown"],
  [
    "RFC7800-3.1-v1 no single key is known beside a malformed one",
    { cnf: { ...jkt, "x5t#S256": 1 } },
    "unknown",
  ],
  [
    "RFC7800-3.1-v2 a key that is not understood is taken as one that cannot be proven",
    { cnf: { jwk: {} } },
    "unknown",
  ],
  ["RFC7800-3.1-v2 an empty cnf is taken for a key that cannot be proven", { cnf: {} }, "unknown"],
  ...[null, "x", 1, [], [jkt], true].map(
    (cnf) =>
      [
        `RFC7800-3.1-v2 ${JSON.stringify(cnf)} is taken for a key that cannot be proven`,
        { cnf } as JsonObject,
        "unknown",
      ] as const,
  ),
  [
    "RFC8705-3.1-3 a padded thumbprint is taken for a key that cannot be proven",
    { cnf: { "x5t#S256": `${thumbprint}=` } },
    "unknown",
  ],
  [
    "RFC8705-3.1-4 a thumbprint with a line break is taken for a key that cannot be proven",
    { cnf: { "x5t#S256": `${thumbprint}\n` } },
    "unknown",
  ],
  [
    "RFC9449-6.1-1 a thumbprint that is too short is taken for a key that cannot be proven",
    { cnf: { jkt: thumbprint.slice(1) } },
    "unknown",
  ],
];
for (const [name, claims, want] of cases) {
  test(name, () => assert.deepEqual(readConfirmation(claims), want));
}
