/**
 * The smallest change that would have allowed a refused request (CHANGE-D-1): found by the decision itself, which is asked
 * again after each change until it allows; then every part goes without which it still does. For operators alone: a
 * caller that is told what would let it in is told the policy.
 */
import { defined } from "../result.ts";
import type { Consent } from "./access.ts";
import { type AskedRequest, decideRequest } from "./decision.ts";
import { judge, unmet, withAllLacks } from "./judge.ts";
import { type ChangePart, nextPart } from "./next-change.ts";
import { candidates, compilePolicy, type PolicySet, type Rule, type TargetFile } from "./rules.ts";

/** What decides: rules and targets as written, and the request. */
type State = { rules: readonly Rule[]; targets: readonly TargetFile[]; asked: AskedRequest };

export type Suggestion = { rule: string; changes: readonly ChangePart[] };

/** So many rules are tried, the nearest first, and so many parts of each. */
const RULES_MAX = 8;
const PARTS_MAX = 12;

/** Undefined where no such change exists, as for a caller that is the subject itself. */
export function smallestChange(policy: PolicySet, asked: AskedRequest): Suggestion | undefined {
  let best: Suggestion | undefined;
  for (const { rule, lacks } of nearestRules(policy, asked)) {
    const most = best?.changes.length ?? PARTS_MAX;
    // One part may meet two conditions that a rule lacks, and rarely more.
    if (lacks > most + 1) break;
    const changes = changeFor(policy, asked, rule, most + 1);
    if (changes !== undefined && (best === undefined || isLess(changes, best.changes)))
      best = { rule: rule.id, changes };
    if (best?.changes.length === 1) break;
  }
  return best;
}

const ATS: readonly ChangePart["at"][] = [
  "request",
  "consent",
  "subject_token",
  "sign_in",
  "job",
  "client",
  "rule",
  "target",
];

/** Fewer parts, or as many of what reaches less. */
const isLess = (one: readonly ChangePart[], other: readonly ChangePart[]): boolean =>
  one.length < other.length || (one.length === other.length && reachOf(one) < reachOf(other));

const reachOf = (changes: readonly ChangePart[]): number =>
  changes.reduce((sum, { at }) => sum + ATS.indexOf(at), 0);

function nearestRules(policy: PolicySet, asked: AskedRequest): readonly { rule: Rule; lacks: number }[] {
  const target = asked.target === undefined ? undefined : policy.targets.get(asked.target);
  const naming = new Set(candidates(policy, asked));
  const lacksOf = (rule: Rule): number => {
    const named = naming.has(rule) ? 0 : 1;
    if (target === undefined) return named + (unmet(policy, asked, rule) === undefined ? 0 : 1);
    const aims = rule.targets.some((name) => policy.targets.get(name) === target) ? 0 : 1;
    const judged = withAllLacks(policy, asked, judge(policy, asked, rule, target), target);
    return named + aims + (judged.failed === undefined ? 0 : 1 + judged.also.length);
  };
  return policy.written.policies
    .filter(({ allow }) => allow === asked.mode)
    .map((rule) => ({ rule, lacks: lacksOf(rule) }))
    .sort((a, b) => a.lacks - b.lacks || (a.rule.id < b.rule.id ? -1 : 1))
    .slice(0, RULES_MAX);
}

function changeFor(
  policy: PolicySet,
  asked: AskedRequest,
  rule: Rule,
  partsMax: number,
): readonly ChangePart[] | undefined {
  let state: State = { rules: [rule], targets: targetsFor(policy, asked, rule), asked };
  const changes: ChangePart[] = [];
  for (;;) {
    const set = policyOf(state, policy.issuer);
    if (set === undefined) return undefined;
    const decided = decideRequest(set, state.asked);
    if (decided.ok) {
      // Alone, the rule implies its target; beside others it may not.
      const [is = ""] = decided.value.target.names;
      if (state.asked.target === undefined && !allows(policy, asked, changes))
        changes.push({ at: "request", path: ["target"], is });
      break;
    }
    const change =
      changes.length < partsMax
        ? nextPart(set, state.rules[0] ?? rule, state.asked, decided.error)
        : undefined;
    if (change === undefined) return undefined;
    changes.push(change);
    state = applyChange(state, change);
  }
  return minimal(changes, (parts) => allows(policy, asked, parts));
}

/** Without each part that can be left away. */
function minimal<T>(parts: readonly T[], holds: (parts: readonly T[]) => boolean): readonly T[] | undefined {
  if (!holds(parts)) return undefined;
  let left = parts;
  for (const part of parts) {
    const less = left.filter((one) => one !== part);
    if (holds(less)) left = less;
  }
  return left;
}

/** Whether the rules allow the request after these changes. */
export function allows(policy: PolicySet, asked: AskedRequest, changes: readonly ChangePart[]): boolean {
  const { policies, targets } = policy.written;
  const all = changes.reduce<State>(applyChange, { rules: policies, targets, asked });
  const isSame = all.rules === policies && all.targets === targets;
  if (isSame) return decideRequest(policy, all.asked).ok;
  if (all.targets !== targets || all.asked.target === undefined) return isAllowed(all, policy.issuer);
  // Rules only allow, so that each is asked alone where the request names its target; the unchanged ones are indexed.
  const changedRules = all.rules.filter((rule, index) => rule !== policies[index]);
  return (
    decideRequest(policy, all.asked).ok ||
    changedRules.some((rule) =>
      isAllowed(
        { rules: [rule], targets: targetsFor(policy, all.asked, rule), asked: all.asked },
        policy.issuer,
      ),
    )
  );
}

function isAllowed(state: State, issuer: string): boolean {
  const set = policyOf(state, issuer);
  return set !== undefined && decideRequest(set, state.asked).ok;
}

/** The targets that can matter: those of the rule and of the request, and those that the token is for. */
function targetsFor(
  { targets, written }: PolicySet,
  { target, subject }: AskedRequest,
  rule: Rule,
): readonly TargetFile[] {
  const names = [...rule.targets, ...(target === undefined ? [] : [target]), ...(subject?.audiences ?? [])];
  const firsts = new Set(names.map((name) => targets.get(name)?.names[0]));
  return written.targets.filter(({ names: [first] }) => firsts.has(first));
}

function policyOf({ rules, targets }: State, issuer: string): PolicySet | undefined {
  const compiled = compilePolicy(rules, targets, issuer, "");
  return compiled.ok ? compiled.value : undefined;
}

// --- applying a change --------------------------------------------------------------------------------------------

const GIVEN = "suggested";

export function applyChange(state: State, change: ChangePart): State {
  const { rules, targets, asked } = state;
  const { at, of, adds = "" } = change;
  switch (at) {
    case "rule":
      return { ...state, rules: rules.map((one) => (one.id === of ? put(one, change) : one)) };
    case "target":
      return { ...state, targets: targets.map((one) => (one.names[0] === of ? put(one, change) : one)) };
    case "request":
    case "client":
      return { ...state, asked: put(asked, change) };
    case "subject_token":
    case "sign_in":
      return { ...state, asked: defined({ ...asked, subject: asked.subject && put(asked.subject, change) }) };
    case "consent":
      return { ...state, asked: { ...asked, consents: consentsWith(asked, of ?? "", adds.split(" ")) } };
    case "job":
      return { ...state, asked: inChangedJob(asked, change) };
  }
}

function consentsWith(
  { consents, subject, workload, clientId, job }: AskedRequest,
  target: string,
  scopes: readonly string[],
): readonly Consent[] {
  const given = consents.find(({ id, targets }) => id === GIVEN && targets.includes(target));
  const consent = defined<Consent>({
    id: GIVEN,
    version: 1,
    origin: subject?.origin ?? { iss: "", sub: "" },
    actor: workload ?? clientId,
    targets: [target],
    scopes: [...(given?.scopes ?? []), ...scopes],
    jobId: job?.id,
    jobIssuer: job?.iss,
  });
  return [...consents.filter((one) => one !== given), consent];
}

function inChangedJob({ proposes, job, ...asked }: AskedRequest, change: ChangePart): AskedRequest {
  if (proposes !== undefined) return { ...asked, job: { id: GIVEN, bounds: proposes } };
  return defined<AskedRequest>({ ...asked, job: job && { ...job, bounds: put(job.bounds, change) } });
}

/** The object with the member at this path changed. */
function put<T extends object>(object: T, { path: [name = "", ...rest], ...change }: ChangePart): T {
  const { adds, is } = change;
  const members = { ...object } as Record<string, unknown>;
  const old = members[name];
  if (rest.length > 0) members[name] = put((old ?? {}) as object, { ...change, path: rest });
  else if (adds !== undefined) members[name] = [...((old as readonly string[] | undefined) ?? []), adds];
  else if (is === null) delete members[name];
  else members[name] = is;
  return members as T;
}
