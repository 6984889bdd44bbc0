import assert from "node:assert/strict";
import { test } from "node:test";
import type { Admission } from "../../../src/spec/spiffe/client-auth.ts";
import { JWT_SPIFFE, resolveClient } from "../../../src/spec/spiffe/client-auth.ts";

const planner = "spiffe://td.example/agents/planner";

test("SPCA-3.1-1 the assertion type is this URN", () => {
  assert.equal(JWT_SPIFFE, "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe");
});

type Case = [string, string | undefined, Admission, boolean, string];
const cases: Case[] = [
  ["PROD-2.1-6, PROD-2.1-7, PROD-4.1v3-4 uses the SPIFFE ID as client_id", undefined, "all", false, "ok"],
  ["SPCA-3.1-8 accepts a client_id that is the SPIFFE ID", planner, "all", false, "ok"],
  [
    "RFC7521-4.2-2, SPCA-3.1-12 refuses another workload's SPIFFE ID",
    "spiffe://td.example/agents/booking",
    "all",
    false,
    "client_id_differs",
  ],
  [
    "RFC7521-4.2-2 refuses a client_id that is not a SPIFFE ID",
    "c-report",
    "all",
    false,
    "client_id_differs",
  ],
  [
    "SPCA-3.1-8 refuses a prefix of the SPIFFE ID",
    "spiffe://td.example/agents",
    "all",
    false,
    "client_id_differs",
  ],
  [
    "SPCA-3.1-8 refuses a pattern as client_id",
    "spiffe://td.example/agents/*",
    "all",
    false,
    "client_id_differs",
  ],
  [
    "SPCA-3.1-8 refuses the SPIFFE ID with other capitals",
    "spiffe://td.example/agents/Planner",
    "all",
    false,
    "client_id_differs",
  ],
  ["SPCA-3.1-11 accepts the required client_id", planner, "all", true, "ok"],
  ["SPCA-3.1-11 refuses a missing client_id if it is required", undefined, "all", true, "client_id_missing"],
  ["SPCA-5-2 accepts a workload by its SPIFFE ID", undefined, [planner], false, "ok"],
  [
    "SPCA-5-2 accepts a workload by prefix",
    undefined,
    ["spiffe://td.example/x", "spiffe://td.example/agents/*"],
    false,
    "ok",
  ],
  [
    "SPCA-5-2 refuses a workload outside the prefixes",
    undefined,
    ["spiffe://td.example/agent/*"],
    false,
    "workload_not_admitted",
  ],
  [
    "SPCA-5-2 compares prefixes by whole segments",
    undefined,
    ["spiffe://td.example/agents/plan"],
    false,
    "workload_not_admitted",
  ],
  ["SPCA-5-2 refuses every workload if none is admitted", planner, "none", false, "workload_not_admitted"],
  ["SPCA-5-2 treats an empty list as none admitted", planner, [], false, "workload_not_admitted"],
];

for (const [name, requested, admit, requireClientId, want] of cases) {
  test(name, () => {
    const got = resolveClient(planner, requested, { admit, requireClientId });
    assert.equal(got.ok ? "ok" : got.error.kind, want);
    if (got.ok) assert.equal(got.value, planner);
  });
}
