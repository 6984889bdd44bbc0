/**
 * `mandate policy impact`: whom it would hurt if a rule, a client, a trust domain or a subject were not there any more,
 * by the requests that the trail has (IMPACT-D-1).
 */

import type { Recorded } from "../../audit/recorded.ts";
import { addUse, callerIn, noUses, subjectName, targetIn, type Uses } from "../../audit/uses.ts";
import type { EndingSelector } from "../../policy/endings.ts";
import { decideAgain, differing, type Gathered, gather, isDecided } from "../../policy/replay.ts";
import { compilePolicy, type PolicySet } from "../../policy/rules.ts";
import { parseSpiffeId } from "../../spec/spiffe/id.ts";
import type { Period } from "./over-trail.ts";
import { APART, describe, digest } from "./replay.ts";
import { count } from "./tally.ts";
import { recordedIn, type TrailSource } from "./trail-source.ts";

/** What would not be there any more; by the same name its living tokens are ended. */
export type Removed = Extract<EndingSelector, { by: "rule" | "client" | "trust_domain" | "subject" }>;

export type Impact = {
  events: number;
  /** Events that are of what would be removed, allowed or not. */
  named: number;
  /** Requests that were allowed and would be refused. */
  hurt: number;
  /** Of them, those that would only lack the token that they presented. */
  downstream: number;
  agents: Uses;
  subjects: Uses;
  targets: Uses;
  /** Another rule would give less, as much, and what the policy in force refuses as it is. */
  less: number;
  same: number;
  already: number;
  /** What cannot be decided again, by why. */
  apart: Map<string, number>;
};

type Verdict = "hurt" | "less" | "same" | "already";

export async function impactOf(
  removed: Removed,
  policy: PolicySet,
  source: TrailSource,
  period: Period,
): Promise<Impact> {
  const trail = gather(digest);
  if (removed.by === "rule") {
    for await (const told of recordedIn(source.told())) trail.take(told);
  }
  const judge = judgeOf(removed, policy, trail);
  const lost = lostTokens();
  const counts = { events: 0, named: 0, hurt: 0, downstream: 0, less: 0, same: 0, already: 0 };
  const whom = { agents: noUses(), subjects: noUses(), targets: noUses() };
  const impact: Impact = { ...counts, ...whom, apart: new Map() };
  for await (const event of recordedIn(source.events(period.fromMs), period)) {
    impact.events++;
    const isOf = judge.isOf(event);
    if (isOf) impact.named++;
    if (event.granted === undefined) continue;
    const own = isOf ? judge.without(event) : "same";
    if (typeof own === "object") {
      count(impact.apart, own.apart);
      continue;
    }
    // A token that would not exist gets no other one, whatever the rules allow (IMPACT-D-2).
    const lacksToken = own !== "hurt" && event.granted.parent_jti.some(lost.has);
    if (isOf && !lacksToken && own !== "hurt") impact[own]++;
    if (own !== "hurt" && !lacksToken) continue;
    lost.add(event.granted.jti, event.granted.exp, Date.parse(event.time));
    impact.hurt++;
    if (lacksToken) impact.downstream++;
    addHurt(impact, event);
  }
  return impact;
}

function addHurt({ agents, subjects, targets }: Impact, event: Recorded): void {
  const timeMs = Date.parse(event.time);
  const [agent, target] = [callerIn(event), targetIn(event)];
  if (agent !== undefined) addUse(agents, agent, timeMs);
  if (target !== undefined) addUse(targets, target, timeMs);
  if (event.subject !== undefined) addUse(subjects, subjectName(event.subject), timeMs);
}

type Judge = {
  /** Whether the event is of what would be removed. */
  isOf(event: Recorded): boolean;
  /** What would become of it. */
  without(event: Recorded): Verdict | { apart: string };
};

function judgeOf(removed: Removed, policy: PolicySet, trail: Gathered): Judge {
  const always = () => "hurt" as const;
  switch (removed.by) {
    case "rule":
      return ruleJudge(removed.id, policy, trail);
    case "client": {
      const { clientId } = removed;
      const isOf = ({ client }: Recorded) => client?.client_id === clientId || client?.workload === clientId;
      return { isOf, without: always };
    }
    case "trust_domain": {
      const isOf = ({ client }: Recorded) => domainOf(client?.workload) === removed.name;
      return { isOf, without: always };
    }
    case "subject": {
      const { iss, sub } = removed;
      const isOf = ({ subject, client }: Recorded) =>
        subject === undefined
          ? iss === policy.issuer && client?.client_id === sub
          : subject.iss === iss && subject.sub === sub;
      return { isOf, without: always };
    }
  }
}

function domainOf(workload: string | undefined): string | undefined {
  const id = workload === undefined ? undefined : parseSpiffeId(workload);
  return id?.ok ? id.value.trustDomain : undefined;
}

/** By the function that decides requests: first as things are, then without the rule. */
function ruleJudge(id: string, policy: PolicySet, trail: Gathered): Judge {
  const { written, issuer, digest } = policy;
  const others = written.policies.filter((rule) => rule.id !== id);
  const compiled = compilePolicy(others, written.targets, issuer, digest);
  // A set without one of its rules has no problem that it did not have before.
  const next = compiled.ok ? compiled.value : policy;
  return {
    isOf: (event) => event.policy?.rule_id === id,
    without(event) {
      if (!isDecided(event)) return { apart: "its event does not say what its decision read" };
      const is = decideAgain(policy, event, trail, describe);
      if (!is.ok) return { apart: APART[is.error] };
      if (is.value.outcome === "deny") return "already";
      const would = decideAgain(next, event, trail, describe);
      if (!would.ok) return { apart: APART[would.error] };
      if (would.value.outcome === "deny") return "hurt";
      return differing(is.value, would.value).some((one) => one !== "rule") ? "less" : "same";
    },
  };
}

/** So many are kept before those that have expired are forgotten. */
const LOST_KEPT = 50_000;

/** The tokens that would not exist, until they would have expired. */
function lostTokens() {
  const ends = new Map<string, number>();
  let next = LOST_KEPT;
  return {
    has: (jti: string): boolean => ends.has(jti),
    add(jti: string, expSeconds: number, nowMs: number): void {
      ends.set(jti, expSeconds);
      if (ends.size < next) return;
      for (const [one, exp] of ends) if (exp * 1000 < nowMs) ends.delete(one);
      next = Math.max(LOST_KEPT, 2 * ends.size);
    },
  };
}
