/**
 * Jobs on three instances and at a partner, in the production profile: what is issued after the stop of one by every way
 * that gives tokens, what becomes of the others, whether the closure report is what the trial itself has listed, how
 * bounds count in races, and what a job costs.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Call } from "../bench/client.ts";
import { race, raceKilled } from "./jobs/bounds.ts";
import { cost } from "./jobs/cost.ts";
import { type Given, giveAll, type Way } from "./jobs/people.ts";
import { differenceOf, readReport } from "./jobs/report.ts";
import { AGENTS, BRIEF, ENDS, openJobSite, PARTNER, type Site } from "./jobs/site.ts";
import {
  activeOf,
  givenBy,
  makeJob,
  makeWork,
  openLines,
  type Sent,
  sendAll,
  type Taken,
  type Work,
} from "./jobs/work.ts";

/** Fewer for a short run. */
const JOBS = Number(process.env.MANDATE_TRIAL_JOBS ?? 100);
const TOKENS = Number(process.env.MANDATE_TRIAL_TOKENS ?? 100);
/** Those whose jobs are stopped too, and one whose jobs are not. */
const USERS = 16;
const LINES = 6;
/** Of the stopped job, that are redeemed after the stop. */
const GRANTS = 20;
/** Grants live for five minutes, and a try of one that has expired would tell nothing. */
const TRIES_MS = 200_000;
/** One request of another job beside so many tries. */
const BESIDE = 10;
const IN_FLIGHT = 200;
const SETTLED_MS = 6_000;
const LIVE_SECONDS = 30;
const TOLD_MS = 2_000;

/** Every step is taken, also after one whose bound is not met; `rounds` are the tries after the stop. */
export async function* runJobs(rounds: number): AsyncGenerator<string, void> {
  const faults: unknown[] = [];
  const site = await openJobSite();
  try {
    const works: Work[] = [];
    const steps: (() => Promise<string>)[] = [
      () => build(site, works),
      () => stopOne(site, works, rounds),
      () => stopInFlight(site, works[1] ?? assert.fail()),
      () => race(site, "one", 1, 1_000),
      () => race(site, "fifty", 50, 500),
      () => raceKilled(site, 50, 500),
      () => close(site),
      () => cost(site, site.instances[0] ?? assert.fail(), "PostgreSQL"),
      () => cost(site, site.alone, "SQLite"),
    ];
    for (const step of steps) {
      yield await step().catch((fault) => {
        faults.push(fault);
        return `WRONG: ${String(fault instanceof Error ? fault.message : fault).replace(/\s+/g, " ")}`;
      });
      site.closeLines();
    }
  } finally {
    await site.close();
  }
  if (faults.length > 0) throw new Error(`${faults.length} steps failed`, { cause: faults[0] });
}

async function build(site: Site, works: Work[]): Promise<string> {
  const lines = openLines(site, site.instances, LINES);
  const there = site.line(site.partner);
  const startMs = performance.now();
  for (let one = 0; one < JOBS; one++) {
    const grants = one === 0 ? GRANTS + 1 : 2;
    works.push(await makeWork(site, lines, there, { sub: `user-${one}`, tokens: TOKENS, grants }));
  }
  const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
  return `${JOBS} jobs with ${works.flatMap(({ given }) => given).length} tokens here and ${JOBS} there, in ${seconds} s`;
}

// --- one is stopped ---------------------------------------------------------------------------------------------

/** What each way answers once the job has ended; where the job is only named by its id, no more is told of it. */
const REFUSALS: Readonly<Record<Way["way"] | "redemption", string>> = {
  exchange: "ended",
  chosen: "invalid_request",
  grant: "invalid_request",
  refresh: "ended",
  code: "ended",
  deferred: "access_denied",
  redemption: "invalid_grant",
};

async function stopOne(site: Site, works: readonly Work[], tries: number): Promise<string> {
  const [at = assert.fail()] = site.instances;
  const [stopped = assert.fail(), ...others] = works;
  const lines = openLines(site, site.instances, LINES);
  const there = openLines(site, [site.partner], 2);
  const [line = assert.fail()] = lines;
  const givers: Given[] = [];
  for (let one = 0; one < USERS; one++) givers.push(await giveAll(site, line, `giver-${one}`));
  // The jobs of one of them go on, so that what the same calls give without a stop is seen.
  const [spared = assert.fail(), ...ended] = givers;
  const again: readonly (readonly Way[])[] = [
    [
      ...stopped.roots.map((root, depth) => exchangeAt(site, stopped, root, depth)),
      { way: "grant", call: site.exchange("planner", stopped.user, PARTNER, { mandate_job: stopped.job }) },
    ],
    ended.map((giver) => giver.again),
  ];
  const jobs = [stopped.job, ...ended.flatMap((giver) => giver.jobs)];
  const before = await recordedOf(site, jobs);
  await site.manage(at, "/revocations", { job: stopped.job });
  const stopMs = performance.now();
  for (const job of jobs.slice(1)) await site.manage(at, "/revocations", { job });

  const toldMs = untilTold(site, stopped, there[0] ?? assert.fail(), stopMs);
  const counts = { tries: 0, given: 0, beside: 0, hurt: 0 };
  const answers = new Map<string, number>();
  const endMs = stopMs + TRIES_MS;
  type Next = { call: Call } & (Way | { other: Work | undefined });
  function* next(): Generator<Next> {
    for (const { call } of [...spared.once, spared.again]) yield { call, other: undefined };
    // Each of these is tried once and in time: what has been refused is used up, and a poll too soon tells nothing.
    yield* ended.flatMap(({ once }) => once);
    for (let one = 0; counts.tries < tries && performance.now() < endMs; one++) {
      const [turn, other] = [Math.floor(one / BESIDE), others[Math.floor(one / BESIDE) % others.length]];
      if (one % BESIDE === 0 && other !== undefined) yield { other, call: againOf(site, other, turn) };
      const ways = again[one % again.length] ?? assert.fail();
      yield ways[Math.floor(one / again.length) % ways.length] ?? assert.fail();
    }
  }
  const note = (way: Way["way"] | "redemption", { status, body }: Sent): void => {
    counts.tries++;
    if (status === 200) counts.given++;
    const answer = String(body.mandate_job_error ?? body.error);
    const told = status === 200 ? "TOKEN" : answer === REFUSALS[way] ? answer : `WRONGLY ${answer}`;
    answers.set(`${way} ${told}`, (answers.get(`${way} ${told}`) ?? 0) + 1);
  };
  const beside = ({ status }: Sent): void => {
    counts.beside++;
    if (status !== 200) counts.hurt++;
  };
  await Promise.all([
    sendAll(
      lines,
      next(),
      ({ call }) => call,
      (sent, of) => {
        if ("way" in of) return note(of.way, sent);
        beside(sent);
        if (sent.status === 200) of.other?.given.push(givenBy(sent));
      },
    ),
    // SETs are on their way for a moment; from then on nothing is redeemed.
    toldMs.then(async () => {
      const spare = new Set(others.flatMap(({ grants }) => grants));
      const redemptions = function* (): Generator<string> {
        yield* spare;
        for (let one = 0; counts.tries < tries && performance.now() < endMs; one++)
          yield stopped.grants[one % stopped.grants.length] ?? assert.fail();
      };
      await sendAll(there, redemptions(), site.redeem, (sent, grant) =>
        spare.has(grant) ? beside(sent) : note("redemption", sent),
      );
    }),
  ]);
  const after = await recordedOf(site, jobs);
  const active = await activeOf(
    site,
    lines,
    works.flatMap(({ given }) => given.map(({ token }) => token)),
  );
  const wrong = works.flatMap(({ given }, index) =>
    given.filter(({ token }) => active.has(token) !== index > 0),
  );
  const activeThere = await activeOf(
    site,
    there,
    works.flatMap((work) => work.there),
    "hotel",
  );
  const wrongThere = works.filter(
    (work, index) => work.there.some((token) => activeThere.has(token)) !== index > 0,
  );
  const report = await readReport(site, 0, stopped.job);
  const differs = differenceOf(report, stopped.given);
  const told = await toldMs;
  const figures = `${counts.tries} tries (${[...answers].map(([answer, count]) => `${answer} ${count}`).join(", ")}): ${counts.given} given, ${after - before} recorded; ${counts.hurt} of ${counts.beside} refused beside; wrong by introspection: ${wrong.length} of ${works.flatMap(({ given }) => given).length} here, ${wrongThere.length} of ${works.length} there; report ${differs || "equal"}; partner told after ${Math.round(told)} ms`;
  const good = counts.given + (after - before) + counts.hurt + wrong.length + wrongThere.length === 0;
  assert.ok(
    good && counts.tries >= tries && differs === "" && told < TOLD_MS && !figures.includes("WRONGLY"),
    figures,
  );
  return figures;
}

const recordedOf = async (site: Site, jobs: readonly string[]): Promise<number> =>
  (await Promise.all(jobs.map((id) => site.recorded(id)))).flat().length;

const exchangeAt = (site: Site, work: Work, root: Work["roots"][number], depth: number): Way => ({
  way: depth === 0 ? "chosen" : "exchange",
  call: exchangeOf(site, work, root, depth),
});

const exchangeOf = (site: Site, { job }: Work, root: Work["roots"][number], depth: number): Call =>
  site.exchange(
    AGENTS[depth] ?? "planner",
    root,
    ENDS[depth % ENDS.length] ?? "",
    depth === 0 ? { mandate_job: job } : {},
  );

const againOf = (site: Site, work: Work, one: number): Call => {
  const depth = one % work.roots.length;
  return exchangeOf(site, work, work.roots[depth] ?? work.user, depth);
};

/** Milliseconds from the stop until the partner takes its own token of the job for ended. */
async function untilTold(
  site: Site,
  { there }: Work,
  line: Parameters<typeof activeOf>[1][number],
  sinceMs: number,
) {
  while ((await activeOf(site, [line], there, "hotel")).size > 0) {
    assert.ok(performance.now() - sinceMs < 30_000, "the partner is told of the stop");
    await sleep(20);
  }
  return performance.now() - sinceMs;
}

async function stopInFlight(site: Site, work: Work): Promise<string> {
  const [at = assert.fail(), ...rest] = site.instances;
  const lines = openLines(site, rest, IN_FLIGHT / rest.length);
  await activeOf(
    site,
    lines,
    lines.flatMap(() => work.given.slice(0, 1).map(({ token }) => token)),
  );
  const before = work.given.length;
  let refused = 0;
  const flying = Promise.withResolvers<void>();
  const flight = sendAll(
    lines,
    lines.keys(),
    (one) => againOf(site, work, one),
    (sent) => {
      if (sent.status === 200) work.given.push(givenBy(sent));
      else refused++;
      if (work.given.length + refused === before + IN_FLIGHT / 10) flying.resolve();
    },
  );
  await flying.promise;
  await site.manage(at, "/revocations", { job: work.job });
  await flight;
  const out = work.given.length - before;
  await sleep(SETTLED_MS);
  const recorded = new Set(await site.recorded(work.job));
  const missing = work.given.filter(({ jti }) => !recorded.has(jti)).length;
  const differences: string[] = [];
  for (const index of site.instances.keys()) {
    const report = await readReport(site, index, work.job);
    if (report.settled !== true || report.state === "closed")
      differences.push(`settled ${report.settled}, ${report.state}`);
    differences.push(differenceOf(report, work.given));
  }
  const active = await activeOf(
    site,
    lines,
    work.given.map(({ token }) => token),
  );
  const differs = differences.filter((one) => one !== "").join("; ");
  const figures = `stopped beside ${IN_FLIGHT} issuances: ${out} out, ${refused} refused, ${missing} not on record, ${active.size} active, report ${differs || "equal at each instance"}`;
  assert.ok(missing + active.size === 0 && differs === "" && out + refused === IN_FLIGHT, figures);
  return figures;
}

// --- until it is closed -----------------------------------------------------------------------------------------------

/** Tokens that expire one after the other, and a grant that nothing has redeemed when its job is stopped. */
async function close(site: Site): Promise<string> {
  const sub = "closing";
  const notAfter = Math.floor(Date.now() / 1000) + LIVE_SECONDS;
  const job = await makeJob(site, sub, { notAfter });
  const user = { users: await site.userToken(sub) };
  const [line = assert.fail()] = openLines(site, site.instances, 1);
  const there = site.line(site.partner);
  const given: Taken[] = [];
  const ask = async (target: string): Promise<Taken> => {
    const { status, body } = await line.send(site.exchange("planner", user, target, { mandate_job: job }));
    return givenBy({ status, body: JSON.parse(body) });
  };
  const grant = await ask(PARTNER);
  for (const target of [BRIEF, "vault", BRIEF, "booking", BRIEF]) {
    given.push(await ask(target));
    await sleep(1_500);
  }
  const before = await readReport(site, 0, job);
  assert.equal(before.state, "living");
  await site.manage(site.instances[0] ?? assert.fail(), "/revocations", { job });
  const states: string[] = [];
  let [readings, redeemed] = [0, 0];
  for (let last = ""; last !== "closed"; readings++) {
    const report = await readReport(site, readings, job);
    const differs = differenceOf(report, given);
    assert.equal(differs, "", `reading ${readings} ${differs}`);
    const offline = given.filter(
      ({ target, expiresAtSeconds }) => target !== "vault" && expiresAtSeconds > report.as_of,
    );
    const isTold = report.partners.every(({ told }) => told === "acknowledged");
    if (report.state === "closed") assert.ok(report.settled === true && offline.length === 0 && isTold);
    if (isTold && report.settled && redeemed === 0) {
      redeemed++;
      const { body } = await there.send(site.redeem(grant.token));
      assert.equal(JSON.parse(body).error, "invalid_grant", "a grant is not redeemed after the signal");
    }
    if (report.state !== last) states.push(report.state);
    last = report.state;
    assert.ok(report.as_of <= notAfter + 2, `${report.state} after its last expiry`);
    await sleep(200);
  }
  assert.equal(redeemed, 1);
  return `report: ${readings} readings equal to the list, ${states.join(", then ")} at the last expiry; the grant was refused after the signal`;
}
