/**
 * The load of the rehearsal, a process of its own: so many requests a second, whether or not those before are answered
 * (an open loop), at the instances that were ready when asked last, as a balancer sends them. A request that meets a broken
 * connection is sent to another instance. Every token goes to a verifier in a further process, and its `jti` to a file.
 */
import { fork } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import { ask } from "../../bench/children.ts";
import { type Call, Line, makeCall } from "../../bench/client.ts";
import { quantile } from "../../bench/load.ts";
import { basic, claimsOf } from "../../http-client.ts";
import { type Backend, watchReadiness } from "../balancer.ts";
import { Verified } from "./verifying.ts";

export type LoadOrder = {
  issuer: string;
  /** PEM. */
  ca: string;
  instances: readonly Backend[];
  perSecond: number;
  client: string;
  secret: string;
  /** Of the user for whom the client exchanges it. */
  idToken: string;
  api: string;
  scope: string;
  /** Takes a line for each token: its `jti`, and when it was answered (ms). */
  jtiFile: string;
};

/** What happened since the last report. */
export const LoadReport = v.object({
  seconds: v.number(),
  answered: v.number(),
  /** Requests that were not sent, because so many before them had no answer yet. */
  unsent: v.number(),
  /** Requests that got no token from any instance, and why. */
  failed: v.array(v.string()),
  /** Connections that were refused, reset, or ended without an answer. */
  broken: v.array(v.string()),
  p50Ms: v.number(),
  p99Ms: v.number(),
  /** CPU time of this process. */
  cpuMs: v.number(),
});
export type LoadReport = v.InferOutput<typeof LoadReport>;

/** The interval of the recipe in scripts/deploy/README.md. */
const READY_MS = 1_000;
const TICK_MS = 5;
/** Clients that wait no longer do not ask at all. */
const BEHIND_SECONDS = 3;
/** Tokens go to the verifier and the file in groups. */
const FLUSH_MS = 100;
const LINES_BY_INSTANCE_MAX = 16;
/** A connection is given up after so many requests, so that there are new ones all the time. */
const REQUESTS_BY_LINE = 100;
/** An own token is an actor token for less than its lifetime of 300 s. */
const ACTOR_TOKEN_MS = 60_000;

class Pool {
  readonly backend: Backend;
  readonly #ca: string;
  readonly #idle: { line: Line; left: number }[] = [];
  #open = 0;

  constructor(backend: Backend, ca: string) {
    this.backend = backend;
    this.#ca = ca;
  }

  get hasRoom(): boolean {
    return this.#idle.length > 0 || this.#open < LINES_BY_INSTANCE_MAX;
  }

  /** By the connection that was idle for longest, so that none is idle for long. */
  async send(call: Call): Promise<{ status: number; body: string }> {
    const one = this.#idle.shift() ?? this.#make();
    try {
      return await one.line.send(call);
    } finally {
      if (--one.left === 0) {
        one.line.close();
        one.left = REQUESTS_BY_LINE;
      }
      this.#idle.push(one);
    }
  }

  #make() {
    this.#open++;
    const { port } = this.backend;
    return { line: new Line({ host: "127.0.0.1", port, ca: this.#ca }), left: REQUESTS_BY_LINE };
  }
}

/** The two requests of the client, in turn: a token of its own, and its user's ID token for one that speaks for the user. */
function makeCalls({ issuer, client, secret, idToken, api, scope }: LoadOrder) {
  const url = new URL(`${issuer}/token`);
  const authorization = basic(client, secret);
  const itself = makeCall(url, { grant_type: "client_credentials" }, authorization);
  let delegation = itself;
  let madeMs = Number.NEGATIVE_INFINITY;
  let turn = 0;
  return {
    next: (): Call => (turn++ % 2 === 0 ? itself : delegation),
    answered(call: Call, token: string): void {
      if (call !== itself || performance.now() < madeMs + ACTOR_TOKEN_MS) return;
      madeMs = performance.now();
      const form = {
        grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
        subject_token: idToken,
        subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
        actor_token: token,
        actor_token_type: "urn:ietf:params:oauth:token-type:access_token",
        audience: api,
        scope,
      };
      delegation = makeCall(url, form, authorization);
    },
  };
}

/** Takes each token for the verifier and the file, in groups. */
function openSink({ issuer, ca, instances, jtiFile }: LoadOrder) {
  const verifier = fork(join(import.meta.dirname, "verifying.ts"));
  verifier.send({ issuer, ca, ports: instances.map(({ port }) => port) });
  let tokens: string[] = [];
  let lines = "";
  const flush = (): void => {
    if (tokens.length === 0) return;
    verifier.send(tokens);
    appendFileSync(jtiFile, lines);
    tokens = [];
    lines = "";
  };
  const timer = setInterval(flush, FLUSH_MS);
  return {
    take(token: string): void {
      tokens.push(token);
      lines += `${claimsOf(token).jti} ${Date.now()}\n`;
    },
    end(): Promise<Verified> {
      clearInterval(timer);
      flush();
      return ask(verifier, "end", Verified);
    },
  };
}

/** What has happened since the last report. */
function openCount() {
  const none = () => ({ answered: 0, unsent: 0, failed: [] as string[], broken: [] as string[] });
  let since = none();
  let timesMs: number[] = [];
  let sinceMs = performance.now();
  let cpu = process.cpuUsage();
  return {
    answered(afterMs: number): void {
      since.answered++;
      timesMs.push(afterMs);
    },
    unsent: (): number => since.unsent++,
    failed: (why: string): void => void since.failed.push(why),
    broken: (why: string): void => void since.broken.push(why),
    report(): LoadReport {
      const sorted = Float64Array.from(timesMs).sort();
      const { user, system } = process.cpuUsage(cpu);
      const seconds = (performance.now() - sinceMs) / 1_000;
      const [p50Ms, p99Ms] = [quantile(sorted, 0.5) || 0, quantile(sorted, 0.99) || 0];
      const report = { ...since, seconds, p50Ms, p99Ms, cpuMs: (user + system) / 1_000 };
      [since, timesMs, sinceMs, cpu] = [none(), [], performance.now(), process.cpuUsage()];
      return report;
    },
  };
}

function startLoad(order: LoadOrder) {
  const { instances, ca, perSecond } = order;
  const pools = instances.map((backend) => new Pool(backend, ca));
  const readiness = watchReadiness(instances, READY_MS);
  const calls = makeCalls(order);
  const sink = openSink(order);
  const count = openCount();
  /** Requests for which no connection is free; each is woken when one is, and chooses then. */
  const waiting: (() => void)[] = [];
  let [turn, begun, pending] = [0, 0, 0];

  /** Sends it to one instance after another until one answers, and returns a body of status 200. */
  const send = async (call: Call): Promise<string | undefined> => {
    const tried = new Set<Pool>();
    for (;;) {
      const able = pools.filter((each) => readiness.ready.has(each.backend) && !tried.has(each));
      if (able.length === 0) return void count.failed(`no instance is ready beside ${tried.size} tried`);
      const free = able.filter(({ hasRoom }) => hasRoom);
      const pool = free[turn++ % Math.max(1, free.length)];
      if (pool === undefined) {
        await new Promise<void>((resolve) => waiting.push(resolve));
        continue;
      }
      try {
        const { status, body } = await pool.send(call);
        return status === 200 ? body : void count.failed(`${status}: ${body.slice(0, 200)}`);
      } catch (fault) {
        count.broken(`${pool.backend.port}: ${fault instanceof Error ? fault.message : fault}`);
        tried.add(pool);
      } finally {
        waiting.shift()?.();
      }
    }
  };
  const request = async (dueMs: number): Promise<void> => {
    pending++;
    const call = calls.next();
    const body = await send(call);
    pending--;
    if (body === undefined) return;
    count.answered(performance.now() - dueMs);
    const { access_token: token } = JSON.parse(body);
    calls.answered(call, token);
    sink.take(token);
  };
  const startMs = performance.now() + READY_MS;
  const tick = setInterval(() => {
    const due = ((performance.now() - startMs) * perSecond) / 1_000;
    for (; begun < due; begun++) {
      if (pending < BEHIND_SECONDS * perSecond) void request(startMs + (begun * 1_000) / perSecond);
      else count.unsent();
    }
  }, TICK_MS);
  return {
    report: count.report,
    /** The ports of the instances that were ready when asked last. */
    ready: (): number[] => [...readiness.ready].map(({ port }) => port),
    /** Ends with the last answer, and with what the verifier says. */
    async stop(): Promise<Verified> {
      clearInterval(tick);
      while (pending > 0) await sleep(TICK_MS);
      readiness.close();
      return sink.end();
    },
  };
}

if (import.meta.main) {
  let load: ReturnType<typeof startLoad> | undefined;
  process.on("message", async (message: LoadOrder | "ready" | "report" | "stop") => {
    if (typeof message === "object") {
      load = startLoad(message);
      process.send?.([]);
    } else process.send?.(await load?.[message]());
  });
  process.on("disconnect", () => process.exit());
}
