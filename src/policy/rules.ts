/**
 * The exchange policy (product document 2.6) as data: the format of rules and targets (PROD-2.6-7), and the
 * index that finds the few rules that name a caller. Rules only ever allow.
 */
import * as v from "valibot";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import {
  ACCESS_TOKEN_SECONDS,
  ACCESS_TOKEN_SECONDS_MAX,
  ACT_HOPS_MAX,
  TOKEN_SECONDS_MIN,
} from "../spec/limits.ts";
import { isScopeToken } from "../spec/rfc6749.ts";
import { OWN_ALGORITHMS } from "../spec/rfc8725.ts";
import { parsePattern } from "../spec/spiffe/id.ts";

// --- rules and targets as written -------------------------------------------------------------------------------

const names = v.pipe(v.array(v.pipe(v.string(), v.nonEmpty())), v.minLength(1));
const pattern = v.pipe(
  v.string(),
  v.check((text) => parsePattern(text).ok, "is neither a SPIFFE ID nor a prefix of one that ends in /*"),
);
const patterns = v.pipe(v.array(pattern), v.minLength(1));
const scopes = v.pipe(
  v.array(v.pipe(v.string(), v.check(isScopeToken, "is not a scope token"))),
  v.minLength(1),
);

const common = {
  id: v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)),
  targets: names,
  scopes,
  lifetimeSeconds: v.optional(
    v.pipe(v.number(), v.integer(), v.minValue(TOKEN_SECONDS_MIN), v.maxValue(ACCESS_TOKEN_SECONDS_MAX)),
    ACCESS_TOKEN_SECONDS,
  ),
};

/** PROD-2.6-5, PROD-2.6-9: at least one of the two, and a token that has one of the values named. */
const subjectToken = v.pipe(
  v.strictObject({ audiences: v.optional(names), scopes: v.optional(scopes) }),
  v.check(
    ({ audiences, scopes }) => audiences !== undefined || scopes !== undefined,
    "names neither audiences nor scopes",
  ),
);

const exchange = {
  ...common,
  subjects: v.strictObject({ issuers: names, subs: v.optional(names) }),
  subjectToken,
  consent: v.picklist(["record", "may_act", "implied"]),
  acknowledge: v.optional(v.literal("subjects-not-asked")),
};

const who = { actors: v.optional(patterns), clients: v.optional(names) };

/** One rule; a field that its mode has no use for is an error. */
export const Rule = v.pipe(
  v.variant("allow", [
    v.strictObject({ allow: v.literal("client_credentials"), ...who, ...common }),
    v.strictObject({
      allow: v.literal("delegation"),
      actors: patterns,
      maxChainDepth: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(ACT_HOPS_MAX))),
      ...exchange,
    }),
    v.strictObject({ allow: v.literal("impersonation"), ...who, ...exchange }),
  ]),
  v.check(
    (rule) => rule.allow === "delegation" || rule.actors !== undefined || rule.clients !== undefined,
    "names neither actors nor clients",
  ),
  // PROD-2.6-8: the operator answers for consent that nobody gave, and says so in the rule.
  v.check(
    (rule) =>
      rule.allow === "client_credentials" ||
      (rule.consent === "implied") === (rule.acknowledge !== undefined),
    'consent "implied" goes with "acknowledge": "subjects-not-asked", and only with it',
  ),
);
export type Rule = v.InferOutput<typeof Rule>;
export type Mode = Rule["allow"];

/** A resource server, found by any of its names, each exact. */
export const Target = v.strictObject({
  names,
  /** The workloads it belongs to: a token for it is meant for them. */
  owners: v.optional(v.array(pattern), []),
  scopes,
  alg: v.optional(v.picklist(OWN_ALGORITHMS), "ES256"),
  /** What this target may see of the chain of actors. */
  chain: v.optional(v.picklist(["all", "current"]), "all"),
});
export type Target = v.InferOutput<typeof Target>;

// --- the set in force -------------------------------------------------------------------------------------------

export type PolicySet = {
  /** Names the rules and targets in force in every audit event (AUDIT-D-4). */
  digest: string;
  issuer: string;
  targets: ReadonlyMap<string, Target>;
  /** Rules by mode and whom they name, and the same narrowed by target: ten thousand cost no more than ten. */
  byWho: ReadonlyMap<string, readonly Rule[]>;
  byWhoAndTarget: ReadonlyMap<string, readonly Rule[]>;
  /** Of rules that name somebody and are alike in all but targets and scopes, one. */
  kinds: ReadonlyMap<string, ReadonlyMap<string, Rule>>;
};

/** In `subjectToken.audiences`: any target that the actor owns. */
export const SELF = "self";

/** A client and a workload of one name are two: each is found only where a rule names its kind. */
type Who = readonly [kind: "actor" | "client", name: string];

// JSON, because a name may hold any character that could stand between two.
const whoKey = (mode: Mode, who: Who): string => JSON.stringify([mode, ...who]);
const targetKey = (mode: Mode, who: Who, target: Target): string =>
  JSON.stringify([mode, ...who, target.names[0]]);

/** Builds the index; every problem of the set comes back in plain words, with its path. */
export function compilePolicy(
  rules: readonly Rule[],
  targets: readonly Target[],
  issuer: string,
  digest: string,
): Result<PolicySet, readonly string[]> {
  const problems: string[] = [];
  const byName = new Map<string, Target>();
  for (const target of targets) {
    for (const name of target.names) {
      // RFC8693-2.1-11, RFC9068-5-2: one name, one target.
      if (byName.has(name)) problems.push(`targets: the name "${name}" is given twice`);
      if (name === issuer || name === SELF) problems.push(`targets: the name "${name}" means something else`);
      byName.set(name, target);
    }
  }
  const ids = new Set<string>();
  const byWho = new Map<string, Rule[]>();
  const byWhoAndTarget = new Map<string, Rule[]>();
  const kinds = new Map<string, Map<string, Rule>>();
  // PROD-2.6-10: the order in which rules were written means nothing, not even in a trace.
  for (const rule of rules.toSorted(byId)) {
    if (ids.has(rule.id)) problems.push(`policies: the rule id "${rule.id}" is given twice`);
    ids.add(rule.id);
    const targetsOfRule = new Set<Target>();
    for (const name of rule.targets) {
      const target = byName.get(name);
      if (target === undefined)
        problems.push(`policies: rule "${rule.id}" names the unknown target "${name}"`);
      else targetsOfRule.add(target);
    }
    const kind = JSON.stringify({ ...rule, id: "", targets: [], scopes: [] });
    for (const who of namedBy(rule)) {
      const key = whoKey(rule.allow, who);
      add(byWho, key, rule);
      kinds.set(key, (kinds.get(key) ?? new Map()).set(kind, rule));
      for (const target of targetsOfRule) add(byWhoAndTarget, targetKey(rule.allow, who, target), rule);
    }
  }
  if (problems.length > 0) return err(problems);
  return ok({ digest, issuer, targets: byName, byWho, byWhoAndTarget, kinds });
}

/** Where clients are named, the rule is found by them, and `actors` narrows it further. */
function namedBy(rule: Rule): readonly Who[] {
  if (rule.allow !== "delegation" && rule.clients !== undefined) {
    return rule.clients.map((name) => ["client", name]);
  }
  return (rule.actors ?? []).map((name) => ["actor", name]);
}

function add(index: Map<string, Rule[]>, key: string, rule: Rule): void {
  const rules = index.get(key);
  if (rules === undefined) index.set(key, [rule]);
  // A rule that names one thing twice comes here twice in a row.
  else if (rules.at(-1) !== rule) rules.push(rule);
}

export type Caller = { mode: Mode; clientId: string; workload?: string };

/** Every rule of the mode that names this caller, exactly or by prefix, by id; narrowed to those for the target. */
export function candidates(policy: PolicySet, caller: Caller, target?: Target): readonly Rule[] {
  const [first = [], ...others] = listsFor(policy, caller, target);
  // Each list is in order already, and mostly there is but one.
  return others.length === 0 ? first : [...new Set([first, ...others].flat())].sort(byId);
}

/** The same in lists, one for each name that means this caller; a rule may be in several. */
export function listsFor(policy: PolicySet, caller: Caller, target?: Target): readonly (readonly Rule[])[] {
  return whoAsks(caller).flatMap((who) => {
    const rules =
      target === undefined
        ? policy.byWho.get(whoKey(caller.mode, who))
        : policy.byWhoAndTarget.get(targetKey(caller.mode, who, target));
    return rules === undefined ? [] : [rules];
  });
}

/** Of every kind of rule that names this caller, one. */
export function kindsFor({ kinds }: PolicySet, caller: Caller): readonly Rule[] {
  return whoAsks(caller).flatMap((who) => [...(kinds.get(whoKey(caller.mode, who))?.values() ?? [])]);
}

const byId = (a: Rule, b: Rule): number => (a.id < b.id ? -1 : 1);

/** The keys under which rules may name this caller: itself, and each whole-segment prefix of it. */
function whoAsks({ clientId, workload }: Caller): readonly Who[] {
  const keys: Who[] = [["client", clientId]];
  // The origin of a metadata document URL may stand for all documents there.
  const origin = /^https:\/\/[^/]+/.exec(clientId)?.[0];
  if (origin !== undefined) keys.push(["client", `${origin}/*`]);
  if (workload !== undefined) {
    keys.push(["actor", workload]);
    for (
      let end = workload.lastIndexOf("/");
      end > "spiffe://".length;
      end = workload.lastIndexOf("/", end - 1)
    ) {
      keys.push(["actor", `${workload.slice(0, end)}/*`]);
    }
  }
  return keys;
}
