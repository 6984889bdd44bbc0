import assert from "node:assert/strict";
import { test } from "node:test";
import { defined } from "../src/result.ts";

type Named = { id: number; name?: string; tag?: null };

test("defined keeps every member that is not undefined, null included", () => {
  const named: Named = defined({ id: 0, name: undefined, tag: null });
  assert.deepEqual(Object.entries(named), [
    ["id", 0],
    ["tag", null],
  ]);
});

test("defined takes no undeclared member and no undefined one where a value is required", () => {
  // @ts-expect-error: the type has no such member.
  const unknown: Named = defined({ id: 0, other: 1 });
  // @ts-expect-error: the member is required.
  const missing: Named = defined({ id: undefined });
  assert.deepEqual([unknown, missing], [{ id: 0, other: 1 }, {}]);
});
