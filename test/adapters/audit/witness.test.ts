import assert from "node:assert/strict";
import { appendFileSync, constants, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openWitness, printingWitness, WITNESS_FLAGS } from "../../../src/adapters/audit/witness.ts";
import { FetchFailed } from "../../../src/adapters/remote/fetch-failed.ts";
import { WITNESS_READ_BYTES_MAX } from "../../../src/limits/audit.ts";
import { openFlags } from "../../support/open-flags.ts";
import { createAuthority } from "../../support/tls.ts";

function scratch(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "mandate-witness-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

const line = (jws: string): string => `{"checkpoint":"${jws}"}\n`;

test("a file grows by one line for each checkpoint, across restarts, and is readable only by its owner", async (t) => {
  const file = join(scratch(t), "witness");
  for (const jws of ["a.b.c", "d.e.f"]) {
    const witness = await openWitness({ file });
    await witness.deliver(jws);
    await witness.deliver(`${jws}2`);
    await witness.close();
  }
  assert.equal(readFileSync(file, "utf8"), ["a.b.c", "a.b.c2", "d.e.f", "d.e.f2"].map(line).join(""));
  assert.equal(statSync(file).mode & 0o777, 0o600);
});

test("each write to a file is durable without fsync, which the permission model refuses", async (t) => {
  const file = join(scratch(t), "witness");
  const witness = await openWitness({ file });
  assert.equal(WITNESS_FLAGS & constants.O_DSYNC, constants.O_DSYNC);
  const opened = openFlags("self", file);
  if (opened === undefined) t.diagnostic("this system does not show the flags of open files");
  else assert.equal(opened & constants.O_DSYNC, constants.O_DSYNC);
  await witness.close();
});

test("a file gives its last checkpoints, and nothing that is incomplete", async (t) => {
  const file = join(scratch(t), "witness");
  const witness = await openWitness({ file });
  assert.deepEqual(await witness.latest?.(), []);
  for (const jws of ["a.b.c", "d.e.f"]) await witness.deliver(jws);
  appendFileSync(file, '{"checkpoint":"g.');
  assert.deepEqual(await witness.latest?.(), ["a.b.c", "d.e.f"]);
  const long = "x".repeat(WITNESS_READ_BYTES_MAX);
  await witness.deliver(long);
  await witness.deliver("h.i.j");
  assert.deepEqual(await witness.latest?.(), ["h.i.j"]);
  await witness.close();
});

test("a line truncated by a crash does not affect the next one", async (t) => {
  const file = join(scratch(t), "witness");
  appendFileSync(file, '{"checkpoint":"a.');
  const witness = await openWitness({ file });
  await witness.deliver("d.e.f");
  await witness.close();
  assert.equal(readFileSync(file, "utf8"), `{"checkpoint":"a.\n${line("d.e.f")}`);
});

for (const [what, take] of [
  ["moved", (file: string) => renameSync(file, `${file}.1`)],
  ["removed", rmSync],
] as const) {
  test(`a file that was ${what} fails one delivery, and the next one begins a new file`, async (t) => {
    const file = join(scratch(t), "witness");
    const witness = await openWitness({ file });
    await witness.deliver("a.b.c");
    take(file);
    await assert.rejects(witness.deliver("d.e.f"), /moved or removed/);
    await witness.deliver("d.e.f");
    assert.equal(readFileSync(file, "utf8"), line("d.e.f"));
    assert.deepEqual(await witness.latest?.(), ["d.e.f"]);
    await witness.close();
  });
}

test("a file that cannot be opened fails the start", async (t) => {
  await assert.rejects(openWitness({ file: join(scratch(t), "none", "witness") }), /ENOENT/);
});

test("standard output is a witness as long as it can be written", async () => {
  const printed: string[] = [];
  let works = true;
  const witness = printingWitness((jws) => printed.push(jws) > 0 && works);
  await witness.deliver("a.b.c");
  works = false;
  await assert.rejects(witness.deliver("d.e.f"), /cannot be written/);
  assert.deepEqual(printed, ["a.b.c", "d.e.f"]);
});

type Received = { method: string; headers: IncomingHttpHeaders; body: string };

async function startSink(t: TestContext, status: number) {
  const authority = await createAuthority();
  const { key, cert } = await authority.issueServer();
  const received: Received[] = [];
  const server = createServer({ key, cert }, async (request, response) => {
    const body = (await request.toArray()).join("");
    received.push({ method: request.method ?? "", headers: request.headers, body });
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const sink = {
    url: `https://localhost:${port}/checkpoints`,
    privateNetworks: ["127.0.0.0/8", "::1/128"],
    ca: authority.cert,
  };
  return { sink, received };
}

for (const status of [200, 201, 202, 204]) {
  test(`an HTTPS sink receives the checkpoint by POST and confirms it with ${status}`, async (t) => {
    const { sink, received } = await startSink(t, status);
    const witness = await openWitness({ sink, authorization: "Bearer secret" });
    await witness.deliver("a.b.c");
    await witness.close();
    const [{ method, headers, body } = assert.fail("the sink received nothing"), ...more] = received;
    assert.deepEqual([method, body, more.length], ["POST", "a.b.c", 0]);
    assert.equal(headers["content-type"], "application/jose");
    assert.equal(headers["content-length"], "5");
    assert.equal(headers.authorization, "Bearer secret");
  });
}

for (const status of [302, 400, 500]) {
  test(`a delivery to an HTTPS sink that answers ${status} fails`, async (t) => {
    const { sink } = await startSink(t, status);
    const witness = await openWitness({ sink });
    await assert.rejects(witness.deliver("a.b.c"), FetchFailed);
  });
}

test("B8725-3.10-2 a delivery to an HTTPS sink checks its address and its certificate", async (t) => {
  const { sink, received } = await startSink(t, 200);
  const inside = await openWitness({ sink: { ...sink, privateNetworks: [] } });
  await assert.rejects(inside.deliver("a.b.c"), /an address that is not allowed/);
  const { ca: _, ...unknown } = sink;
  const untrusted = await openWitness({ sink: unknown });
  await assert.rejects(untrusted.deliver("a.b.c"), FetchFailed);
  assert.deepEqual(received, []);
});
