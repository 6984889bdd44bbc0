/**
 * What the benchmark runs against: a temporary development profile, its stand-in identity provider, and the server in
 * its own process, started as `npm start` does.
 */
import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock, random } from "../../src/adapters/crypto/system.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Consent } from "../../src/policy/ask.ts";
import { makeProfile } from "../dev-profile.ts";
import type { Idp } from "../idp.ts";
import { loadIdp } from "../idp.ts";
import type { Order } from "./load.ts";
import { Outcome } from "./load.ts";

const ROOT = join(import.meta.dirname, "../..");
const HOST = "127.0.0.1";
const START_TIMEOUT_MS = 15_000;
const POLL_MS = 20;

export type StageOptions = {
  connections: number;
  /** The URL of an empty database; SQLite if absent. */
  postgres?: string;
};

export type Grant = Pick<Consent, "origin" | "actor" | "targets" | "scopes">;

export type Stage = {
  /** The folder of the profile, and the certificate of its authority. */
  profile: string;
  caFile: string;
  issuer: string;
  idp: Idp;
  /** Writes consents directly to the server's store. */
  addConsents(grants: readonly Grant[]): Promise<void>;
  run(order: Order): Promise<Exclude<Outcome, { problem: string }>>;
  /** CPU time of the server process since its start. */
  serverCpuMicros(): Promise<number>;
  close(): Promise<void>;
};

export async function openStage({ connections, postgres }: StageOptions): Promise<Stage> {
  // The permission model compares real paths, so symbolic links are resolved.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "mandate-bench-")));
  const undo: (() => unknown)[] = [];
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.on("exit", remove);
  const close = async () => {
    for (const step of undo.splice(0).reverse()) await step();
    remove();
    process.off("exit", remove);
  };
  try {
    const profile = join(folder, "profile");
    const [port = 0, idpPort = 0] = await freePorts(2);
    const { configFile, issuer } = await makeProfile(profile, { port, idpPort, host: HOST });
    const config = JSON.parse(readFileSync(configFile, "utf8"));
    // The few clients of the benchmark would otherwise reach their rate limit.
    config.limits = { requestsPerSecondByClient: 1_000_000 };
    if (postgres !== undefined) config.store = { postgres };
    writeFileSync(configFile, JSON.stringify(config));
    const idp = await loadIdp(profile);
    const server = await startServer(folder, configFile);
    undo.push(() => end(server));
    const caFile = join(profile, "tls", "ca.pem");
    const load = fork(
      join(import.meta.dirname, "load.ts"),
      [`${issuer}/token`, caFile, String(connections)],
      // The flags of this process do not apply to the child: they may be those of the test runner.
      { execArgv: [] },
    );
    undo.push(() => end(load));
    return {
      profile,
      caFile,
      issuer,
      idp,
      addConsents: (grants) => addConsents(profile, postgres, grants),
      async run(order) {
        const outcome = await ask(load, order, Outcome);
        if ("problem" in outcome) throw new Error(outcome.problem);
        return outcome;
      },
      serverCpuMicros: () => ask(server, "usage", v.number()),
      close,
    };
  } catch (fault) {
    await close();
    throw fault;
  }
}

/** All ports are held at the same time, so that they differ. */
async function freePorts(count: number): Promise<number[]> {
  const holders = Array.from({ length: count }, () => createServer().listen(0, HOST));
  await Promise.all(holders.map((holder) => once(holder, "listening")));
  const ports = holders.map((holder) => (holder.address() as AddressInfo).port);
  await Promise.all(holders.map((holder) => once(holder.close(), "close")));
  return ports;
}

/** Starts the server as `npm start` does, with a preload that reports CPU time; its output goes to a file. */
async function startServer(folder: string, configFile: string): Promise<ChildProcess> {
  const logFile = join(folder, "server.log");
  const log = openSync(logFile, "w", 0o600);
  const server = fork(join(ROOT, "src", "main.ts"), ["--config", configFile], {
    cwd: ROOT,
    execArgv: [
      "--disable-warning=ExperimentalWarning",
      "--permission",
      "--allow-net",
      "--allow-fs-read=.",
      `--allow-fs-read=${folder}`,
      `--allow-fs-write=${folder}/*`,
      `--import=${join(import.meta.dirname, "usage.ts")}`,
    ],
    stdio: ["ignore", log, log, "ipc"],
  });
  closeSync(log);
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const said = readFileSync(logFile, "utf8");
    if (said.includes(" listens on ")) return server;
    if (hasEnded(server) || performance.now() > deadlineMs) {
      await end(server);
      throw new Error(`the server did not start: ${said}`);
    }
    await sleep(POLL_MS);
  }
}

async function addConsents(
  profile: string,
  postgres: string | undefined,
  grants: readonly Grant[],
): Promise<void> {
  const store = await openStore(
    postgres === undefined ? { sqlite: join(profile, "mandate.sqlite") } : { postgres },
  );
  try {
    // A fatal error needs no handler, because every pending record() rejects with it.
    const onFatal = () => undefined;
    const log = `bench-${randomUUID()}`;
    const journal = await openJournal({ log, store: store.log, clock, random, onFatal });
    const recorded = await Promise.all(
      grants.map((grant) =>
        journal.record({
          event: { type: "consent.recorded", outcome: "allow", reason: "by_administrator" },
          consent: { add: { id: random.id(), version: 1, ...grant } },
        }),
      ),
    );
    await journal.close();
    if (!recorded.every(({ ok }) => ok)) throw new Error("a consent could not be recorded");
  } finally {
    await store.close();
  }
}

/** Sends one message to a child process and waits for its answer; the caller sends one at a time. */
function ask<S extends v.GenericSchema>(
  child: ChildProcess,
  question: Order | string,
  schema: S,
): Promise<v.InferOutput<S>> {
  return new Promise((resolve, reject) => {
    const ended = () => {
      child.off("message", answered);
      reject(new Error("a child process of the benchmark ended"));
    };
    const answered = (answer: unknown) => {
      child.off("exit", ended);
      const parsed = v.safeParse(schema, answer);
      if (parsed.success) resolve(parsed.output);
      else reject(new v.ValiError(parsed.issues));
    };
    if (hasEnded(child)) return ended();
    child.once("exit", ended);
    child.once("message", answered);
    child.send(question);
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
