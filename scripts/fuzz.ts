/**
 * `npm run fuzz -- [--seed N] [--inputs N] [--minutes M] [--input I]`: changed requests and documents, made of a seed, for
 * every endpoint and parser of a server in this process, one in a hundred over TLS. `--input` repeats one of a run. Exits
 * non-zero for an answer of 5xx, a fault, a success that nothing permits, a heap that grows, and an input that takes 50
 * times the CPU time of a good one when both are repeated alone, in turns.
 */
import { parseArgs } from "node:util";
import { openCorpus } from "./fuzz/corpus.ts";
import { type Figures, fuzz } from "./fuzz/run.ts";
import { openWire } from "./fuzz/wire.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    inputs: { type: "string", default: "20000" },
    minutes: { type: "string", default: "60" },
    input: { type: "string" },
  },
});
const seed = Number(values.seed);
const untilMs = Date.now() + 60_000 * Number(values.minutes);
const first = Number(values.input ?? 0);
const inputs = values.input === undefined ? Number(values.inputs) : 1;

function print({ inputs: count, findings, endpoints, kinds, heap }: Figures): void {
  for (const [name, { count: of, statuses, meanUs, slowest }] of [...endpoints].toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  )) {
    const answers = [...statuses]
      .toSorted(([, a], [, b]) => b - a)
      .map(([status, times]) => `${status} ${times}`);
    const slow =
      slowest.ratio === 0 ? "" : `, slowest ${slowest.ratio.toFixed(1)} times (--input ${slowest.index})`;
    console.log(
      `${name.padEnd(40)} ${String(of).padStart(7)}  mean ${meanUs.toFixed(0)} us${slow}; ${answers.join(", ")}`,
    );
  }
  for (const [kind, { count: of, whole }] of kinds)
    console.log(`${kind}: ${of} changed, ${whole} of them taken by what reads them first`);
  const [start, middle, end] = [0, heap.length >> 1, heap.length - 1].map((at) =>
    ((heap[at] ?? 0) / 1e6).toFixed(1),
  );
  const faults = [...endpoints.values()].flatMap(({ statuses }) => [...statuses]);
  const failed = faults.filter(([status]) => Number(status) >= 500 || status === "fault");
  const told = failed.map(([status, times]) => `${times} of ${status}`).join(", ");
  console.log(
    `seed ${seed}: ${count} inputs, ${findings.length} findings, 5xx and faults: ${told || "none"}, heap ${start} MB at the start, ${middle} MB halfway, ${end} MB at the end`,
  );
  for (const { index, endpoint, what } of findings.slice(0, 50))
    console.log(`FOUND ${endpoint}: ${what}; npm run fuzz -- --seed ${seed} --input ${index}`);
}

const corpus = await openCorpus();
const wire = await openWire(corpus);
const progress = ({ inputs: done, findings }: Figures): void =>
  console.log(`${new Date().toISOString()} ${done} inputs, ${findings.length} findings`);
const figures = await fuzz(corpus, {
  seed,
  first,
  inputs,
  untilMs,
  wire: { send: wire.send, every: 100 },
  progress,
});
print(figures);
await wire.close();
await corpus.stop();
process.exitCode = figures.findings.length > 0 ? 1 : 0;
