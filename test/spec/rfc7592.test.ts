import assert from "node:assert/strict";
import { test } from "node:test";
import { parseClientUpdate } from "../../src/spec/rfc7592.ts";
import type { Json, JsonObject } from "../../src/spec/rfc8259.ts";

const CLIENT = { clientId: "c_1" };
const reason = (json: JsonObject): string => {
  const got = parseClientUpdate(json, CLIENT);
  return got.ok ? "ok" : `${got.error.kind} ${got.error.reason}`;
};

test("RFC7592-2.2-3, RFC7592-2.2-4 every member of the new record is taken from the update", () => {
  const json = { client_id: "c_1", client_name: "a", grant_types: ["client_credentials"] };
  assert.deepEqual(parseClientUpdate(json, CLIENT), {
    ok: true,
    value: { metadata: { client_name: "a", grant_types: ["client_credentials"] } },
  });
});

test("RFC7592-2.2-7, RFC7592-2.2-8 the secret is returned for comparison, apart from the metadata", () => {
  assert.deepEqual(parseClientUpdate({ client_id: "c_1", client_secret: "s" }, CLIENT), {
    ok: true,
    value: { clientSecret: "s", metadata: {} },
  });
});

const OF_SERVER: readonly (readonly [string, Json])[] = [
  ["registration_access_token", "t"],
  ["registration_client_uri", "https://as.example/register/c_1"],
  ["client_secret_expires_at", 0],
  ["client_id_issued_at", 1_790_000_000],
];
for (const [name, value] of OF_SERVER) {
  test(`RFC7592-2.2-2 ${name} is refused`, () => {
    const want = "client_metadata_invalid server_member_sent";
    for (const sent of [value, "", false, []]) assert.equal(reason({ client_id: "c_1", [name]: sent }), want);
  });
  test(`RFC7592-2.2-2, RFC7592-2.2-5 ${name} of null is treated as absent`, () => {
    assert.equal(reason({ client_id: "c_1", [name]: null }), "ok");
  });
}

const cases = [
  ["RFC7592-2.2-6 the client's own client_id is accepted", { client_id: "c_1" }, "ok"],
  ["RFC7592-2.2-6 another client_id is refused", { client_id: "c_2" }, "client_id_differs"],
  [
    "RFC7592-2.2-6, RFC7592-1.1-1 the client_id with other capitals is refused",
    { client_id: "C_1" },
    "client_id_differs",
  ],
  ["RFC7592-2.2-6 a missing client_id is refused", { client_name: "a" }, "client_id_differs"],
  ["RFC7592-2.2-6 a client_id of null is refused", { client_id: null }, "client_id_differs"],
  ["RFC7592-2.2-6 an array as client_id is refused", { client_id: ["c_1"] }, "client_id_differs"],
  ["RFC7592-2.2-7 a secret of null is treated as absent", { client_id: "c_1", client_secret: null }, "ok"],
  ["RFC7592-2.2-7 a long secret is accepted", { client_id: "c_1", client_secret: "s".repeat(2048) }, "ok"],
  [
    "RFC7592-2.2-7 a secret that is too long is refused",
    { client_id: "c_1", client_secret: "s".repeat(2049) },
    "client_secret_refused",
  ],
  [
    "RFC7592-2.2-7 an empty secret is refused",
    { client_id: "c_1", client_secret: "" },
    "client_secret_refused",
  ],
  [
    "RFC7592-2.2-7 a number as secret is refused",
    { client_id: "c_1", client_secret: 1 },
    "client_secret_refused",
  ],
] as const;
for (const [name, json, want] of cases) {
  test(name, () =>
    assert.equal(
      reason(json as JsonObject)
        .split(" ")
        .at(-1),
      want,
    ),
  );
}
