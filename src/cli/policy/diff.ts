/**
 * What a change of the policy newly allows and newly denies. Rules only allow, so everything that is allowed is
 * allowed by some rule: for each rule that differs between the two policies, questions are derived from its own
 * values (each caller, subject, subject token, target and single scope), and both policies answer them. A prefix and
 * "any subject" are represented by one sample and by every matching name that occurs in either policy.
 */
import { isDeepStrictEqual } from "node:util";
import type { Explanation } from "../../flows/explain.ts";
import { type DetailTypes, isWithin } from "../../policy/details.ts";
import type { Settings } from "../../settings/settings.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { type Detail, readDetails } from "../../spec/rfc9396.ts";
import { answer, rulesOf } from "./answer.ts";
import { type Description, namesIn, type Probe, probesOf } from "./probes.ts";
import type { Vector } from "./vectors.ts";

/** This limits the running time: more questions would take minutes. */
const QUESTIONS_MAX = 50_000;

export type PolicyChange = "allowed" | "denied" | "wider" | "narrower" | "longer" | "shorter";

/** `note` is the change of the details or of the lifetime, or the reason of the refusal. */
export type Difference = { change: PolicyChange; facts: Description & { rule: string; note: string } };

export type Comparison = {
  asked: number;
  /** Whether there were more questions than the limit. */
  cut: boolean;
  differences: readonly Difference[];
  vectors: readonly { name: string; before: Explanation; after: Explanation }[];
};

export async function compare(
  before: Settings,
  after: Settings,
  vectors: readonly Vector[],
  questionsMax = QUESTIONS_MAX,
): Promise<Comparison> {
  const probes = collectProbes(before, after, questionsMax + 1);
  const cut = probes.length > questionsMax;
  const differences: Difference[] = [];
  for (const { scenario, facts } of probes.slice(0, questionsMax)) {
    const [old, next] = [await answer(before, scenario), await answer(after, scenario)];
    const found = judge(old, next, after.policy.details);
    if (found !== undefined) {
      const { change, rule, note } = found;
      differences.push({ change, facts: { ...facts, rule, note } });
    }
  }
  const changed: { name: string; before: Explanation; after: Explanation }[] = [];
  for (const { name, scenario } of vectors) {
    const [old, next] = [await answer(before, scenario), await answer(after, scenario)];
    const same = isDeepStrictEqual(old.issued, next.issued) && old.failure?.reason === next.failure?.reason;
    if (!same) changed.push({ name, before: old, after: next });
  }
  return { asked: Math.min(probes.length, questionsMax), cut, differences, vectors: changed };
}

function judge(
  old: Explanation,
  next: Explanation,
  types: DetailTypes,
): { change: PolicyChange; rule: string; note: string } | undefined {
  if (old.issued === undefined) {
    return next.issued && { change: "allowed", rule: next.issued.rule, note: "" };
  }
  if (next.issued === undefined) {
    return { change: "denied", rule: old.issued.rule, note: next.failure?.reason ?? "no_rule" };
  }
  const [before, after] = [detailsIn(old), detailsIn(next)];
  if (JSON.stringify(before) !== JSON.stringify(after)) {
    const change = isWithin(types, after, before) ? "narrower" : "wider";
    return {
      change,
      rule: next.issued.rule,
      note: after === undefined ? "no details" : JSON.stringify(after),
    };
  }
  const [was, is] = [old, next].map(({ issued }) => Number(issued?.claims.exp) - Number(issued?.claims.iat));
  if (was === is) return undefined;
  const change = Number(is) > Number(was) ? "longer" : "shorter";
  return { change, rule: next.issued.rule, note: `${was} s → ${is} s` };
}

/**
 * Whether anything is allowed that was not, and whether anything is denied that was allowed; wider details and a longer
 * lifetime count as allowed, narrower and shorter ones as denied.
 */
export function directions({ differences, vectors }: Comparison): { allows: boolean; denies: boolean } {
  const changes = new Set(differences.map(({ change }) => change));
  const gains = (from: Explanation, to: Explanation): boolean =>
    to.issued !== undefined && (from.issued === undefined || exceeds(to.issued.claims, from.issued.claims));
  return {
    allows: GAINS.some((one) => changes.has(one)) || vectors.some((one) => gains(one.before, one.after)),
    denies: LOSSES.some((one) => changes.has(one)) || vectors.some((one) => gains(one.after, one.before)),
  };
}

const GAINS: readonly PolicyChange[] = ["allowed", "wider", "longer"];
const LOSSES: readonly PolicyChange[] = ["denied", "narrower", "shorter"];

const detailsIn = ({ issued }: Explanation): readonly Detail[] | undefined => {
  const read = readDetails(issued?.claims.authorization_details);
  return read.ok ? read.value : undefined;
};

/** Whether a token has a scope that the other has not, other details or none any more, or lives longer. */
function exceeds(claims: JsonObject, others: JsonObject): boolean {
  const { authorization_details: limits } = others;
  if (limits !== undefined && !isDeepStrictEqual(claims.authorization_details, limits)) return true;
  const scopes = String(others.scope).split(" ");
  const more = String(claims.scope)
    .split(" ")
    .some((scope) => !scopes.includes(scope));
  return more || Number(claims.exp) - Number(claims.iat) > Number(others.exp) - Number(others.iat);
}

// --- questions ----------------------------------------------------------------------------------------------------

function collectProbes(before: Settings, after: Settings, max: number): readonly Probe[] {
  const sameElse = isDeepStrictEqual(withoutRules(before), withoutRules(after));
  const [old, next] = [rulesOf(before), rulesOf(after)];
  const clients = [...before.clients.values(), ...after.clients.values()];
  const names = namesIn([...old, ...next], clients, [
    ...before.platforms.values(),
    ...after.platforms.values(),
  ]);
  const found = new Map<string, Probe>();
  const sides = [
    { settings: after, rules: next, others: old },
    { settings: before, rules: old, others: next },
  ];
  for (const { settings, rules, others } of sides) {
    const byId = new Map(others.map((rule) => [rule.id, rule]));
    for (const rule of rules) {
      // An identical rule in an identical configuration allows the same in both policies.
      if (sameElse && isDeepStrictEqual(byId.get(rule.id), rule)) continue;
      for (const probe of probesOf(settings, rule, names)) {
        found.set(JSON.stringify(probe.scenario), probe);
        if (found.size === max) return [...found.values()];
      }
    }
  }
  return [...found.values()];
}

function withoutRules({ policy, ...settings }: Settings): object {
  return { ...settings, targets: policy.targets };
}
