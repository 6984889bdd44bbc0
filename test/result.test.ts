import assert from "node:assert/strict";
import { test } from "node:test";
import { defined, whenDone } from "../src/result.ts";

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

test("whenDone goes on at once with what is there, and with a fault of the work, but not with one of the next step", async () => {
  const next = (value: number): string => `next ${value}`;
  const failed = (fault: unknown): string => `failed ${(fault as Error).message}`;
  const fail = (): never => {
    throw new Error("a fault");
  };
  assert.equal(
    whenDone(() => 1, next, failed),
    "next 1",
  );
  assert.equal(whenDone<number, string>(fail, next, failed), "failed a fault");
  assert.equal(await whenDone(async () => 1, next, failed), "next 1");
  assert.equal(await whenDone(async () => fail(), next, failed), "failed a fault");
  assert.throws(() => whenDone(() => 1, fail, failed), /a fault/);
  await assert.rejects(async () => whenDone(async () => 1, fail, failed), /a fault/);
});
