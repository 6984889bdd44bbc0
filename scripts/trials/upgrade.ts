/**
 * Upgrades and the way back under load: for each migration after the first, the version before it and the version with it,
 * and the version before it and this one. On PostgreSQL over TLS they serve beside each other; on SQLite one takes
 * over from the other. The versions come from the history of the repository.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { startDatabaseServer } from "../../test/support/pg-transports.ts";
import { freshDatabase } from "../../test/support/postgres.ts";
import { checkOut, type Revision } from "../bench/revision.ts";
import { ROOT } from "../bench/stage.ts";
import { openVersions, THIS, type Version, type Versions } from "./versions.ts";

const MIGRATIONS = "sql/postgres";
/** It makes all tables: from the next one on, the version before a migration serves beside the one with it. */
const FIRST = "0001_initial.sql";
/** A revision that is to meet this version, in place of all those. */
const BEFORE = process.env.MANDATE_TRIAL_BEFORE;

const TRIES_MAX = 10;

const git = (...args: string[]): string => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();

export async function runUpgrade(rounds: number): Promise<readonly string[]> {
  if (!existsSync(join(ROOT, ".git")) || git("rev-parse", "--is-shallow-repository") === "true") {
    return ["not run here: the history of the repository is missing"];
  }
  const pairs = changes();
  if (pairs.length === 0) return ["not run here: there is one migration, and no version before it"];
  const server = await startDatabaseServer({ durable: true });
  const meet = async (name: string, older: Version, newer: Version): Promise<readonly string[]> => {
    const pair = `${name}: ${older.commit} and ${newer.commit}`;
    const postgres = { url: await freshDatabase(server), authority: server.authority };
    try {
      return [
        `${pair}, ${await play(await openVersions(rounds, postgres), serveBeside, older, newer)}`,
        `${pair}, ${await play(await openVersions(rounds), takeOver, older, newer)}`,
      ];
    } catch (fault) {
      throw new Error(`${pair}: ${String(fault).replace(/\s+/g, " ")}`, { cause: fault });
    }
  };
  const lines: string[] = [];
  try {
    for (const { name, before, after } of pairs) {
      const older = await firstThatStarts(before);
      const newer = after && (await firstThatStarts(after));
      try {
        // What two versions of the past do together cannot be mended any more: it is told, and fails nothing.
        const told = ({ message }: Error): readonly string[] => [message];
        if (newer) lines.push(...(await meet(name, older, newer).catch(told)));
        lines.push(...(await meet(name, older, THIS)));
      } finally {
        older.remove();
        newer?.remove();
      }
    }
    return lines;
  } catch (fault) {
    throw new Error([...lines, fault].join("\n"), { cause: fault });
  } finally {
    await server.stop();
  }
}

/** For each migration the commits before it, the last one first, and those from it on. */
function changes(): readonly { name: string; before: readonly string[]; after?: readonly string[] }[] {
  if (BEFORE !== undefined) return [{ name: "MANDATE_TRIAL_BEFORE", before: [BEFORE] }];
  const names = readdirSync(join(ROOT, MIGRATIONS)).filter((name) => name > FIRST);
  return names.toSorted().map((file) => {
    const added = git("log", "-1", "--format=%H", "--diff-filter=A", "--", join(MIGRATIONS, file));
    const list = (...which: string[]): readonly string[] => git("rev-list", ...which).split("\n");
    return {
      name: file.replace(".sql", ""),
      before: list(`${added}^`),
      after: list("--reverse", "--ancestry-path", `${added}^..HEAD`),
    };
  });
}

/** A commit in the middle of a change may not start, and is no version. A copy runs with the packages of this version. */
async function firstThatStarts(commits: readonly string[]): Promise<Revision> {
  let last: unknown;
  for (const commit of commits.slice(0, TRIES_MAX)) {
    const revision = checkOut(commit);
    try {
      const versions = await openVersions(0);
      await versions.start(revision, "one").finally(versions.close);
      return revision;
    } catch (fault) {
      last = fault;
      revision.remove();
    }
  }
  throw new Error(`none of ${TRIES_MAX} commits from ${commits[0]} on starts: ${last}`);
}

async function play(versions: Versions, run: Run, older: Version, newer: Version): Promise<string> {
  try {
    await run(versions, older, newer);
    return versions.conclude();
  } finally {
    await versions.close();
  }
}

const nothing = async (): Promise<void> => undefined;

type Run = (versions: Versions, older: Version, newer: Version) => Promise<void>;

const serveBeside: Run = async ({ start, beside, check }, older, newer) => {
  const old = await start(older, "before");
  // The start of the newer version migrates, while the older one is asked.
  const current = await beside([old], () => start(newer, "after"));
  await beside([old, current], nothing);
  await check(current);
  await beside([current], () => old.stop());
  const returned = await beside([current], () => start(older, "before"));
  await beside([current, returned], nothing);
  await beside([returned], () => current.stop());
  await check(returned);
  await returned.stop();
  const last = await start(THIS, "after");
  await check(last);
  await last.stop();
};

const takeOver: Run = async ({ start, beside, check }, older, newer) => {
  for (const version of [older, newer, older, THIS]) {
    const server = await start(version, "only");
    await check(server);
    await beside([server], nothing);
    await server.stop();
  }
};
