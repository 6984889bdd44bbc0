/** A short run of the fuzzer, and that it finds what is planted. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Corpus, openCorpus } from "../../scripts/fuzz/corpus.ts";
import { KINDS } from "../../scripts/fuzz/kinds.ts";
import { type FuzzOptions, fuzz } from "../../scripts/fuzz/run.ts";
import { openWire } from "../../scripts/fuzz/wire.ts";
import { cpuMs } from "../../src/adapters/clock.ts";
import description from "../../src/http/openapi.json" with { type: "json" };
import { stop } from "../support/stop.ts";

let corpus: Corpus;
before(async () => {
  corpus = await openCorpus();
});
after(() => stop(corpus));

/** What is found where this is put around the handler; the inputs are those of one endpoint. */
const foundBy = async (
  endpoint: string,
  around: NonNullable<FuzzOptions["around"]>,
  inputs = 200,
): Promise<string> => {
  const { [endpoint]: shape = assert.fail(endpoint) } = corpus.shapes;
  const few = { ...corpus, shapes: { [endpoint]: shape } };
  const { findings } = await fuzz(few, { seed: 2, inputs, around });
  return findings.map(({ what }) => what).join("\n");
};

test("changed requests and documents give no fault, no 5xx and no token, within the process and by TLS", async () => {
  const wire = await openWire(corpus);
  const { findings, endpoints, kinds, inputs } = await fuzz(corpus, {
    ...{ seed: 2, inputs: 800 },
    wire: { send: wire.send, every: 30 },
  });
  await wire.close();
  assert.deepEqual(findings, []);
  assert.equal(inputs, 800);
  // An endpoint that is not reached, or that refuses all, would pass as well.
  const reached = [...endpoints].filter(([, { statuses }]) => statuses.size > 0).map(([name]) => name);
  const unreached = Object.keys(corpus.shapes).filter((name) => !reached.includes(name));
  assert.deepEqual(unreached, []);
  assert.deepEqual(
    KINDS.filter((kind) => !kinds.has(kind)),
    [],
  );
  const changed = [...kinds.values()];
  const share =
    changed.reduce((sum, { whole }) => sum + whole, 0) / changed.reduce((sum, { count }) => sum + count, 0);
  assert.ok(share >= 0.5, `what reads them first takes ${share} of the changed ones`);
  const given = [...endpoints].filter(
    ([name, { statuses }]) => name.startsWith("/token") && statuses.has(200),
  );
  assert.ok(given.length >= 6, given.join());
});

test("each operation that the server describes has a valid request to be changed", () => {
  const asked = Object.values(corpus.shapes).map((shape) => {
    const { method, path } = shape();
    return `${method} ${path.replace(/^\/\.well-known\/.*/, "/.well-known")}`;
  });
  const described = Object.entries(description.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => {
      const parts = path.replace(/^\/\.well-known\/.*/, "/.well-known").split(/\{[^}]*\}/);
      return new RegExp(`^${method.toUpperCase()} ${parts.map(RegExp.escape).join("[^/]+")}$`);
    }),
  );
  assert.deepEqual(
    described.filter((one) => !asked.some((text) => one.test(text))),
    [],
  );
});

test("the fuzzer finds a handler that throws, and one that fails, for one kind of input", async () => {
  const found = await foundBy("/jwks", (handle) => (asked, peer) => {
    if (asked.headers.get("origin") !== "https://app.example") throw new Error("planted");
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
  assert.match(found, /^\d+ times the CPU time of a good one$/m);
});

test("the fuzzer finds nothing slow where good requests take as long in the same state of the store", async () => {
  let asked = 0;
  const found = await foundBy(
    "/jwks",
    (handle) => (one, peer) => {
      const endMs = cpuMs() + (asked++ < 350 ? 0 : 6);
      while (cpuMs() < endMs);
      return handle(one, peer);
    },
    600,
  );
  assert.equal(found, "");
});
