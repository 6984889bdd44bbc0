/** One short round of each trial of `npm run trials`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { closePipe, fillDisk } from "../../scripts/trials/log-pipe.ts";

const GOOD = { exits: 0, unanswered: 0, codes: [0] };

test("a server whose log pipe is closed answers on, and ends with 0", async () => {
  assert.deepEqual(await closePipe(1), GOOD);
});

test("a server whose log is on a full disk starts, answers, and ends with 0", async () => {
  assert.deepEqual(await fillDisk(1), GOOD);
});
