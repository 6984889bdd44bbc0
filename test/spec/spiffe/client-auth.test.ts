import assert from "node:assert/strict";
import { test } from "node:test";
import { type Admission, JWT_SPIFFE, resolveClient } from "../../../src/spec/spiffe/client-auth.ts";

const planner = "spiffe://td.example/agents/planner";

test("SPCA-3.1-1 the assertion type is this URN", () => {
  assert.equal(JWT_SPIFFE, "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe");
});

type Case = [string, string | undefined, Admission, boolean, string];
const cases: Case[] = [
  ["PROD-2.1-6, PROD-2.1-7, PROD-4.1v3-4 the SPIFFE ID as client_id is used", undefined, "all", false, "ok"],
  ["SPCA-3.1-8 a client_id that is the SPIFFE ID is accepted", planner, "all", false, "ok"],
  [
    "RFC7521-4.2-2, SPCA-3.1-12 another workload's SPIFFE ID is refused",
    "spiffe://td.example/agents/booking",
    "all",
    false,
    "client_id_differs",
  ],
  [
    "RFC7521-4.2-2 a client_id that is not a SPIFFE ID is refused",
    "c-report",
    "all",
    false,
    "client_id_differs",
  ],
  [
    "SPCA-3.1-8 a prefix of the SPIFFE ID is refused",
    "spiffe://td.example/agents",
    "all",
    false,
    "client_id_differs",
  ],
  [
    "SPCA-3.1-8 a pattern as client_id is refused",
    "spiffe://td.example/agents/*",
    "all",
    false,
    "client_id_differs",
  ],
  [
    "SPCA-3.1-8 the SPIFFE ID with other capitals is refused",
    "spiffe://td.example/agents/Planner",
    "all",
    false,
    "client_id_differs",
  ],
  ["SPCA-3.1-11 the required client_id is accepted", planner, "all", true, "ok"],
  [
    "SPCA-3.1-11 a missing client_id is refused if it is required",
    undefined,
    "all",
    true,
    "client_id_missing",
  ],
  ["SPCA-5-2 a workload by its SPIFFE ID is accepted", undefined, [planner], false, "ok"],
  [
    "SPCA-5-2 a workload by prefix is accepted",
    undefined,
    ["spiffe://td.example/x", "spiffe://td.example/agents/*"],
    false,
    "ok",
  ],
  [
    "SPCA-5-2 a workload outside the prefixes is refused",
    undefined,
    ["spiffe://td.example/agent/*"],
    false,
    "workload_not_admitted",
  ],
  [
    "SPCA-5-2 prefixes are compared by whole segments",
    undefined,
    ["spiffe://td.example/agents/plan"],
    false,
    "workload_not_admitted",
  ],
  [
    "SPCA-3.1-8, SPCA-5-2 every workload is refused if none is admitted",
    planner,
    "none",
    false,
    "workload_not_admitted",
  ],
  ["SPCA-5-2 an empty list is treated as none admitted", planner, [], false, "workload_not_admitted"],
];

for (const [name, requested, admit, requireClientId, want] of cases) {
  test(name, () => {
    const got = resolveClient(planner, requested, { admit, requireClientId });
    assert.equal(got.ok ? "ok" : got.error.kind, want);
    if (got.ok) assert.equal(got.value, planner);
  });
}
