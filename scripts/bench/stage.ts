/**
 * The servers of a run. Each Mandate has a temporary development profile with its stand-in identity provider, and runs
 * in its own process, started as `npm start` does; the others use the profile of the first one.
 */
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Consent } from "../../src/policy/access.ts";
import { defined } from "../../src/result.ts";
import { makeProfile, type ProfileOptions } from "../dev-profile.ts";
import { type Idp, loadIdp } from "../idp.ts";
import { freePorts } from "../server-process.ts";
import { openStandIn } from "../stand-in.ts";
import { ask, end, HOST, startMeasured, Usage } from "./children.ts";
import type { Endpoint } from "./client.ts";

export const ROOT = join(import.meta.dirname, "../..");

/** The file that Node runs for a command line, of sources or a release in this folder; early revisions do not name it. */
export const mainOf = (root: string): string =>
  join(root, JSON.parse(readFileSync(join(root, "package.json"), "utf8")).bin?.mandate ?? "src/main.ts");

/** A server that is measured. */
export type Side = {
  /** Its token endpoint. */
  url: URL;
  endpoint: Endpoint;
  usage(): Promise<Usage>;
  /** What the audit journal wrote since the start. */
  committed?(): Promise<Committed>;
  close(): Promise<void>;
};

export type Committed = { events: number; commits: number };

export type Grant = Pick<Consent, "origin" | "actor" | "targets" | "scopes">;

/** A Mandate. */
export type Stage = Side & {
  /** A folder for this stage alone, which is removed with it, and the folder of the profile in it. */
  folder: string;
  profile: string;
  issuer: string;
  idp: Idp;
  /** From the start of the process until it listened. */
  startMs: number;
  /** What the process wrote to disks so far; Linux only. */
  writtenBytes(): number;
  /** Writes consents directly to the server's store. */
  addConsents(grants: readonly Grant[]): Promise<void>;
};

export type StageOptions = {
  /** The folder with the sources of the server, or of a release; this repository if absent. */
  root?: string;
  /** The URL of an empty database; SQLite if absent. */
  postgres?: string;
  /** Users sign in, at a stand-in provider in this process. */
  people?: boolean;
  /**
   * A folder in which the platform keeps compiled modules from one start to the next, or NOT_KEPT. Absent: the folder
   * that NODE_COMPILE_CACHE names for this process, if any.
   */
  compiled?: string | typeof NOT_KEPT;
};

/** The server compiles its modules at each start. */
export const NOT_KEPT = Symbol("compiled modules are not kept");

export async function openStage({ root, postgres, people, compiled }: StageOptions = {}): Promise<Stage> {
  const place = await makePlace(defined({ postgres, people }));
  const standIn = await openStandIn(place.profile, { codesMax: Number.POSITIVE_INFINITY, anyName: true });
  try {
    const stage = await startAt(place, defined({ root, compiled }));
    return {
      ...stage,
      async close() {
        await stage.close();
        standIn?.close().closeAllConnections();
        place.remove();
      },
    };
  } catch (fault) {
    standIn?.close();
    place.remove();
    throw fault;
  }
}

/** A profile in a temporary folder, with which servers are started one after another. */
export type Place = {
  folder: string;
  profile: string;
  configFile: string;
  issuer: string;
  port: number;
  operationsPort: number;
  postgres?: string;
  remove(): void;
};

/** `alter` changes the configuration before it is written. */
export async function makePlace({
  postgres,
  people = false,
  alter = () => undefined,
}: Pick<StageOptions, "postgres" | "people"> & {
  // biome-ignore lint/suspicious/noExplicitAny: the configuration as JSON, which the server checks when it starts.
  alter?: (config: any) => void;
} = {}): Promise<Place> {
  const { folder, remove } = makeFolder();
  try {
    const profile = join(folder, "profile");
    const [port = 0, idpPort = 0, operationsPort = 0, mtlsPort = 0] = await freePorts(4);
    const options = defined<ProfileOptions>({
      port,
      idpPort,
      host: HOST,
      people: people ? { mtlsPort } : undefined,
    });
    const { configFile, issuer } = await makeProfile(profile, options);
    const config = JSON.parse(readFileSync(configFile, "utf8"));
    // The few clients of the benchmark would otherwise reach their rate limit.
    config.limits = { requestsPerSecondByClient: 1_000_000, pagesPerMinuteBySource: 1_000_000 };
    config.operations = { port: operationsPort };
    // They change nothing here, and an earlier version that is compared does not know them.
    delete config.agents;
    for (const issuer of Object.values<{ signals?: object }>(config.trustedIssuers ?? {}))
      delete issuer.signals;
    if (postgres !== undefined) config.store = { postgres };
    alter(config);
    writeFileSync(configFile, JSON.stringify(config));
    return defined<Place>({ folder, profile, configFile, issuer, port, operationsPort, postgres, remove });
  } catch (fault) {
    remove();
    throw fault;
  }
}

/** `environment`: what the server has in its environment beside that of this process. */
export async function startAt(
  { folder, profile, configFile, issuer, port, operationsPort, postgres }: Place,
  {
    root = ROOT,
    compiled = process.env.NODE_COMPILE_CACHE ?? NOT_KEPT,
    environment = {},
  }: Omit<StageOptions, "postgres"> & { environment?: NodeJS.ProcessEnv } = {},
): Promise<Stage> {
  const kept = compiled === NOT_KEPT ? undefined : compiled;
  const began = performance.now();
  const server = await startMeasured(mainOf(root), ["--config", configFile], {
    cwd: root,
    logFile: join(folder, "server.log"),
    environment: { ...environment, NODE_COMPILE_CACHE: kept },
    flags: [
      "--disable-warning=ExperimentalWarning",
      "--max-semi-space-size=16",
      "--max-old-space-size=512",
      "--permission",
      "--allow-net",
      "--allow-fs-read=.",
      `--allow-fs-read=${ROOT}`,
      `--allow-fs-read=${folder}`,
      `--allow-fs-write=${folder}/*`,
      ...(kept === undefined ? [] : [`--allow-fs-read=${kept}`, `--allow-fs-write=${kept}/*`]),
    ],
  });
  return {
    folder,
    profile,
    issuer,
    idp: await loadIdp(profile),
    startMs: performance.now() - began,
    url: new URL(`${issuer}/token`),
    endpoint: { host: HOST, port, ca: readFileSync(join(profile, "tls", "ca.pem"), "utf8") },
    usage: () => ask(server, "usage", Usage),
    committed: () => committedAt(operationsPort),
    writtenBytes: () => writtenBytes(server.pid),
    addConsents: (grants) => addConsents(root, profile, postgres, grants),
    close: () => end(server),
  };
}

/** From the metrics of the server. */
async function committedAt(operationsPort: number): Promise<Committed> {
  const metrics = await (await fetch(`http://${HOST}:${operationsPort}/metrics`)).text();
  const counted = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(metrics)?.[1]);
  return {
    events: counted("mandate_journal_entries_total"),
    commits: counted("mandate_journal_commit_seconds_count"),
  };
}

/** What a process had the system write to disks, as Linux counts it: whole pages, those of the log too. */
function writtenBytes(pid: number | undefined): number {
  const counts = readFileSync(`/proc/${pid}/io`, "utf8");
  return Number(/^write_bytes: (\d+)$/m.exec(counts)?.[1]);
}

/** A server of this folder, which takes the arguments of `args` and a port, and serves with the profile's certificate. */
export async function openOther(
  { folder, endpoint }: Stage,
  script: string,
  path: string,
  args: (port: string) => readonly string[],
): Promise<Side> {
  const [port = 0] = await freePorts(1);
  const server = await startMeasured(join(import.meta.dirname, script), args(String(port)), {
    cwd: ROOT,
    logFile: join(folder, `${script}.log`),
    flags: ["--disable-warning=ExperimentalWarning"],
  });
  return {
    url: new URL(`https://${HOST}:${port}${path}`),
    endpoint: { ...endpoint, port },
    usage: () => ask(server, "usage", Usage),
    close: () => end(server),
  };
}

/** A temporary folder, which is removed at the latest when this process exits. */
export function makeFolder(): { folder: string; remove: () => void } {
  // The permission model compares real paths, so symbolic links are resolved.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "mandate-bench-")));
  const atExit = () => rmSync(folder, { recursive: true, force: true });
  process.on("exit", atExit);
  const remove = () => {
    atExit();
    process.off("exit", atExit);
  };
  return { folder, remove };
}

/** By the sources of the server, whose store may have other tables than ours; a release has the tables of this folder. */
async function addConsents(
  root: string,
  profile: string,
  postgres: string | undefined,
  grants: readonly Grant[],
): Promise<void> {
  const own = join(root, "src/adapters");
  const sources = existsSync(own) ? own : join(ROOT, "src/adapters");
  const { openJournal }: typeof import("../../src/adapters/audit/journal.ts") = await import(
    join(sources, "audit/journal.ts")
  );
  const { clock }: typeof import("../../src/adapters/clock.ts") = await import(join(sources, "clock.ts"));
  const { random }: typeof import("../../src/adapters/crypto/random.ts") = await import(
    join(sources, "crypto/random.ts")
  );
  const { openStore }: typeof import("../../src/adapters/store/open.ts") = await import(
    join(sources, "store/open.ts")
  );
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
