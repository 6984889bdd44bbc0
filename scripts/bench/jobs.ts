/** What a run measures: each kind of request to each server that is asked for. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Revision } from "./revision.ts";
import type { Job } from "./rounds.ts";
import { prepare, SCENARIOS, type Scenario } from "./scenarios.ts";
import { openOther, openStage, type Side, type Stage } from "./stage.ts";

const PEER = "oidc-provider@9.13.3";

export type JobOptions = {
  connections: number;
  /** Kinds of requests; all if absent. */
  only?: readonly Scenario[];
  /** The URL of an empty database, for rows on PostgreSQL beside those on SQLite. */
  postgres?: string;
  /** Whether oidc-provider is installed in a temporary folder and measured. */
  peers?: boolean;
};

/** Steps that close what was opened, in the order of opening. */
export type Undo = (() => unknown)[];

async function opened<S extends Side>(opening: Promise<S>, undo: Undo): Promise<S> {
  const side = await opening;
  undo.push(() => side.close());
  return side;
}

export async function allJobs(
  { connections, only = SCENARIOS, postgres, peers = false }: JobOptions,
  undo: Undo,
): Promise<readonly Job[]> {
  const stage = await opened(openStage(), undo);
  const { profile, folder } = stage;
  const { calls, refused } = await prepare(stage);
  const withPeople = only.includes("callback") ? await opened(openStage({ people: true }), undo) : stage;
  const people = await prepare(withPeople);
  const jobs: Job[] = only.map((name) =>
    name === "callback"
      ? { name, side: withPeople, connections, status: 303, calls: (count) => people.calls(name, count) }
      : { name, side: stage, connections, calls: (count) => calls(name, count) },
  );
  const database = join(folder, "skeleton.sqlite");
  const skeleton = await opened(
    openOther(stage, "skeleton.ts", "/token", (port) => [profile, port, database]),
    undo,
  );
  const further = (name: string, side: Side, scenario: Scenario, rest: Partial<Job> = {}): void => {
    if (!only.includes(scenario)) return;
    jobs.push({ name, side, connections, calls: (count) => calls(scenario, count, side), ...rest });
  };
  further("secret, 1 connection", stage, "secret", { connections: 1 });
  further("secret, 64 connections", stage, "secret", { connections: 64 });
  further("secret, 250 connections", stage, "secret", { connections: 250 });
  further("secret, new connections", stage, "secret", { anew: true });
  further("refused", stage, "secret", { status: 400, calls: async () => [await refused()] });
  further("secret, beside a busy process", stage, "secret", { busy: true });
  further("skeleton secret", skeleton, "secret");
  further("skeleton secret, beside a busy process", skeleton, "secret", { busy: true });
  further("skeleton secret, 1 connection", skeleton, "secret", { connections: 1 });
  further("skeleton secret, new connections", skeleton, "secret", { anew: true });
  further("skeleton delegation", skeleton, "delegation");
  further("skeleton handshake", skeleton, "secret", { anew: true, calls: async () => [] });
  if (peers) {
    const installed = installPeer(folder);
    const peer = await opened(
      openOther(stage, "peer.ts", "/token", (port) => [installed, profile, port]),
      undo,
    );
    further("oidc-provider secret", peer, "secret");
    further("oidc-provider secret, beside a busy process", peer, "secret", { busy: true });
  }
  if (postgres !== undefined) {
    const second = await opened(openStage({ postgres }), undo);
    const prepared = await prepare(second);
    for (const scenario of ["secret", "delegation", "introspection"] as const) {
      further(`PostgreSQL ${scenario}`, second, scenario, {
        calls: (count) => prepared.calls(scenario, count),
      });
    }
  }
  return jobs;
}

/** Both revisions of each kind of request, one after the other. */
export async function jobsAgainst(
  { root, commit }: Revision,
  { connections, only = SCENARIOS }: JobOptions,
  undo: Undo,
): Promise<readonly Job[]> {
  const people = only.includes("callback");
  const stages: [name: string, stage: Stage][] = [
    ["", await opened(openStage({ people }), undo)],
    [`${commit} `, await opened(openStage({ root, people }), undo)],
  ];
  const prepared = await Promise.all(
    stages.map(async ([prefix, side]) => ({ prefix, side, ...(await prepare(side)) })),
  );
  return only.flatMap((scenario) =>
    prepared.map(({ prefix, side, calls }) => ({
      name: `${prefix}${scenario}`,
      side,
      connections,
      status: scenario === "callback" ? 303 : 200,
      calls: (count: number) => calls(scenario, count),
    })),
  );
}

/** In a folder that is removed with the stage, so that the project does not depend on it. */
function installPeer(folder: string): string {
  const place = join(folder, "peer");
  mkdirSync(place);
  writeFileSync(join(place, "package.json"), JSON.stringify({ private: true }));
  execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund", PEER], { cwd: place });
  return place;
}
