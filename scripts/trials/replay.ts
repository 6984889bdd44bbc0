/**
 * A seeded mixed load through a service, all of which `mandate policy replay` must decide again as it was recorded; fifty
 * planted changes of the policy, of which exactly the events that they flip must be listed; and the cost for a million.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { prng } from "../../test/support/prng.ts";
import { makeService } from "../../test/support/service.ts";
import { ACCESS_TOKEN, EXCHANGE, ISSUER, JWT, workload } from "../../test/support/world.ts";
import { runCommandLine } from "../command-line.ts";
import { basic } from "../http-client.ts";

const AGENTS = 50;
const MANY = 1_000_000;
const AT_ONCE = 32;
const SECRET = "the-secret-of-all-clients-12345678";
const IDP = "https://idp.example";
const SCOPES = ["a", "b", "c"];
const agents = Array.from({ length: AGENTS }, (_, index) => index);
const apiOf = (index: number): string => `https://api-${index}.example`;

/** Each agent has a rule of its own for its own API, which no other agent may reach. */
const CONFIGURATION = {
  clients: Object.fromEntries(
    agents.map((index) => [`app-${index}`, { method: "client_secret_basic", secrets: [SECRET] }]),
  ),
  targets: agents.map((index) => ({
    names: [apiOf(index)],
    scopes: SCOPES,
    owners: [workload(`agent-${index}`)],
  })),
  policies: agents.flatMap((index) => [
    {
      ...{ id: `own-${index}`, allow: "client_credentials", clients: [`app-${index}`] },
      ...{ targets: [apiOf(index)], scopes: SCOPES },
    },
    {
      ...{
        id: `rule-${index}`,
        allow: index % 2 === 0 ? "delegation" : "impersonation",
        actors: [workload(`agent-${index}`)],
      },
      ...{
        subjects: { issuers: [IDP] },
        subjectToken: { audiences: [ISSUER, "self"] },
        issues: "access_token",
      },
      ...{ targets: [apiOf(index)], scopes: ["a", "b"] },
      ...(index % 3 === 0
        ? { consent: "record" }
        : { consent: "implied", acknowledge: "subjects-not-asked" }),
    },
  ]),
};
type Rule = (typeof CONFIGURATION.policies)[number] & Record<string, unknown>;

/** What the change makes of an allowed request with this scope: refused, something else, or nothing. */
type Planted = {
  change: (rule: Rule) => Rule | undefined;
  flips: (scope: string, seconds: number) => "refused" | "changed" | undefined;
};
const PLANTED: readonly Planted[] = [
  { change: () => undefined, flips: () => "refused" },
  {
    change: (rule) => ({ ...rule, scopes: ["a"] }),
    flips: (scope) => (scope === "b" ? "refused" : scope === "a" ? undefined : "changed"),
  },
  {
    change: (rule) => ({ ...rule, lifetimeSeconds: 60 }),
    flips: (_, seconds) => (seconds > 60 ? "changed" : undefined),
  },
  { change: (rule) => ({ ...rule, actors: [workload("elsewhere")] }), flips: () => "refused" },
  {
    change: (rule) => ({ ...rule, subjects: { issuers: [IDP], subs: ["another"] } }),
    flips: () => "refused",
  },
];

export async function* runReplay(rounds: number): AsyncIterable<string> {
  const seed = randomInt(2 ** 32);
  const random = prng(seed);
  const folder = mkdtempSync(join(tmpdir(), "mandate replay trial "));
  const service = await makeService(CONFIGURATION, { inFile: true });
  try {
    const names = Array.from({ length: 20 }, (_, index) => `u-${index}`);
    for (const [index, name] of names.entries()) {
      for (const agent of agents.filter((one) => one % 3 === 0 && (one + index) % 2 === 0))
        await service.consent(name, `agent-${agent}`, apiOf(agent), ["a", "b"]);
    }
    let users: readonly string[] = [];
    let svids: readonly string[] = [];
    const mint = async (): Promise<void> => {
      const token = { aud: ISSUER, scope: "a b c" };
      users = await Promise.all(names.map((sub) => service.idp.mintUserToken({ ...token, sub })));
      svids = await Promise.all(agents.map((index) => service.svid(`agent-${index}`)));
    };
    const ask = async (): Promise<unknown> => {
      const agent = random.below(AGENTS);
      const scope = random.pick([undefined, "a", "b", "a b", "c", "unknown"]);
      const audience =
        random.below(10) === 0 ? random.pick([apiOf(random.below(AGENTS)), "unknown"]) : apiOf(agent);
      const more = { audience, ...(scope === undefined ? {} : { scope }) };
      if (random.below(4) === 0)
        return service.token(
          { grant_type: "client_credentials", ...more },
          { authorization: basic(`app-${agent}`, SECRET) },
        );
      const svid = svids[agent] ?? "";
      const shown =
        agent % 2 === 0 || random.below(8) === 0 ? { actor_token: svid, actor_token_type: JWT } : {};
      const form = { grant_type: EXCHANGE, ...service.as(svid), ...shown, ...more };
      const answer = await service.token({
        ...form,
        subject_token: random.pick(users),
        subject_token_type: JWT,
      });
      const { access_token: token } = answer.body;
      if (token === undefined || random.below(4) > 0) return answer;
      return service.token({ ...form, subject_token: String(token), subject_token_type: ACCESS_TOKEN });
    };
    for (let done = 0; done < rounds; done += AT_ONCE) {
      // What is minted expires in the course of a long run.
      if (done % (64 * AT_ONCE) === 0) await mint();
      await Promise.all(Array.from({ length: AT_ONCE }, ask));
    }
    const events = await service.events();
    const decided = events.filter(({ facts }) => facts !== undefined);
    const { configFile } = service;
    const exported = join(folder, "export");
    const made = await runCommandLine(["audit", "export", exported, "--config", configFile]);
    assert.equal(made.code, 0, made.err);
    const [told, code] = await replayed("--export", exported);
    assert.deepEqual(
      [code, told.same, told.different],
      [0, decided.length, 0],
      JSON.stringify(told).slice(0, 2000),
    );
    const sizes = decided.map(
      (one) => [JSON.stringify(one).length, JSON.stringify(one.facts).length + 9] as const,
    );
    const [all, facts] = sizes.reduce(([a, b], [c, d]) => [a + c, b + d], [0, 0]);
    yield `seed ${seed}: ${decided.length} of ${decided.length} decisions come out the same; facts ${Math.round(facts / decided.length)} of ${Math.round(all / decided.length)} bytes`;

    const config = JSON.parse(readFileSync(configFile, "utf8"));
    const plantedFor = (id: string): Planted | undefined => {
      const index = /^rule-(\d+)$/.exec(id)?.[1];
      return index === undefined ? undefined : PLANTED[Number(index) % PLANTED.length];
    };
    config.policies = config.policies.flatMap((rule: Rule) => {
      const planted = plantedFor(rule.id);
      return planted === undefined ? [rule] : (planted.change(rule) ?? []);
    });
    const next = join(service.folder, "next.json");
    writeFileSync(next, JSON.stringify(config));
    const expected: Record<string, number> = {};
    for (const { policy, granted, facts } of decided) {
      const rule = String((policy as { rule_id?: string }).rule_id);
      const { scope, exp } = (granted ?? {}) as unknown as { scope: string; exp: number };
      const seconds = exp - (facts as unknown as { now: number }).now;
      const flip = granted && plantedFor(rule)?.flips(scope, seconds);
      if (flip !== undefined) expected[`${flip} ${rule}`] = (expected[`${flip} ${rule}`] ?? 0) + 1;
    }
    const [tried] = await replayed("--export", exported, "--with", next);
    const listed = tried.with.groups.map((one: Record<string, unknown>) => [
      `${one.change} ${one.rule}`,
      one.count,
    ]);
    assert.deepEqual(Object.fromEntries(listed), expected);
    const flips = Object.values(expected).reduce((sum, one) => sum + one, 0);
    yield `${AGENTS} planted changes flip ${flips} requests, exactly those that are listed`;

    yield await costOfMany(exported);
  } finally {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function replayed(...words: string[]) {
  const { code, out, err } = await runCommandLine(["policy", "replay", ...words, "--format", "json"]);
  assert.notEqual(code, 2, err);
  return [JSON.parse(out), code] as const;
}

/** The same events again and again, under further numbers, in a process of its own. */
async function costOfMany(exported: string): Promise<string> {
  const file = join(exported, "events.ndjson");
  const lines = readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .filter((line) => line.includes('"log":"test"'));
  const told = readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .filter((line) => line.includes('"log":"admin"'));
  await pipeline(function* () {
    for (const line of told) yield `${line}\n`;
    for (let seq = 0; seq < MANY; seq++)
      yield `${lines[seq % lines.length]?.replace(/"seq":\d+/, `"seq":${seq}`).replace(/"time":"[^"]+"/, '"time":"2030-01-01T00:00:00.000Z"')}\n`;
  }, createWriteStream(file));
  const words = ["src/main.ts", "policy", "replay", "--export", exported, "--unverified", "--format", "json"];
  const child = spawn(process.execPath, ["--import", USAGE, ...words]);
  const [out, said] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [, seconds, megabytes] = /usage (\S+) (\S+)/.exec(said) ?? [];
  return `${MANY} events: ${JSON.parse(out).same} decided again, ${seconds} s of CPU time, ${megabytes} MB at most`;
}

const USAGE = `data:text/javascript,process.on("exit",()=>{const u=process.resourceUsage();console.error("usage",((u.userCPUTime+u.systemCPUTime)/1e6).toFixed(1),(u.maxRSS/1024).toFixed(0))})`;
