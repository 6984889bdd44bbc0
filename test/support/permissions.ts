/**
 * What is shown, ticked, recorded and then given, for random policies, requests and forms: equal in both directions. What
 * is given is what the decision of an exchange says under the recorded consents, in the recorded job. The suite compares
 * some hundred requests, `npm run trials -- permissions` many thousand.
 */
import assert from "node:assert/strict";
import * as v from "valibot";
import {
  type Choice,
  choiceOf,
  endOfGiven,
  type Given,
  givenOf,
  type PermissionsAt,
  permissionsBy,
  recordOf,
  replacedBy,
  sentenceOf,
} from "../../src/people/policy/permissions.ts";
import type { AccessRequest, Consent, JobBounds, MissingConsent } from "../../src/policy/access.ts";
import { unaskedRules } from "../../src/policy/closure.ts";
import { decide } from "../../src/policy/decide.ts";
import { namedAgent, parseProposal, proposedBounds, proposedJob } from "../../src/policy/jobs.ts";
import { compilePolicy, type PolicySet, Rule, Target } from "../../src/policy/rules.ts";
import type { Detail } from "../../src/spec/rfc9396.ts";
import { type Prng, prng } from "./prng.ts";
import { ISSUER, workload } from "./world.ts";

const IDP = "https://idp.example";
const ALICE = { iss: IDP, sub: "alice" };
const NOW = 1_790_000_000;
const SCOPES = ["pay", "read", "write"];
const TARGETS = ["https://ledger.example", "https://bank.example", "https://api.example"];
const AGENTS = ["agents/planner", "agents/booking", "crew/kim", "crew/lou"].map((path) => workload(path));
const PATTERNS = [...AGENTS, workload("crew/*"), workload("agents/*")];
const INVOICE = "invoice";
const NOTE = "note";
/** One type governs `pay` and another `read` and `write`; each target declares some of them. */
const TYPES = {
  [INVOICE]: { governs: ["pay"], fields: { most: { is: "integer", narrows: "max" } } },
  [NOTE]: { governs: ["read", "write"], fields: { name: { is: "string", narrows: "equal" } } },
};

const some = <T>(random: Prng, all: readonly T[], least = 0): T[] => {
  const found = all.filter(() => random.below(2) === 0);
  return found.length >= least ? found : [random.pick(all)];
};

function randomPolicy(random: Prng): PolicySet {
  const targets = TARGETS.map((name) => {
    const scopes = some(random, SCOPES, 1);
    const details = Object.entries(TYPES).filter(
      ([, { governs }]) => random.below(2) === 0 && governs.some((one) => scopes.includes(one)),
    );
    const sentences = Object.fromEntries(scopes.map((scope) => [scope, `${scope} at ${name}`]));
    return v.parse(Target, {
      names: [name, `${name}/alias`],
      ...{ scopes, sentences },
      ...(details.length > 0 && { details: Object.fromEntries(details) }),
    });
  });
  const consents = [
    { consent: "record", askUser: true },
    { consent: "record", askUser: true },
    { consent: "record" },
    { consent: "implied", acknowledge: "subjects-not-asked" },
    { consent: "may_act" },
  ];
  const rules = Array.from({ length: 2 + random.below(5) }, (_, index) =>
    v.parse(Rule, {
      id: `rule-${index}`,
      allow: "delegation",
      actors: some(random, PATTERNS, 1),
      subjects: { issuers: [IDP], ...(random.below(4) === 0 && { subs: [random.pick(["alice", "bob"])] }) },
      subjectToken: { audiences: [ISSUER] },
      targets: some(random, TARGETS, 1),
      scopes: some(random, SCOPES, 1),
      jobs: random.pick(["optional", "optional", "required", "never"]),
      ...random.pick(consents),
    }),
  );
  const compiled = compilePolicy(rules, targets, ISSUER, "digest");
  assert.ok(compiled.ok, JSON.stringify(compiled));
  return compiled.value;
}

/** The access request of an agent, for which nothing is missing but rule and consent. */
const accessOf = (agent: string, more: Partial<AccessRequest> = {}): AccessRequest => ({
  mode: "delegation",
  clientId: agent,
  workload: agent,
  subject: {
    tokenType: "jwt",
    origin: ALICE,
    audiences: [ISSUER],
    scopes: SCOPES,
    expiresAtSeconds: NOW + 3600,
    chain: [],
    // Whoever acts is the one that the token names, so that rules with `may_act` give what they can.
    mayAct: { sub: agent, iss: ISSUER },
    issuer: IDP,
  },
  consents: [],
  nowSeconds: NOW,
  ...more,
});

function randomDetails(random: Prng, policy: PolicySet, target: string): readonly Detail[] | undefined {
  const types = [...(policy.targets.get(target)?.details.keys() ?? [])];
  if (types.length === 0 || random.below(2) === 0) return undefined;
  const one = (type: string): Detail =>
    type === INVOICE ? { type, most: 1 + random.below(3) } : { type, name: random.pick(["a", "b"]) };
  return Array.from({ length: 1 + random.below(3) }, () => one(random.pick(types)));
}

type Asked = { agent: string; bounds?: JobBounds; missing: MissingConsent; choice: Choice };

/** A request that lacks the consent of its user, with what the user is shown; undefined where none is asked. */
function randomRequest(random: Prng, policy: PolicySet): Asked | undefined {
  const agent = random.pick(AGENTS);
  const target = random.pick(TARGETS);
  const details = randomDetails(random, policy, target);
  const scope = random.below(2) === 0 ? some(random, SCOPES, 1) : undefined;
  const access = accessOf(agent, {
    target,
    ...(scope && { scope }),
    ...(details && { details }),
  });
  let bounds: JobBounds | undefined;
  if (random.below(3) > 0) {
    const others = some(random, TARGETS).filter((one) => one !== target);
    const written = {
      title: "work",
      ...(random.below(4) > 0 && {
        targets: [target, ...others.map((one) => (random.below(4) === 0 ? `${one}/alias` : one))],
      }),
      ...(random.below(2) === 0 && { scopes: some(random, SCOPES, 1) }),
      ...(random.below(2) === 0 && { agents: some(random, AGENTS, 1) }),
    };
    const proposal = parseProposal(JSON.stringify(written), NOW);
    assert.ok(proposal.ok, JSON.stringify(written));
    bounds = proposedBounds(proposal.value, access, NOW);
  }
  const decided = decide(policy, { ...access, ...(bounds && { job: proposedJob(bounds) }) });
  if (decided.ok || decided.error.missing === undefined) return undefined;
  const { missing } = decided.error;
  const asking = { ...missing, name: missing.target.names[0] ?? "", bounds };
  const choice = choiceOf(policy, asking, { clientId: agent, workload: agent }, ALICE);
  return { agent, missing, choice, ...(bounds && { bounds }) };
}

export type Ticks = Parameters<typeof givenOf>[1];

function randomTicks(random: Prng, { at, agents }: Choice): Ticks {
  const boxes = at.flatMap(({ permissions }) => permissions.map(({ box }) => box));
  const limits = at.flatMap((one) => one.limits.map(({ box }) => box));
  return {
    all: random.below(4) === 0,
    scopes: [...some(random, boxes), ...some(random, ["admin", "pay https://elsewhere.example"])],
    details: random.below(2) === 0 ? limits : some(random, limits),
    agents: [
      ...some(
        random,
        agents.map(({ id }) => id),
      ),
      ...some(random, AGENTS),
    ],
  };
}

/** The consents and the job as they are recorded; the details of a consent are written and read as JSON. */
const recorded = ({ consents }: Given, jobId: string | undefined): readonly Consent[] =>
  consents.map((one, index) => ({
    ...one,
    id: `page-${index}`,
    version: 1,
    origin: ALICE,
    ...(jobId !== undefined && { jobId }),
  }));

const pairsOf = (at: readonly PermissionsAt[]): string[] =>
  at.flatMap(({ target, permissions }) => permissions.map(({ scope }) => `${scope} ${target.names[0]}`));

const sorted = (all: Iterable<string>): string[] => [...new Set(all)].sort();

/** What exchanges give each agent, pair by pair, and under which details. */
function givenBy(
  policy: PolicySet,
  consents: readonly Consent[],
  bounds: JobBounds | undefined,
  named: "named" | "unnamed" = "named",
) {
  const job = bounds && { id: "job_1", bounds };
  const pairs = new Map<string, string>();
  for (const agent of AGENTS) {
    for (const target of TARGETS) {
      for (const scope of SCOPES) {
        const mine = consents.filter(({ actor }) => actor === agent);
        const whole = accessOf(agent, { target, scope: [scope], consents: mine, ...(job && { job }) });
        const { mayAct: _, ...plain } = whole.subject ?? assert.fail();
        const access = named === "named" ? whole : { ...whole, subject: plain };
        const decided = decide(policy, access);
        if (!decided.ok) continue;
        pairs.set(
          `${agent} ${scope} ${target}`,
          JSON.stringify(sorted((decided.value.details ?? []).map((one) => JSON.stringify(one)))),
        );
      }
    }
  }
  return pairs;
}

/** What the page shows and the form ticks, as the same texts. */
function tickedBy({ at, agents }: Choice, ticks: Ticks) {
  const pairs = new Map<string, string>();
  const [first] = agents;
  for (const { id, may } of agents) {
    if (id !== first?.id && !ticks.all && !ticks.agents.includes(id)) continue;
    for (const { target, permissions, limits } of at) {
      const within = limits
        .filter(({ box }) => ticks.all || ticks.details.includes(box))
        .map(({ detail }) => JSON.stringify(detail));
      for (const { box, scope } of permissions) {
        if (!may.has(box) || !(ticks.all || ticks.scopes.includes(box))) continue;
        pairs.set(`${id} ${scope} ${target.names[0]}`, JSON.stringify(sorted(within)));
      }
    }
  }
  return pairs;
}

/** Whether an agent is ticked that gets nothing by the other ticks, and nothing without one. */
const getsNothing = (
  { agents, unasked }: Choice,
  ticks: Ticks,
  ticked: ReadonlyMap<string, string>,
): boolean =>
  agents
    .slice(1)
    .filter(({ id }) => ticks.all || ticks.agents.includes(id))
    .filter(({ id }) => !unasked.some(({ agent }) => agent === id))
    .some(({ id }) => ![...ticked.keys()].some((pair) => pair.startsWith(`${id} `)));

/** What stood before at the same target lasts as long as it did, or as the page says; what is ticked, as the page says. */
function compareEnds(random: Prng, policy: PolicySet, request: Asked, given: Given, about: string): void {
  const { agent, missing, choice } = request;
  const { target, scope } = missing;
  const [own] = choice.at;
  const all =
    own === undefined || own.limits.length === 0 ? undefined : own.limits.map(({ detail }) => detail);
  const old: Consent = {
    ...{ id: "page-old", version: 1, origin: ALICE, actor: agent, targets: target.names.slice(0, 1) },
    ...{ scopes: some(random, SCOPES, 1), expiresAtSeconds: NOW + 86_400 * (1 + random.below(90)) },
    ...(all !== undefined && random.below(4) > 0 && { details: all }),
  };
  const asking = { target, scope, details: all, job: undefined };
  const kept = replacedBy(policy, [old], asking);
  const ends = endOfGiven(
    NOW,
    86_400 * 30,
    kept === undefined || kept.permissions.length === 0 ? {} : { kept },
  );
  // The record may have changed since the page was looked at.
  const standing = { ...old, version: 1 + random.below(2) };
  const { before, scopes } = recordOf(policy, [standing], { ...asking, details: given.details }, given, kept);
  const lasts = new Map(before === undefined ? old.scopes.map((one) => [one, old.expiresAtSeconds]) : []);
  for (const one of scopes) lasts.set(one, ends);
  for (const one of given.scopes) assert.equal(lasts.get(one), ends, about);
  for (const one of old.scopes.filter((one) => !scope.includes(one) && target.scopes.includes(one))) {
    const isShown = kept?.permissions.some((shown) => shown.scope === one) === true;
    if (lasts.get(one) !== old.expiresAtSeconds) assert.ok(isShown && lasts.get(one) === ends, about);
    assert.ok((lasts.get(one) ?? 0) <= (old.expiresAtSeconds ?? 0), `${one} lasts longer, ${about}`);
  }
}

/** Compares so many random requests, and throws at the first one that differs; returns how many of each kind there were. */
export function comparePermissions(rounds: number, seed: number, give = givenOf) {
  const random = prng(seed);
  const seen = { plain: 0, jobs: 0, several: 0, limits: 0, lacking: 0, unasked: 0 };
  for (let asked = 0; asked < rounds; ) {
    const policy = randomPolicy(random);
    for (let tries = 0; tries < 40 && asked < rounds; tries++) {
      const request = randomRequest(random, policy);
      if (request === undefined) continue;
      asked++;
      const { agent, bounds, choice, missing } = request;
      const about = `seed ${seed}, request ${asked}: ${JSON.stringify({ agent, bounds, scope: missing.scope })}`;
      // Each box has the words of its own target, and is one.
      const boxes = choice.at.flatMap((one) => one.permissions.map(({ box }) => box));
      assert.equal(new Set(boxes).size, boxes.length, about);
      for (const { target, permissions } of choice.at)
        for (const { scope, sentence } of permissions) {
          assert.ok(target.scopes.includes(scope), about);
          assert.equal(sentence, sentenceOf(target, scope), about);
        }
      const ticks = randomTicks(random, choice);
      const given = give(choice, ticks, bounds);
      const ticked = tickedBy(choice, ticks);
      if (!given.ok) {
        const own = choice.at[0];
        const isTicked = own?.permissions.some(({ box }) => ticks.all || ticks.scopes.includes(box));
        assert.equal(given.error === "nothing_ticked", !isTicked, about);
        if (given.error === "agent_gets_nothing") assert.ok(getsNothing(choice, ticks, ticked), about);
        seen.lacking++;
        continue;
      }
      assert.ok(!getsNothing(choice, ticks, ticked), about);
      if (bounds === undefined) compareEnds(prng(seed + asked), policy, request, given.value, about);
      const consents = recorded(given.value, bounds && "job_1");
      // What is recorded, pair by pair.
      const written = consents.flatMap(({ actor, targets, scopes, details = [] }) =>
        targets.flatMap((target) =>
          scopes.map((scope) => [
            `${actor} ${scope} ${target}`,
            JSON.stringify(sorted(details.map((one) => JSON.stringify(one)))),
          ]),
        ),
      );
      assert.deepEqual(written.toSorted(), [...ticked].toSorted(), about);
      // What is given: without a tick nothing but what the page says that rules give without asking.
      const unasked = new Set([
        ...choice.unasked.flatMap((one) => pairsOf(one.at).map((pair) => `${one.agent} ${pair}`)),
        ...permissionsBy(policy, unaskedRules(policy, ALICE, namedAgent(agent)))
          .flatMap((one) => pairsOf([one]))
          .map((pair) => `${agent} ${pair}`),
      ]);
      const parties = choice.agents.map(({ id }) => id);
      const gives = givenBy(policy, consents, given.value.bounds);
      for (const [pair, within] of gives) {
        const isOfParty = parties.some((id) => pair.startsWith(`${id} `));
        if (!isOfParty || unasked.has(pair)) continue;
        assert.equal(ticked.get(pair), within, `${pair} was given, ${about}`);
      }
      for (const pair of ticked.keys()) assert.ok(gives.has(pair), `${pair} was not given, ${about}`);
      // What the page says that those who take part get whatever is ticked, they get; and no box is for that alone.
      const taking = choice.agents.filter(
        ({ id }, index) => index === 0 || ticks.all || ticks.agents.includes(id),
      );
      for (const { agent: one, at } of choice.unasked.filter((one) =>
        taking.some(({ id }) => id === one.agent),
      ))
        for (const pair of pairsOf(at)) assert.ok(gives.has(`${one} ${pair}`), `${one} ${pair}, ${about}`);
      const without = choice.unasked.length > 0 && givenBy(policy, [], given.value.bounds, "unnamed");
      for (const { target, permissions } of without ? choice.at.slice(1) : [])
        for (const { box, scope } of permissions) {
          const holders = choice.agents.filter(({ may }) => may.has(box));
          const isDecided = holders.some(
            ({ id }) => without && !without.has(`${id} ${scope} ${target.names[0]}`),
          );
          assert.ok(isDecided, `${box} decides nothing, ${about}`);
        }
      if (bounds === undefined) seen.plain++;
      else seen.jobs++;
      if (choice.at.length > 1) seen.several++;
      if (choice.at.some(({ limits }) => limits.length > 0)) seen.limits++;
      if (choice.unasked.length > 0) seen.unasked++;
    }
  }
  return seen;
}
