/**
 * A release beside the sources that it is made of, in alternation on the same profiles: what a start takes, what stays
 * resident, and how long commands of the operator take.
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { defined } from "../../src/result.ts";
import { makeRelease } from "../release.ts";
import { end } from "./children.ts";
import { Line } from "./client.ts";
import { enlarge } from "./grow.ts";
import type { Undo } from "./jobs.ts";
import { type Job, measureRounds, median, startLoad } from "./rounds.ts";
import { prepare } from "./scenarios.ts";
import { mainOf, makeFolder, makePlace, NOT_KEPT, openStage, type Place, ROOT, startAt } from "./stage.ts";
import { measureFirstToken, measureStart, middleOf, type Start } from "./starts.ts";

export type ReleaseOptions = {
  connections: number;
  seconds: number;
  rounds: number;
  /** Of the large configuration, beside those of the development profile. */
  rules?: number;
  trustDomains?: number;
};

/** `target` is of the ratio; absent where none is set. */
export type Beside = { name: string; sources: number; release: number; target?: number };

type Both<T> = { sources: T; release: T };
type Roots = Both<string>;

export async function besideRelease(options: ReleaseOptions): Promise<readonly Beside[]> {
  const { folder, remove } = makeFolder();
  try {
    const roots = { sources: ROOT, release: (await makeRelease(folder)).folder };
    return [
      ...(await starts("", roots, options, { people: false }, 0.25)),
      ...(await starts(", with signIn", roots, options, { people: true }, 0.3)),
      ...(await underLoad(roots, options)),
      ...(await commands(roots, options)),
    ];
  } finally {
    remove();
  }
}

/** One after the other, so that what else the machine does falls on both. */
async function alternate<T>(
  roots: Roots,
  rounds: number,
  once: (root: string) => Promise<T>,
): Promise<Both<T[]>> {
  const both: Both<T[]> = { sources: [], release: [] };
  for (let round = 0; round < rounds; round++) {
    both.sources.push(await once(roots.sources));
    both.release.push(await once(roots.release));
  }
  return both;
}

async function starts(
  which: string,
  roots: Roots,
  { rounds }: ReleaseOptions,
  { people }: { people: boolean },
  target: number,
): Promise<readonly Beside[]> {
  const both = await alternate(roots, rounds, (root) => measureStart({ root, people, compiled: NOT_KEPT }));
  return startRows(which, both, { cpuMs: target, residentMegabytes: 0.7 });
}

const startRows = (
  which: string,
  both: Both<Start[]>,
  targets: Partial<Record<keyof Start, number>>,
): readonly Beside[] => {
  const [sources, release] = [middleOf(both.sources), middleOf(both.release)];
  const row = (name: string, of: keyof Start): Beside =>
    defined<Beside>({
      name: `${name}${which}`,
      sources: sources[of],
      release: release[of],
      target: targets[of],
    });
  return [
    row("CPU ms to the listening server", "listeningCpuMs"),
    row("CPU ms to the first token", "cpuMs"),
    row("s to the first token", "seconds"),
    row("resident MB after it", "residentMegabytes"),
  ];
};

async function underLoad(
  roots: Roots,
  { connections, seconds, rounds }: ReleaseOptions,
): Promise<readonly Beside[]> {
  const undo: Undo = [];
  try {
    const load = startLoad();
    undo.push(() => end(load));
    const jobs: Job[] = [];
    for (const root of [roots.sources, roots.release]) {
      const side = await openStage({ root, compiled: NOT_KEPT });
      undo.push(() => side.close());
      const { calls } = await prepare(side);
      for (const scenario of ["secret", "delegation"] as const)
        jobs.push({ name: scenario, side, connections, calls: (count) => calls(scenario, count) });
    }
    const [secret, delegation, secretThere, delegationThere] = await measureRounds(load, jobs, {
      rounds,
      secondsEach: seconds / rounds,
    });
    if (!secret || !delegation || !secretThere || !delegationThere) throw new Error("a row is missing");
    return [
      {
        name: "CPU µs of a secret",
        sources: secret.serverCpuMicros,
        release: secretThere.serverCpuMicros,
        target: 1,
      },
      {
        name: "CPU µs of a delegation",
        sources: delegation.serverCpuMicros,
        release: delegationThere.serverCpuMicros,
      },
      {
        name: "resident MB under load",
        sources: delegation.residentMegabytes,
        release: delegationThere.residentMegabytes,
        target: 0.95,
      },
    ];
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

/** With the configuration of the development profile, and with a large one. */
async function commands(roots: Roots, options: ReleaseOptions): Promise<readonly Beside[]> {
  const { rounds, rules, trustDomains } = options;
  const small = await makePlace();
  const large = await makePlace({ alter: (config) => enlarge(config, rules, trustDomains) });
  try {
    const starts = await alternate(roots, rounds, async (root) =>
      measureFirstToken(await startAt(large, { root, compiled: NOT_KEPT })),
    );
    const rows = [...startRows(", large configuration", starts, {})];
    for (const [place, which] of [
      [small, ""],
      [large, ", large configuration"],
    ] as const) {
      const jti = await issueOne(place);
      const vectors = join(place.folder, "vectors.json");
      writeFileSync(vectors, JSON.stringify([VECTOR]));
      for (const [name, words] of [
        ["check", ["check"]],
        ["audit --jti", ["audit", "--jti", jti]],
        ["policy test", ["policy", "test", vectors]],
      ] as const) {
        const both = await alternate(roots, rounds, async (root) => runCommand(root, words, place));
        rows.push({
          name: `ms of mandate ${name}${which}`,
          sources: median(both.sources),
          release: median(both.release),
          target: 0.4,
        });
      }
    }
    return rows;
  } finally {
    small.remove();
    large.remove();
  }
}

const VECTOR = {
  name: "the report for itself",
  ask: { client: "nightly-report", target: "https://api.example" },
  expect: "allow",
};

/** The `jti` of a token that the server issued there before it ended. */
async function issueOne(place: Place): Promise<string> {
  const stage = await startAt(place);
  try {
    const line = new Line(stage.endpoint);
    const { body } = await line.send(await (await prepare(stage, [])).first());
    line.close();
    return decodeJwt(JSON.parse(body).access_token).jti ?? "";
  } finally {
    await stage.close();
  }
}

/** What `check` finds in a development profile does not matter here; a command that fails does. */
function runCommand(root: string, words: readonly string[], { configFile }: Place): number {
  const flags = ["--disable-warning=ExperimentalWarning", mainOf(root)];
  const beganMs = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [...flags, ...words, "--config", configFile], {
    encoding: "utf8",
    // A large configuration has many findings.
    stdio: ["ignore", "ignore", "pipe"],
    maxBuffer: Number.POSITIVE_INFINITY,
    env: { ...process.env, NODE_COMPILE_CACHE: undefined },
  });
  const tookMs = performance.now() - beganMs;
  if (status !== 0 && !(status === 1 && words[0] === "check"))
    throw new Error(`mandate ${words.join(" ")} ended with ${status}: ${stderr}`);
  return tookMs;
}
