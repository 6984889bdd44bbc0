import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePorts } from "../../scripts/server-process.ts";
import { until } from "../support/until.ts";

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

test("a program ends, and a folder is removed, with the process that started and made it, also where that is killed", async () => {
  const folder = mkdtempSync(join(tmpdir(), " mandate 'kept' \\ "));
  const guard = JSON.stringify(import.meta.resolve("../../scripts/guard.ts"));
  const text = `
    const { endsWithThis, removedWithThis } = await import(${guard});
    removedWithThis(${JSON.stringify(folder)});
    const { spawn } = await import("node:child_process");
    const [over, left] = [spawn("sleep", ["0"]), spawn("sleep", ["600"])].map(endsWithThis);
    over.once("exit", () => console.log(left.pid));`;
  const parent = spawn(process.execPath, ["--input-type=module", "--eval", text], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [told] = await once(parent.stdout, "data");
  // One that has ended may stay listed until its new parent asks for it.
  const runs = (): boolean =>
    /^[^Z]/.test(spawnSync("ps", ["-o", "stat=", "-p", String(told).trim()], { encoding: "utf8" }).stdout);
  assert.ok(runs());
  parent.kill("SIGKILL");
  await until(() => !runs(), "the program ends");
  await until(() => !existsSync(folder), "the folder is removed");
});
