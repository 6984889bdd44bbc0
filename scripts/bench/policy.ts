/**
 * The time of a policy decision with ten rules and with ten thousand: `node scripts/bench/policy.ts [--json]`. One run
 * alternates between both, with ten callers spread over the rules; it reports the median of many rounds, and the ratio
 * of the fastest ones.
 */
import { parseArgs } from "node:util";
import * as v from "valibot";
import type { AccessRequest } from "../../src/policy/access.ts";
import { decide } from "../../src/policy/decide.ts";
import { compilePolicy, type PolicySet, Rule, Target } from "../../src/policy/rules.ts";
import { quantile } from "./load.ts";

const ISSUER = "https://as.example";
const IDP = "https://idp.example";
const NOW_SECONDS = 1_790_000_000;
const FEW = 10;
const MANY = 10_000;
const CALLERS = 10;

/** The actor and target of a rule, and the workload that asks. */
type Shape = { actor: string; target: string; workload: string };

const workload = (path: string): string => `spiffe://td.example/${path}`;

/** The ways in which policies grow. */
const SHAPES: Record<string, (index: number) => Shape> = {
  "a rule for each workload": (index) => ({
    actor: workload(`agents/a${index}`),
    target: `t${index % FEW}`,
    workload: workload(`agents/a${index}`),
  }),
  "a rule for each folder": (index) => ({
    actor: workload(`teams/f${index}/*`),
    target: `t${index % FEW}`,
    workload: workload(`teams/f${index}/agents/planner`),
  }),
  "a rule for each target": (index) => ({
    actor: workload("agents/planner"),
    target: `t${index}`,
    workload: workload("agents/planner"),
  }),
};

/** "refused" uses a subject of another issuer, so that every rule of the caller is checked and none matches. */
const OUTCOMES = ["allowed", "refused", "unknown caller"] as const;

export type Row = {
  rules: string;
  outcome: (typeof OUTCOMES)[number];
  fewMicros: number;
  manyMicros: number;
  ratio: number;
};

type Side = { policy: PolicySet; asks: readonly AccessRequest[] };
type Shapes = (index: number) => Shape;

function makePolicy(shapeOf: Shapes, count: number): PolicySet {
  const shapes = Array.from({ length: count }, (_, index) => shapeOf(index));
  const targets = [...new Set(shapes.map(({ target }) => target))].map((name) =>
    v.parse(Target, { names: [name], owners: [workload("agents/*")], scopes: ["trips.read", "trips.book"] }),
  );
  const rules = shapes.map(({ actor, target }, index) =>
    v.parse(Rule, {
      id: `r${index}`,
      allow: "delegation",
      actors: [actor],
      targets: [target],
      scopes: ["trips.read"],
      subjects: { issuers: [IDP] },
      subjectToken: { audiences: [ISSUER, "self"] },
      consent: "record",
    }),
  );
  const policy = compilePolicy(rules, targets, ISSUER, "sha256:00");
  if (!policy.ok) throw new Error(policy.error.join("\n"));
  return policy.value;
}

function makeSide(policy: PolicySet, shapeOf: Shapes, outcome: Row["outcome"], count: number): Side {
  const asks = Array.from({ length: CALLERS }, (_, caller): AccessRequest => {
    const { target, workload: sub } = shapeOf(Math.floor((caller * count) / CALLERS));
    const origin = { iss: outcome === "refused" ? ISSUER : IDP, sub: "u-4821" };
    const who = outcome === "unknown caller" ? workload("unknown/x") : sub;
    return {
      mode: "delegation",
      clientId: who,
      workload: who,
      target,
      scope: ["trips.read"],
      subject: {
        origin,
        issuer: ISSUER,
        audiences: [ISSUER],
        scopes: ["trips.read", "trips.book"],
        chain: [],
        expiresAtSeconds: NOW_SECONDS + 600,
        tokenType: "access_token",
      },
      consents: [{ id: "k", version: 1, origin, actor: who, targets: [target], scopes: ["trips.read"] }],
      nowSeconds: NOW_SECONDS,
    };
  });
  for (const access of asks) {
    if (decide(policy, access).ok !== (outcome === "allowed"))
      throw new Error(`a decision is not the expected one: ${outcome}`);
  }
  return { policy, asks };
}

/** The mean time of one decision in microseconds. */
function time({ policy, asks }: Side, decisions: number): number {
  const beforeMs = performance.now();
  for (let asked = 0; asked < decisions; asked += asks.length) {
    for (const access of asks) decide(policy, access);
  }
  return ((performance.now() - beforeMs) * 1000) / decisions;
}

export function benchPolicy(rounds = 200, decisions = 500): Row[] {
  return Object.entries(SHAPES).flatMap(([rules, shapeOf]) => {
    const [small, large] = [makePolicy(shapeOf, FEW), makePolicy(shapeOf, MANY)];
    return OUTCOMES.map((outcome) => {
      const few = makeSide(small, shapeOf, outcome, FEW);
      const many = makeSide(large, shapeOf, outcome, MANY);
      const times: { few: number[]; many: number[] } = { few: [], many: [] };
      // Alternating, so that other load on the machine affects both equally; the first rounds are warm-up.
      for (let round = -rounds / 4; round < rounds; round++) {
        const [fewMicros, manyMicros] = [time(few, decisions), time(many, decisions)];
        if (round < 0) continue;
        times.few.push(fewMicros);
        times.many.push(manyMicros);
      }
      const middle = (list: number[]): number => quantile(Float64Array.from(list).sort(), 0.5);
      const [fewMicros, manyMicros] = [middle(times.few), middle(times.many)];
      // Other load only ever adds time, so the fastest rounds are the fairest to compare.
      const ratio = Math.min(...times.many) / Math.min(...times.few);
      return { rules, outcome, fewMicros, manyMicros, ratio };
    });
  });
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { json: { type: "boolean", default: false } } });
  const rows = benchPolicy();
  if (values.json) console.log(JSON.stringify(rows, null, 2));
  else {
    console.log(`${"one decision, µs".padEnd(42)}${FEW} rules  ${MANY} rules  ratio`);
    for (const { rules, outcome, fewMicros, manyMicros, ratio } of rows) {
      const numbers = [
        fewMicros.toFixed(2).padStart(8),
        manyMicros.toFixed(2).padStart(11),
        ratio.toFixed(2).padStart(5),
      ];
      console.log(`${rules}, ${outcome}`.padEnd(42) + numbers.join("  "));
    }
  }
}
