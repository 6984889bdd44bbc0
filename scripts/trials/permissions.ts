/** What pages show and clicks record, for many random requests: a new seed each time, which the result names. */
import { randomInt } from "node:crypto";
import { comparePermissions } from "../../test/support/permissions.ts";

export async function runPermissions(rounds: number): Promise<readonly string[]> {
  const seed = randomInt(2 ** 32);
  const before = process.cpuUsage();
  const seen = comparePermissions(rounds, seed);
  const { user, system } = process.cpuUsage(before);
  const kinds = Object.entries(seen).map(([kind, count]) => `${kind} ${count}`);
  return [
    `seed ${seed}: shown, ticked, recorded and given are equal (${kinds.join(", ")}); ${((user + system) / 1e6).toFixed(1)} s of CPU time`,
  ];
}
