import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { digitsOfId, digitsOfNumber, supportNumber } from "../../src/audit/support-number.ts";
import { requestTerm } from "../../src/audit/terms.ts";

test("PAGE-D-39 a request id has a number of eight signs without look-alikes, the same each time", () => {
  assert.equal(supportNumber("00000000-0000-4000-8000-000000000000"), "2222-2222");
  assert.equal(supportNumber("ffffffff-ffff-4fff-8fff-ffffffffffff"), "W77T-6GWD");
  for (let round = 0; round < 1_000; round++) {
    const id = randomUUID();
    assert.match(supportNumber(id) ?? "", /^[2-46-79CDFGHJKMNPQRTVWXY]{4}-[2-46-79CDFGHJKMNPQRTVWXY]{4}$/);
    assert.equal(digitsOfNumber(supportNumber(id) ?? ""), digitsOfId(id));
    assert.equal(requestTerm(id), requestTerm(supportNumber(id)));
  }
});

test("PAGE-D-39 an id and its number are one search term, and another id or number is another one", () => {
  const id = "4a3c9f10-b2de-4000-8000-000000000000";
  assert.equal(requestTerm(id), requestTerm(supportNumber(id)?.toLowerCase().replace("-", " ")));
  for (const other of [
    "4a3c9f10-a2de-4000-8000-000000000000",
    "4A3C9F10-B2DE-4000-8000-000000000000",
    "2222-2222",
  ])
    assert.notEqual(requestTerm(id), requestTerm(other));
});

test("PAGE-D-39 a number is read as it is typed, and nothing else is one", () => {
  for (const typed of ["4kdm-qx7r", "4KDMQX7R", " 4kdm qx7r ", "4K DM-QX 7R"]) {
    assert.equal(digitsOfNumber(typed), digitsOfNumber("4KDM-QX7R"), typed);
  }
  for (const typed of ["", "4KDM-QX7", "4KDM-QX7RR", "4KDM-QX7O", "4KDM_QX7R", "YYYY-YYYY", randomUUID()]) {
    assert.equal(digitsOfNumber(typed), undefined, typed);
  }
});
