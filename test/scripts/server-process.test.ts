import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { freePorts } from "../../scripts/server-process.ts";

test("a port that was drawn is held, so that no other process draws it", async () => {
  const [port] = await freePorts(1);
  const other = createSocket("udp4");
  try {
    other.bind({ port, address: "127.0.0.1", exclusive: true });
    await assert.rejects(once(other, "listening"), { code: "EADDRINUSE" });
  } finally {
    other.close();
  }
});
