/** What could be reached under many random configurations, against brute force: a new seed each time, which the result names. */
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prng } from "../../test/support/prng.ts";
import { playAll } from "../../test/support/reach-play.ts";
import { compareReach, randomPolicies } from "../../test/support/reach-worlds.ts";
import { makeWorld } from "../../test/support/world.ts";

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

const SECRET = "the-secret-of-all-clients-12345678";

/** What is reached under random policies, played against a running server. */
export async function playReach(rounds: number): Promise<readonly string[]> {
  const seed = randomInt(2 ** 31);
  const folder = mkdtempSync(join(tmpdir(), "mandate reach "));
  let [grants, requests] = [0, 0];
  try {
    for (let index = 0; index < rounds; index++) {
      const rules = randomPolicies(prng(seed + index), join(folder, "config.json"));
      const clients = { report: { method: "client_secret_basic", secrets: [SECRET] } };
      const drafts = ["spiffe-client-auth-02", "identity-chaining-17", "identity-assertion-authz-grant-04"];
      const all = { ...rules, clients, drafts: drafts.map((name) => `draft-ietf-oauth-${name}`) };
      const idp = { grants: {} };
      const world = await makeWorld(all, { idp }).catch((fault) => {
        // What was left out may leave a rule that can never match.
        if (/can never|names no/.test(String(fault))) return undefined;
        throw fault;
      });
      try {
        const played = world === undefined ? { grants: 0, requests: 0 } : await playAll(world, SECRET);
        grants += played.grants;
        requests += played.requests;
      } catch (fault) {
        throw new Error(`seed ${seed + index}: ${fault}`, { cause: fault });
      } finally {
        await world?.stop();
      }
    }
    return [`seed ${seed}: ${grants} grants in ${requests} requests succeed`];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
