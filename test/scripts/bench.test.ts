import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { end } from "../../scripts/bench/children.ts";
import { makeCall } from "../../scripts/bench/client.ts";
import { quantile } from "../../scripts/bench/load.ts";
import { toRatios } from "../../scripts/bench/ratios.ts";
import { type Row, send, startLoad } from "../../scripts/bench/rounds.ts";
import { bench } from "../../scripts/bench/run.ts";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";

const BENCH = join(import.meta.dirname, "../../scripts/bench");
const BRIEF = { seconds: 0.05, rounds: 1, connections: 4 };

function assertRows(rows: readonly Row[], names: readonly string[]): void {
  assert.deepEqual(
    rows.map(({ name }) => name),
    names,
  );
  for (const {
    name,
    requests,
    requestsPerSecond,
    p50Ms,
    p99Ms,
    serverCpuMicros,
    residentMegabytes,
  } of rows) {
    for (const number of [requests, requestsPerSecond, p50Ms, serverCpuMicros, residentMegabytes]) {
      assert.ok(Number.isFinite(number) && number > 0, `${name}: ${number}`);
    }
    assert.ok(p50Ms <= p99Ms, name);
  }
}

test("a revision is measured beside another, in alternation, and in several pairs of processes", async () => {
  const { rows, against = [] } = await bench({ ...BRIEF, only: ["secret"], against: "HEAD", pairs: 2 });
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: BENCH, encoding: "utf8" });
  assertRows(rows, ["secret", `${commit.trim()} secret`]);
  const [{ name, cpuRatios } = { name: "", cpuRatios: [] }] = against;
  assert.equal(name, "secret");
  assert.equal(cpuRatios.length, 2);
  for (const ratio of cpuRatios) assert.ok(ratio > 0);
});

test("a run fails at the first response that is not 200, and the next run is unaffected", async () => {
  const authority = await makeAuthority("bench");
  const { certPem: cert, keyPem: key } = await issueServerCertificate(authority, ["127.0.0.1"]);
  const endpoint = createServer({ cert, key }, (request, response) => {
    request.resume();
    const status = request.headers.authorization === "Basic good" ? 200 : 401;
    response.writeHead(status, { "content-length": 0 }).end();
  });
  await once(endpoint.listen(0, "127.0.0.1"), "listening");
  const { port } = endpoint.address() as AddressInfo;
  const load = startLoad();
  try {
    const url = new URL(`https://127.0.0.1:${port}/token`);
    const call = (authorization: string) =>
      makeCall(url, { grant_type: "client_credentials" }, authorization);
    const [good, wrong] = [call("Basic good"), call("Basic wrong")];
    const order = {
      endpoint: { host: "127.0.0.1", port, ca: authority.certPem },
      count: 4,
      connections: 4,
      anew: false,
    };
    await assert.rejects(send(load, { ...order, calls: [good, good, good, wrong] }), /answered 401/);
    const { elapsedMs } = await send(load, { ...order, calls: [good] });
    assert.ok(elapsedMs > 0);
  } finally {
    await end(load);
    endpoint.closeAllConnections();
    await once(endpoint.close(), "close");
  }
});

test("the skeleton stays small enough to be read as the floor", () => {
  assert.ok(readFileSync(join(BENCH, "skeleton.ts"), "utf8").split("\n").length <= 200);
});

test("a ratio is judged by its target, and left out without its rows", () => {
  const row = (name: string, serverCpuMicros: number): Row => ({
    name,
    requests: 1,
    requestsPerSecond: 1,
    p50Ms: 1,
    p99Ms: 1,
    serverCpuMicros,
    clientCpuMicros: 1,
    allocatedKilobytes: 61,
    loopDelayMs: 0,
    residentMegabytes: 1,
    eventsPerCommit: 1,
    rounds: [serverCpuMicros],
  });
  const verdicts = (secret: number) =>
    toRatios([row("secret", secret), row("skeleton secret", 100), row("oidc-provider secret", 240)]).map(
      ({ value, met }) => [value, met],
    );
  assert.deepEqual(verdicts(150), [
    [1.5, true],
    [61, false],
    [1.6, true],
  ]);
  assert.deepEqual(verdicts(240), [
    [2.4, false],
    [61, false],
    [1, false],
  ]);
});

test("a quantile is the smallest measured time that at least this part of all times does not exceed", () => {
  const hundred = Float64Array.from({ length: 100 }, (_, index) => index + 1);
  const cases = [
    [hundred, 0.5, 50],
    [hundred, 0.99, 99],
    [hundred, 1, 100],
    [Float64Array.of(7), 0.5, 7],
    [Float64Array.of(1, 2, 3), 0.5, 2],
    [Float64Array.of(), 0.5, Number.NaN],
  ] as const;
  for (const [sorted, part, want] of cases) assert.equal(quantile(sorted, part), want);
});
