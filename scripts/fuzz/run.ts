/**
 * Sends inputs one after the other, each made of its own seed, and judges what comes: a fault, a token or success that
 * nothing permits, and CPU time out of proportion. Documents are read in place of being sent.
 */
import type { IncomingMessage } from "node:http";
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { cpuMs } from "../../src/adapters/clock.ts";
import { app } from "../../src/app.ts";
import type { Handler } from "../../src/http/handler.ts";
import { leafOf, refuseHead, toRequest } from "../../src/http/message.ts";
import { LIMITS } from "../../src/http/serve.ts";
import type { Ports } from "../../src/ports.ts";
import { type Prng, prng } from "../../test/support/prng.ts";
import { ISSUER } from "../../test/support/world.ts";
import { changeBytes } from "./bytes.ts";
import type { Corpus } from "./corpus.ts";
import { type Reader, readersFor } from "./documents.ts";
import { isWholeDocument, isWholeRequest, type Kind, kindOf } from "./kinds.ts";
import { changeJson, changeShape, changeText, isToken, type Part, type Shape, textOf } from "./mutate.ts";

/** What goes over the wire. */
export type Message = {
  method: string;
  target: string;
  fields: string[];
  body: Buffer;
  certificates: readonly Uint8Array[];
  address: string;
};

type Input = {
  endpoint: string;
  run(): Promise<number | string>;
  isLost: boolean;
  /** Undefined: nothing of it was changed. */
  kind?: Kind | undefined;
  /** Whether what reads it first took it, to judge by the status as well. */
  isWhole(status: number | string): boolean;
  /** The same without a change. */
  unchanged(): Input;
};

export type Finding = { index: number; endpoint: string; what: string };
export type Figures = {
  inputs: number;
  findings: Finding[];
  endpoints: Map<string, Endpoint>;
  /** The changed ones, and those of them that what reads them first took. */
  kinds: Map<Kind, { count: number; whole: number }>;
  /** After collections on the way and at the end, in bytes. */
  heap: number[];
};

/** How often each status came, the last CPU times, and the slowest input by its ratio to a good one. */
type Endpoint = {
  count: number;
  good: number;
  statuses: Map<number | string, number>;
  times: number[];
  meanUs: number;
  slowest: { ratio: number; index: number };
};
const newEndpoint = (): Endpoint => ({
  count: 0,
  good: 0,
  statuses: new Map(),
  times: [],
  meanUs: MEAN_US_MIN,
  slowest: { ratio: 0, index: 0 },
});

const TIMES = 512;
/** Below it, a time says more of the clock than of the input. */
const MEAN_US_MIN = 100;
const RATIO_MAX = 50;
/** Only one that looks so much slower than the slowest so far is repeated. */
const RATIO_STEP = 1.5;
const REPEATS = 20;
/** One that also waits is repeated for so long. */
const REPEATS_MS = 2_000;
const RENEWED_AFTER = 1_000;
/** One that waits, as for a key that may come, is left to wait. */
const WAIT_MS = 10;
const WAITING_MAX = 400;
const PROGRESS_AFTER = 10_000;
/** Caches that fill are no growth: they are full in the middle of a long run. */
const GROWTH_MAX = 32 * 1024 * 1024;

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

const cpuUs = (): number => 1000 * cpuMs();
/** The clock of CPU time goes on in steps of up to 4 ms: one time says little, and their mean is right. */
const meanOf = (times: readonly number[]): number =>
  Math.max(MEAN_US_MIN, times.reduce((sum, one) => sum + one, 0) / (times.length || 1));

const told = (fault: unknown): string =>
  fault instanceof Error ? (fault.stack?.split("\n", 4).join(" ") ?? fault.message) : String(fault);

async function timed({ run }: Input): Promise<{ status: number | string; us: number; fault?: unknown }> {
  const beganUs = cpuUs();
  try {
    const status = await run();
    return { status, us: cpuUs() - beganUs };
  } catch (fault) {
    return { status: "fault", us: 0, fault };
  }
}

/** What counts of a proof: the scheme of a field is in any case, blanks follow it, and base64 may be spelled in several ways. */
function proofOf(text: string): string {
  const [, scheme = "", rest = ""] = /^(basic|bearer) +(.*)$/i.exec(asField(text)) ?? [];
  if (scheme === "") return asField(text);
  return scheme.toLowerCase() === "basic" ? Buffer.from(rest, "base64").toString("latin1") : rest;
}

/** Header fields as Node passes them on: without controls, and trimmed. */
const asField = (text: string): string => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, "?").trim();
const asTarget = (text: string): string =>
  text.replaceAll(/[^\x21-\x7e]/g, (one) => encodeURIComponent(one.toWellFormed()));

const pairsOf = (parts: readonly Part[], place: Part["place"]): [string, string][] =>
  parts.filter((part) => part.place === place).map(({ name, value }) => [name, textOf(value)]);

export function messageOf({ method, path, parts, body, certificates = [] }: Shape, address: string): Message {
  const query = new URLSearchParams(pairsOf(parts, "query")).toString();
  const fields = pairsOf(parts, "field").map(([name, value]) => [
    asField(name).replaceAll(/[^\w!#$%&'*+.^`|~-]/g, "-") || "x",
    asField(value),
  ]);
  const given =
    body === undefined
      ? new URLSearchParams(pairsOf(parts, "form")).toString()
      : isToken(body)
        ? textOf(body)
        : typeof body === "string"
          ? body
          : JSON.stringify(body);
  const hasBody = method !== "GET" && method !== "HEAD";
  const typed = fields.some(([name]) => name?.toLowerCase() === "content-type") || !hasBody;
  const type = body === undefined ? "application/x-www-form-urlencoded" : "application/json";
  const all = [["Host", "as.example"], ...fields, ...(typed ? [] : [["Content-Type", type]])];
  return {
    method,
    target: asTarget(path) + (query === "" ? "" : `?${query}`),
    fields: all.flat(),
    body: hasBody ? Buffer.from(given) : Buffer.alloc(0),
    certificates,
    address,
  };
}

/** The same steps as behind a listener, without one. */
async function answer(
  handle: Handler,
  { method, target, fields, body, certificates, address }: Message,
): Promise<number> {
  const head = { method, url: target, rawHeaders: fields, httpVersion: "1.1" } as IncomingMessage;
  const refusal = refuseHead(head, LIMITS);
  if (refusal !== undefined) return refusal.status;
  if (body.length > LIMITS.bodyBytesMax) return 413;
  const request = toRequest(head, body, ISSUER, target.split("?", 1)[0] ?? "");
  if (!request.ok) return request.error.status;
  const peer = {
    address,
    certificates,
    leaf: leafOf(certificates),
    requestId: "r-fuzz",
    deadline: new AbortController().signal,
  };
  return (await handle(request.value, peer)).status;
}

/** One in 16 stays as it is, so that what refuses everything shows. */
const isUnchanged = (random: Prng): boolean => random.below(16) === 0;

/** As often as not, JSON stays JSON. */
function changeDocument(random: Prng, sample: string | Uint8Array): string | Uint8Array {
  if (typeof sample !== "string") return changeBytes(random, sample);
  if (random.below(3) > 0 && /^[{[]/.test(sample))
    return JSON.stringify(changeJson(random, JSON.parse(sample)));
  return changeText(random, sample);
}

/** The seed of one input, so that it can be made again alone. */
const seedOf = (seed: number, index: number): number =>
  Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) + Math.imul(index + 1, 0xc2b2ae35);

export type FuzzOptions = {
  seed: number;
  first?: number;
  inputs: number;
  untilMs?: number;
  /** Put around the server's handler. */
  around?: (handle: Handler) => Handler;
  /** Sends requests by another way, of which the name tells. */
  wire?: { send(message: Message): Promise<number | string>; every: number };
  progress?: (figures: Figures) => void;
};

export async function fuzz(corpus: Corpus, options: FuzzOptions): Promise<Figures> {
  const {
    seed,
    first = 0,
    inputs,
    untilMs = Number.POSITIVE_INFINITY,
    around = (one) => one,
    wire,
  } = options;
  const { ports, people, trustDomain } = corpus.service;
  // A failure is told after a fixed time, which would be most of the time here.
  const proofs: Ports["proofs"] = { verify: (_, work) => work(ports.paths) };
  const handle = around(app({ ...ports, proofs }, people));
  const readers = readersFor(trustDomain);
  const [names, documents] = [Object.keys(corpus.shapes), Object.keys(readers)];
  const figures: Figures = { inputs: 0, findings: [], endpoints: new Map(), kinds: new Map(), heap: [] };
  let index = first;
  /** Nothing else is sent while an input is repeated. */
  let alone: Promise<void> | undefined;

  const documentOf = (random: Prng): Input => {
    const endpoint = random.pick(documents);
    const { kind, samples, read } = readers[endpoint] as Reader;
    const sample = random.pick(samples);
    const inputOf = (text: string | Uint8Array): Input => ({
      endpoint,
      run: async () => (read(text as string & Uint8Array) ? "taken" : "refused"),
      isLost: false,
      kind: text === sample ? undefined : kind,
      isWhole: () => isWholeDocument(kind, text),
      unchanged: () => inputOf(sample),
    });
    return inputOf(isUnchanged(random) ? sample : changeDocument(random, sample));
  };
  const requestOf = (random: Prng, at: number): Input => {
    const name = random.pick(names);
    const isByWire = wire !== undefined && at % wire.every === 0;
    const address = `2001:db8:${[0, 0].map(() => random.below(65_536).toString(16)).join(":")}::1`;
    const goodOf = (): Shape => corpus.shapes[name]?.() as Shape;
    const inputOf = (shape: Shape, rest: Pick<Input, "isLost" | "kind" | "isWhole">): Input => {
      const message = messageOf(shape, address);
      return {
        endpoint: isByWire ? `TLS: ${name}` : name,
        run: () => (isByWire ? wire.send(message) : answer(handle, message)),
        unchanged: () => inputOf(goodOf(), { isLost: false, kind: undefined, isWhole: () => true }),
        ...rest,
      };
    };
    const good = goodOf();
    let [shape, kind]: [Shape, Kind | undefined] = [good, undefined];
    const lost: string[] = [];
    const changes = isUnchanged(random) ? 0 : random.below(6) === 0 ? 2 : 1;
    for (let count = 0; count < changes; count++) {
      const changed = changeShape(random, shape);
      kind = kindOf(shape, changed.change);
      shape = changed.shape;
      if (changed.lost !== undefined) lost.push(proofOf(changed.lost));
    }
    const kept = shape.parts.filter(({ proves }) => proves).map(({ value }) => proofOf(textOf(value)));
    return inputOf(shape, {
      isLost: lost.some((one) => !kept.includes(one)),
      kind,
      isWhole: (status) => isWholeRequest(shape, good, status),
    });
  };
  const inputOf = (at: number): Input => {
    const random = prng(seedOf(seed, at));
    return random.below(3) === 0 ? documentOf(random) : requestOf(random, at);
  };
  /** The one and the other in turns, so that both meet the same store, with what they need there anew. */
  const timesAlone = async (at: number): Promise<{ times: number[]; good: number[] }> => {
    await corpus.renew();
    const [times, good]: [number[], number[]] = [[], []];
    const endMs = performance.now() + REPEATS_MS;
    while (times.length < REPEATS && (times.length < 3 || performance.now() < endMs)) {
      const input = inputOf(at);
      times.push((await timed(input)).us);
      good.push((await timed(input.unchanged())).us);
    }
    return { times, good };
  };
  const stray = (fault: unknown): void =>
    void figures.findings.push({ index, endpoint: "process", what: `unhandled: ${told(fault)}` });
  const measureHeap = (): void => {
    collect();
    figures.heap.push(process.memoryUsage().heapUsed);
  };
  const judge = async (input: Input, at: number): Promise<void> => {
    const { endpoint, isLost, kind, isWhole } = input;
    const isGood = kind === undefined;
    const of = figures.endpoints.getOrInsertComputed(endpoint, newEndpoint);
    const add = (what: string): void => void figures.findings.push({ index: at, endpoint, what });
    const { status, us, fault } = await timed(input);
    // Others were at work meanwhile, so that the time is not its own.
    const waited = at !== index;
    of.statuses.set(status, (of.statuses.get(status) ?? 0) + 1);
    of.count++;
    // What is refused at once is no measure for what is done, where the corpus has a request for that.
    if (isGood && of.good++ === 0) of.times = [];
    if (!waited && (isGood || of.good === 0)) of.times.push(us);
    if (of.times.length > TIMES) of.times.shift();
    if (fault !== undefined) add(told(fault));
    if (Number(status) >= 500 && status !== 503) add(`status ${status}`);
    if (isLost && Number(status) < 300) add(`status ${status} although its proof is another one`);
    if (of.times.length < TIMES / 8 || of.count % (TIMES / 8) === 0) of.meanUs = meanOf(of.times);
    if (kind !== undefined) {
      const seen = figures.kinds.getOrInsertComputed(kind, () => ({ count: 0, whole: 0 }));
      seen.count++;
      if (isWhole(status)) seen.whole++;
    }
    const isSlow = (one: number): boolean =>
      one > of.meanUs * Math.max(RATIO_MAX / 5, RATIO_STEP * of.slowest.ratio);
    if (waited || of.count < TIMES / 8 || !isSlow(us)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    alone = promise;
    const compared = await timed(inputOf(at))
      // Most were only interrupted, as by a collection of the heap.
      .then((second) => (isSlow(second.us) ? timesAlone(at) : undefined))
      .finally(resolve);
    if (compared === undefined) return;
    of.times = compared.good;
    of.meanUs = meanOf(compared.good);
    const ratio = meanOf(compared.times) / of.meanUs;
    if (ratio > of.slowest.ratio) of.slowest = { ratio, index: at };
    if (ratio > RATIO_MAX) add(`${ratio.toFixed(0)} times the CPU time of a good one`);
  };
  const waiting = new Set<Promise<void>>();
  measureHeap();
  process.on("unhandledRejection", stray).on("uncaughtException", stray);
  try {
    for (; index < first + inputs && Date.now() < untilMs; index++) {
      if (index > first && index % RENEWED_AFTER === 0) await corpus.renew();
      if (index > first && index % PROGRESS_AFTER === 0) {
        measureHeap();
        options.progress?.(figures);
      }
      figures.inputs++;
      const judged = judge(inputOf(index), index).finally(() => waiting.delete(judged));
      waiting.add(judged);
      await Promise.race([judged, setTimeout(WAIT_MS)]);
      await alone;
      if (waiting.size > WAITING_MAX) await Promise.race(waiting);
    }
    await Promise.all(waiting);
    measureHeap();
    const grownBy = (figures.heap.at(-1) ?? 0) - (figures.heap[figures.heap.length >> 1] ?? 0);
    if (grownBy > GROWTH_MAX)
      figures.findings.push({ index, endpoint: "process", what: `the heap grew by ${grownBy} bytes` });
  } finally {
    process.off("unhandledRejection", stray).off("uncaughtException", stray);
  }
  return figures;
}
