/** A short run of the fuzzer, and that it finds what is planted. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Corpus } from "../../scripts/fuzz/corpus.ts";
import { openCorpus } from "../../scripts/fuzz/corpus.ts";
import type { FuzzOptions } from "../../scripts/fuzz/run.ts";
import { fuzz } from "../../scripts/fuzz/run.ts";
import { openWire } from "../../scripts/fuzz/wire.ts";
import { cpuMs } from "../../src/adapters/clock.ts";
import { stop } from "../support/stop.ts";

let corpus: Corpus;
before(async () => {
  corpus = await openCorpus();
});
after(() => stop(corpus));

/** What is found where this is put around the handler; the inputs are those of one endpoint. */
const foundBy = async (endpoint: string, around: NonNullable<FuzzOptions["around"]>): Promise<string> => {
  const { [endpoint]: shape = assert.fail(endpoint) } = corpus.shapes;
  const few = { ...corpus, shapes: { [endpoint]: shape } };
  const { findings } = await fuzz(few, { seed: 2, inputs: 200, around });
  return findings.map(({ what }) => what).join("\n");
};

test("changed requests and documents give no fault, no 5xx and no token, within the process and by TLS", async () => {
  const wire = await openWire(corpus);
  const { findings, endpoints, inputs } = await fuzz(corpus, {
    ...{ seed: 1, inputs: 800 },
    wire: { send: wire.send, every: 30 },
  });
  await wire.close();
  assert.deepEqual(findings, []);
  assert.equal(inputs, 800);
  // An endpoint that is not reached, or that refuses all, would pass as well.
  const reached = [...endpoints].filter(([, { statuses }]) => statuses.size > 0).map(([name]) => name);
  const unreached = Object.keys(corpus.shapes).filter((name) => !reached.includes(name));
  assert.deepEqual(unreached, []);
  const given = [...endpoints].filter(
    ([name, { statuses }]) => name.startsWith("/token") && statuses.has(200),
  );
  assert.ok(given.length >= 6, given.join());
});

test("the fuzzer finds a handler that throws, and one that fails, for one kind of input", async () => {
  const found = await foundBy("/jwks", (handle) => (asked, peer) => {
    if (asked.headers.get("traceparent") !== null) throw new Error("planted");
    return asked.method === "OPTIONS" || asked.method === "X"
      ? { status: 500, headers: {}, body: "" }
      : handle(asked, peer);
  });
  assert.match(found, /^Error: planted/m);
  assert.match(found, /^status 500$/m);
});

test("the fuzzer finds a token for a proof that was changed", async () => {
  const found = await foundBy("/token credentials by JWT", (handle) => async (asked, peer) => {
    const answer = await handle(asked, peer);
    return answer.status === 400 ? { ...answer, status: 200 } : answer;
  });
  assert.match(found, /^status 200 although its proof is another one$/m);
});

test("the fuzzer finds an input that takes long whenever it is repeated", async () => {
  const found = await foundBy("/jwks", (handle) => (asked, peer) => {
    const endMs = cpuMs() + 8;
    while (asked.method !== "GET" && cpuMs() < endMs);
    return handle(asked, peer);
  });
  assert.match(found, /^\d+ times the median CPU time$/m);
});
