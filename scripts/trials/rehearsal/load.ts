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
import type { Call } from "../../bench/client.ts";
import { Line, makeCall } from "../../bench/client.ts";
import { quantile } from "../../bench/load.ts";
import { basic, claimsOf } from "../../http-client.ts";
import type { Backend } from "../balancer.ts";
import { watchReadiness } from "../balancer.ts";
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
  /** Requests that got no token from any instance, and why. */
  failed: v.array(v.string()),
  /** Connections that were refused, reset, or ended without an answer. */
  broken: v.array(v.string()),
  p50Ms: v.number(),
  p99Ms: v.number(),
  /** CPU time of this process. */
  cpuMs: v.number(),
  /** The ports of the instances that were ready when asked last. */
  ready: v.array(v.number()),
});
export type LoadReport = v.InferOutput<typeof LoadReport>;

/** The interval of the recipe in scripts/README.md. */
const READY_MS = 1_000;
const TICK_MS = 5;
/** Tokens go to the verifier and the file in groups. */
const FLUSH_MS = 100;
const LINES_BY_INSTANCE_MAX = 16;
/** A connection is given up after so many requests, so that there are new ones all the time. */
const REQUESTS_BY_LINE = 100;
/** An own token is an actor token for less than its lifetime of 300 s. */
const ACTOR_TOKEN_MS = 60_000;
const TRIES_MAX = 5;

class Pool {
  readonly backend: Backend;
  readonly #ca: string;
  readonly #idle: { line: Line; left: number }[] = [];
  readonly #waiting: (() => void)[] = [];
  #open = 0;

  constructor(backend: Backend, ca: string) {
    this.backend = backend;
    this.#ca = ca;
  }

  /** The connection that was idle for longest, so that none is idle for long. */
  async send(call: Call): Promise<{ status: number; body: string }> {
    while (this.#idle.length === 0 && this.#open >= LINES_BY_INSTANCE_MAX) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    const one = this.#idle.shift() ?? this.#make();
    try {
      return await one.line.send(call);
    } finally {
      if (--one.left === 0) {
        one.line.close();
        one.left = REQUESTS_BY_LINE;
      }
      this.#idle.push(one);
      this.#waiting.shift()?.();
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

function startLoad(order: LoadOrder) {
  const { instances, ca, issuer, perSecond, jtiFile } = order;
  const pools = instances.map((backend) => new Pool(backend, ca));
  const readiness = watchReadiness(instances, READY_MS);
  const calls = makeCalls(order);
  const verifier = fork(join(import.meta.dirname, "verifying.ts"));
  verifier.send({ issuer, ca, ports: instances.map(({ port }) => port) });
  const none = () => ({
    answered: 0,
    failed: [] as string[],
    broken: [] as string[],
    timesMs: [] as number[],
  });
  let since = none();
  let sinceMs = performance.now();
  let cpu = process.cpuUsage();
  let [turn, begun, pending] = [0, 0, 0];
  let [tokens, jtis]: string[][] = [[], []];

  const flush = (): void => {
    if (tokens?.length) verifier.send(tokens);
    if (jtis?.length) appendFileSync(jtiFile, jtis.join(""));
    [tokens, jtis] = [[], []];
  };
  const choose = (tried: ReadonlySet<Pool>): Pool | undefined => {
    const able = pools.filter((pool) => readiness.ready.has(pool.backend) && !tried.has(pool));
    return able[turn++ % Math.max(1, able.length)];
  };
  const request = async (dueMs: number): Promise<void> => {
    const call = calls.next();
    const tried = new Set<Pool>();
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const pool = choose(tried);
      if (pool === undefined) {
        since.failed.push("no instance is ready");
        return;
      }
      try {
        const { status, body } = await pool.send(call);
        if (status !== 200) return void since.failed.push(`${status}: ${body.slice(0, 200)}`);
        const { access_token } = JSON.parse(body);
        since.answered++;
        since.timesMs.push(performance.now() - dueMs);
        calls.answered(call, access_token);
        tokens?.push(access_token);
        jtis?.push(`${claimsOf(access_token).jti} ${Date.now()}\n`);
        return;
      } catch (fault) {
        since.broken.push(`${pool.backend.port}: ${fault instanceof Error ? fault.message : fault}`);
        tried.add(pool);
      }
    }
    since.failed.push("every try met a broken connection");
  };
  const startMs = performance.now() + READY_MS;
  const tick = setInterval(() => {
    const due = ((performance.now() - startMs) * perSecond) / 1_000;
    for (; begun < due; begun++) {
      pending++;
      void request(startMs + (begun * 1_000) / perSecond).finally(() => pending--);
    }
  }, TICK_MS);
  const flushing = setInterval(flush, FLUSH_MS);
  return {
    report(): LoadReport {
      const { timesMs, ...counted } = since;
      const sorted = Float64Array.from(timesMs).sort();
      const { user, system } = process.cpuUsage(cpu);
      const seconds = (performance.now() - sinceMs) / 1_000;
      [since, sinceMs, cpu] = [none(), performance.now(), process.cpuUsage()];
      return {
        ...counted,
        seconds,
        p50Ms: quantile(sorted, 0.5) || 0,
        p99Ms: quantile(sorted, 0.99) || 0,
        cpuMs: (user + system) / 1_000,
        ready: [...readiness.ready].map(({ port }) => port),
      };
    },
    ready: () => [...readiness.ready].map(({ port }) => port),
    /** Ends with the last answer, and with what the verifier says. */
    async stop(): Promise<Verified> {
      clearInterval(tick);
      while (pending > 0) await sleep(TICK_MS);
      clearInterval(flushing);
      flush();
      readiness.close();
      return ask(verifier, "end", Verified);
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
