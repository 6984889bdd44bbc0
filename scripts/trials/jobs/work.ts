/** Jobs with trees of living tokens, of which the trial keeps a list of its own, and how many calls are sent at once. */
import assert from "node:assert/strict";
import { workload } from "../../../test/support/world.ts";
import type { Call, Line } from "../../bench/client.ts";
import { claimsOf } from "../../http-client.ts";
import type { ServerProcess } from "../../server-process.ts";
import { AGENTS, ENDS, PARTNER, type Parts, type Site } from "./site.ts";

/** What was given, as the list of the trial has it. */
export type Taken = { jti: string; token: string; target: string; expiresAtSeconds: number };

export type Work = {
  job: string;
  user: { users: string };
  /** By how many agents it was passed on: what each of them exchanges. */
  roots: readonly ({ users: string } | { own: string })[];
  given: Taken[];
  /** Grants for the partner. */
  grants: string[];
  /** What the partner gave for a grant. */
  there: string[];
};

export type Sent = { status: number; body: Record<string, unknown> };

export const givenBy = ({ status, body }: Sent): Taken => {
  assert.equal(status, 200, JSON.stringify(body));
  const token = String(body.access_token);
  const { jti, aud, exp } = claimsOf(token);
  return { jti: String(jti), token, target: String(aud), expiresAtSeconds: Number(exp) };
};

/** Sends all calls, over these lines at once, in order on each; without `onLost`, a lost answer is a fault. */
export async function sendAll<T>(
  lines: readonly Line[],
  calls: Iterable<T>,
  callOf: (one: T) => Call,
  onAnswer: (sent: Sent, one: T) => void,
  onLost?: () => void,
): Promise<void> {
  const left = calls[Symbol.iterator]();
  const run = async (line: Line): Promise<void> => {
    for (let next = left.next(); !next.done; next = left.next()) {
      const answer = await line.send(callOf(next.value)).catch((fault: unknown) => {
        if (onLost === undefined) throw fault;
        onLost();
      });
      if (!answer) continue;
      const { status, body } = answer;
      onAnswer({ status, body: body.startsWith("{") ? JSON.parse(body) : {} }, next.value);
    }
  };
  await Promise.all(lines.map(run));
}

/** So many lines to each of these servers. */
export const openLines = (site: Site, servers: readonly ServerProcess[], each: number): Line[] =>
  servers.flatMap((server) => Array.from({ length: each }, () => site.line(server)));

export async function makeJob(
  site: Site,
  sub: string,
  bounds: object = {},
  [at = assert.fail()] = site.instances,
): Promise<string> {
  const subject = { iss: site.provider.issuer, sub };
  const order = { client: workload("planner"), subject, title: `Work for ${sub}`, ...bounds };
  return String((await site.manage(at, "/jobs", order)).id);
}

/**
 * A job with so many living tokens: one for each agent that goes on, and all others spread over chains of one to four
 * agents and over the targets; and grants, of which the partner has redeemed the first.
 */
export async function makeWork(
  site: Site,
  lines: readonly Line[],
  there: Line,
  { sub, tokens, grants }: { sub: string; tokens: number; grants: number },
): Promise<Work> {
  const [line = assert.fail()] = lines;
  const job = await makeJob(site, sub);
  const user = { users: await site.userToken(sub) };
  const roots: Work["roots"][number][] = [user];
  const work: Work = { job, user, roots, given: [], grants: [], there: [] };
  const partsOf = (depth: number): Parts => (depth === 0 ? { mandate_job: job } : {});
  const take = (sent: Sent): Taken => {
    const given = givenBy(sent);
    work.given.push(given);
    return given;
  };
  for (const [depth, next] of AGENTS.slice(1).entries()) {
    const call = site.exchange(AGENTS[depth] ?? "planner", roots[depth] ?? user, next, partsOf(depth));
    const { status, body } = await line.send(call);
    roots.push({ own: take({ status, body: JSON.parse(body) }).token });
  }
  const callOf = (index: number): Call => {
    const depth = index % AGENTS.length;
    const target = ENDS[Math.floor(index / AGENTS.length) % ENDS.length] ?? "";
    return site.exchange(AGENTS[depth] ?? "planner", roots[depth] ?? user, target, partsOf(depth));
  };
  await sendAll(lines, Array(tokens - work.given.length).keys(), callOf, take);
  const grant = site.exchange("planner", user, PARTNER, { mandate_job: job });
  await sendAll(
    lines,
    Array(grants).keys(),
    () => grant,
    (sent) => void work.grants.push(givenBy(sent).token),
  );
  const recorded = new Set(await site.recorded(job));
  assert.ok(
    work.given.every(({ jti }) => recorded.has(jti)),
    "each token is on record as one of the job",
  );
  const first = work.grants.shift();
  if (first !== undefined) {
    const { status, body } = await there.send(site.redeem(first));
    work.there.push(givenBy({ status, body: JSON.parse(body) }).token);
  }
  return work;
}

/** Those of these tokens that are active, as their introspection says. */
export async function activeOf(
  site: Site,
  lines: readonly Line[],
  tokens: Iterable<string>,
  by: "gate" | "hotel" = "gate",
): Promise<ReadonlySet<string>> {
  const active = new Set<string>();
  await sendAll(
    lines,
    tokens,
    (token) => site.as(by, "/introspect", { token }),
    ({ status, body }, token) => {
      assert.equal(status, 200);
      if (body.active === true) active.add(token);
    },
  );
  return active;
}
