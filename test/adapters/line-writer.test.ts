import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { makeLineWriter } from "../../src/adapters/line-writer.ts";
import { LOG_RETRY_MS, LOG_WAITING_BYTES_MAX } from "../../src/limits/process.ts";

/** A descriptor that fails with `code` while there is one, and takes at most `atOnce` bytes. */
function makeDescriptor(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const state = { code: "", atOnce: Number.POSITIVE_INFINITY, text: "", writes: 0 };
  const writer = makeLineWriter({
    writeSome(bytes) {
      state.writes += 1;
      if (state.code !== "") throw Object.assign(new Error(state.code), { code: state.code });
      const part = bytes.subarray(0, state.atOnce);
      state.text += Buffer.from(part).toString();
      return part.length;
    },
    recovered: (lines) => `lost ${lines}`,
  });
  return { state, writer };
}

test("a line is written at once, whole, even if the descriptor takes it in pieces", (t) => {
  const { state, writer } = makeDescriptor(t);
  state.atOnce = 2;
  assert.equal(writer.write("one"), true);
  assert.equal(writer.write("two"), true);
  assert.equal(state.text, "one\ntwo\n");
  assert.deepEqual(writer.status(), { waitingBytes: 0, lostLines: 0 });
});

for (const code of ["EPIPE", "ENOSPC", "EAGAIN", "EIO"]) {
  test(`after ${code} lines wait, and are written in order when it is over`, (t) => {
    const { state, writer } = makeDescriptor(t);
    writer.write("one");
    state.code = code;
    assert.equal(writer.write("two"), false);
    assert.equal(writer.write("three"), false);
    assert.deepEqual(writer.status(), { waitingBytes: 10, lostLines: 0 });
    t.mock.timers.tick(LOG_RETRY_MS);
    state.code = "";
    t.mock.timers.tick(LOG_RETRY_MS);
    assert.equal(state.text, "one\ntwo\nthree\n");
    assert.equal(writer.write("four"), true);
    assert.deepEqual(writer.status(), { waitingBytes: 0, lostLines: 0 });
  });
}

test("lines beyond the limit are lost, counted, and told once the log can be written", (t) => {
  const { state, writer } = makeDescriptor(t);
  const long = "x".repeat(LOG_WAITING_BYTES_MAX / 4);
  state.code = "ENOSPC";
  for (let one = 0; one < 6; one++) writer.write(long);
  assert.equal(writer.status().lostLines, 3);
  assert.ok(writer.status().waitingBytes <= LOG_WAITING_BYTES_MAX);
  state.code = "";
  t.mock.timers.tick(LOG_RETRY_MS);
  assert.deepEqual(state.text.split("\n"), [long, long, long, "lost 3", ""]);
  writer.write("next");
  assert.ok(state.text.endsWith("lost 3\nnext\n"), "it is told once");
  assert.equal(writer.status().lostLines, 3);
});

/** A descriptor that takes so many bytes and then fails. */
function makeFilling(t: TestContext, code: string) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const state = { left: 0, text: "" };
  const writer = makeLineWriter({
    writeSome(bytes) {
      if (state.left === 0) throw Object.assign(new Error(code), { code });
      const part = bytes.subarray(0, state.left);
      state.left -= part.length;
      state.text += Buffer.from(part).toString();
      return part.length;
    },
    recovered: String,
  });
  return { state, writer };
}

test("the rest of a line that was begun in a pipe is written first, so that no line is broken by another", (t) => {
  const { state, writer } = makeFilling(t, "EAGAIN");
  state.left = 2;
  writer.write("begun");
  writer.write("other");
  state.left = 1000;
  t.mock.timers.tick(LOG_RETRY_MS);
  assert.equal(state.text, "begun\nother\n");
  assert.deepEqual(writer.status(), { waitingBytes: 0, lostLines: 0 });
});

test("a line that was begun on a disk that filled is ended there, and written again as a whole", (t) => {
  const { state, writer } = makeFilling(t, "ENOSPC");
  state.left = 8;
  writer.write("first");
  writer.write("begun");
  assert.equal(state.text, "first\nbe");
  // There is room for less than a line: it is begun anew each time.
  state.left = 4;
  t.mock.timers.tick(LOG_RETRY_MS);
  assert.equal(state.text, "first\nbe\nbeg");
  writer.write("other");
  state.left = 1000;
  t.mock.timers.tick(LOG_RETRY_MS);
  assert.equal(state.text, "first\nbe\nbeg\nbegun\nother\n");
  assert.deepEqual(writer.status(), { waitingBytes: 0, lostLines: 0 });
});

test("closing tries once more and starts no further attempt", (t) => {
  const { state, writer } = makeDescriptor(t);
  state.code = "EPIPE";
  writer.write("one");
  writer.close();
  state.code = "";
  t.mock.timers.tick(10 * LOG_RETRY_MS);
  assert.equal(state.text, "");
});

test("the lines of one turn of the event loop are written in one piece, in order with those that are not to wait", async (t) => {
  const { state, writer } = makeDescriptor(t);
  writer.writeLater("one");
  writer.writeLater("two");
  assert.equal(state.text, "");
  assert.equal(writer.write("three"), true);
  assert.equal(state.text, "one\ntwo\nthree\n");
  state.text = "";
  state.writes = 0;
  writer.writeLater("four");
  writer.writeLater("five");
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([state.text, state.writes], ["four\nfive\n", 1]);
  writer.writeLater("six");
  writer.close();
  assert.equal(state.text, "four\nfive\nsix\n");
});

test("lines of a turn are lost and counted beyond the limit too, and wait while the descriptor fails", async (t) => {
  const { state, writer } = makeDescriptor(t);
  state.code = "ENOSPC";
  writer.write("one");
  writer.writeLater("two");
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(state.writes, 1, "nothing is tried before the time of the next attempt");
  writer.writeLater("x".repeat(LOG_WAITING_BYTES_MAX));
  assert.equal(writer.status().lostLines, 1);
  state.code = "";
  t.mock.timers.tick(LOG_RETRY_MS);
  assert.ok(state.text.startsWith("one\ntwo\n"));
});
