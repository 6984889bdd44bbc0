/** What could be reached under many random configurations, against brute force: a new seed each time, which the result names. */
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compareReach } from "../../test/support/reach-worlds.ts";

export async function runReach(rounds: number): Promise<readonly string[]> {
  const seed = randomInt(2 ** 31);
  const folder = mkdtempSync(join(tmpdir(), "mandate reach "));
  try {
    const { facts, chained, noes, mutants } = await compareReach(rounds, seed, join(folder, "config.json"));
    return [
      `seed ${seed}: search and brute force are equal (facts ${facts}, grants after other requests ${chained})`,
      `certificates taken ${noes}, changed ones refused ${mutants}`,
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
