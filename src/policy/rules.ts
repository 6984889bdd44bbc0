/**
 * The exchange policy (product document 2.6) as data: the format of rules and targets (PROD-2.6-7), and the
 * index that finds the few rules that name a caller. Rules only ever allow.
 */
import * as v from "valibot";
import {
  ACCESS_TOKEN_SECONDS,
  ACCESS_TOKEN_SECONDS_MAX,
  ACT_HOPS_MAX,
  GRANT_SECONDS,
  GRANT_SECONDS_MAX,
  TOKEN_SECONDS_MIN,
} from "../limits.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import { CLIENT_CREDENTIALS } from "../spec/rfc6749.ts";
import { JWT_BEARER_GRANT } from "../spec/rfc7523.ts";
import { TOKEN_EXCHANGE } from "../spec/rfc8693.ts";
import type { Partner } from "./targets.ts";
import { names, PartnerServer, pattern, ResourceServer, readPartner, scopes } from "./targets.ts";

// --- rules and targets as written -------------------------------------------------------------------------------

const patterns = v.pipe(v.array(pattern), v.minLength(1));

const common = {
  id: v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)),
  targets: names,
  scopes,
};

const lifetimeSeconds = (otherwise: number, max: number) =>
  v.optional(v.pipe(v.number(), v.integer(), v.minValue(TOKEN_SECONDS_MIN), v.maxValue(max)), otherwise);

// RFC6750-5.2-9, RFC6750-5.3-2: an hour at most.
const accessToken = { lifetimeSeconds: lifetimeSeconds(ACCESS_TOKEN_SECONDS, ACCESS_TOKEN_SECONDS_MAX) };

/** What comes of an exchange: mode and product are separate, and each product has its own fields. */
const asAccessToken = {
  issues: v.optional(v.literal("access_token")),
  ...accessToken,
};
const asGrant = {
  issues: v.literal("grant"),
  // IDC-5.5-1, EMA-7.4.2-1
  lifetimeSeconds: lifetimeSeconds(GRANT_SECONDS, GRANT_SECONDS_MAX),
  /** IDJAG-4.3-3: which subject tokens an ID-JAG may be made of; only an ID token without a word on it. */
  idJagSubjects: v.optional(v.pipe(v.array(v.picklist(["id_token", "jwt", "access_token"])), v.minLength(1))),
};

const maxChainDepth = v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(ACT_HOPS_MAX)));

/** PROD-2.6-4: for whom, and whether they were asked. */
const forWhom = {
  subjects: v.strictObject({ issuers: names, subs: v.optional(names) }),
  consent: v.picklist(["record", "may_act", "implied"]),
  acknowledge: v.optional(v.literal("subjects-not-asked")),
};

const exchange = {
  ...common,
  ...forWhom,
  /** PROD-2.6-5, PROD-2.6-9: at least one of the two, and a token that has one of the values named. */
  subjectToken: v.pipe(
    v.strictObject({ audiences: v.optional(names), scopes: v.optional(scopes) }),
    v.check(
      ({ audiences, scopes }) => audiences !== undefined || scopes !== undefined,
      "names neither audiences nor scopes",
    ),
  ),
};

/** Of clients that registered themselves, by how they came to do so. */
export const isClassName = (text: string): boolean => /^[a-z0-9-]{1,63}$/.test(text);

const who = {
  actors: v.optional(patterns),
  clients: v.optional(names),
  classes: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.check(isClassName, "is not a name of a-z, 0-9 and -, 63 at most"))),
      v.minLength(1),
    ),
  ),
};

const delegation = { allow: v.literal("delegation"), actors: patterns, maxChainDepth, ...exchange };
const impersonation = { allow: v.literal("impersonation"), ...who, ...exchange };

/** One rule; a field that its mode has no use for is an error. */
export const Rule = v.pipe(
  v.variant("allow", [
    v.strictObject({ allow: v.literal("client_credentials"), ...who, ...common, ...accessToken }),
    v.variant("issues", [
      v.strictObject({ ...delegation, ...asAccessToken }),
      v.strictObject({ ...delegation, ...asGrant }),
      v.strictObject({ ...impersonation, ...asAccessToken }),
      v.strictObject({ ...impersonation, ...asGrant }),
    ]),
    // A grant is meant for us and for its client by what it is.
    v.strictObject({
      allow: v.literal("redemption"),
      ...who,
      ...common,
      ...forWhom,
      ...accessToken,
      maxChainDepth,
    }),
  ]),
  v.check(
    (rule) => rule.allow === "delegation" || (rule.actors ?? rule.clients ?? rule.classes) !== undefined,
    "names neither actors, clients nor classes",
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
/** What a client asks for by each mode, and has to be registered for. */
export const GRANT_TYPES: Record<Mode, string> = {
  client_credentials: CLIENT_CREDENTIALS,
  delegation: TOKEN_EXCHANGE,
  impersonation: TOKEN_EXCHANGE,
  redemption: JWT_BEARER_GRANT,
};

/** Of whom there is a subject; and of these, those that exchange his token. */
export type SubjectRule = Exclude<Rule, { allow: "client_credentials" }>;
export type ExchangeRule = Exclude<SubjectRule, { allow: "redemption" }>;

/** Whom a rule names beside actors; a delegation shows its actor, so it names nobody else. */
export const clientsOf = (rule: Rule): readonly string[] | undefined =>
  rule.allow === "delegation" ? undefined : rule.clients;
export const classesOf = (rule: Rule): readonly string[] | undefined =>
  rule.allow === "delegation" ? undefined : rule.classes;

export const issuesGrants = (rule: Rule): boolean => "issues" in rule && rule.issues === "grant";

/** IDJAG-4.3-3: an identity assertion, unless the rule says otherwise (PROD-4.1-27). */
export const idJagSubjectsOf = (rule: ExchangeRule): readonly string[] =>
  (rule.issues === "grant" ? rule.idJagSubjects : undefined) ?? ["id_token"];

export const Target = v.variant(
  "kind",
  [ResourceServer, PartnerServer],
  'is neither "resource" nor "partner"',
);
export type TargetFile = v.InferOutput<typeof Target>;
/** In force; where it is an authorization server of another domain, it is a partner. */
export type Target = v.InferOutput<typeof ResourceServer> & { partner?: Partner };

// --- the set in force -------------------------------------------------------------------------------------------

export type PolicySet = {
  /** Names the rules and targets in force in every audit event (AUDIT-D-4). */
  digest: string;
  issuer: string;
  targets: ReadonlyMap<string, Target>;
  /**
   * Rules by mode and whom they name, and the same narrowed by target, which says whether they issue grants: ten
   * thousand cost no more than ten.
   */
  byWho: ReadonlyMap<string, readonly Rule[]>;
  byWhoAndTarget: ReadonlyMap<string, readonly Rule[]>;
  /** Of rules that name somebody and are alike in all but targets and scopes, one. */
  kinds: ReadonlyMap<string, ReadonlyMap<string, Rule>>;
};

/** In `subjectToken.audiences`: any target that the actor owns. */
export const SELF = "self";

/** A client, a class and a workload of one name are three: each is found only where a rule names its kind. */
type Who = readonly [kind: "actor" | "client" | "class", name: string];

// JSON, because a name may hold any character that could stand between two.
const whoKey = (mode: Mode, who: Who): string => JSON.stringify([mode, ...who]);
const targetKey = (mode: Mode, who: Who, target: Target): string =>
  JSON.stringify([mode, ...who, target.names[0]]);

/** Builds the index; every problem of the set comes back in plain words, with its path. */
export function compilePolicy(
  rules: readonly Rule[],
  targets: readonly TargetFile[],
  issuer: string,
  digest: string,
): Result<PolicySet, readonly string[]> {
  const problems: string[] = [];
  const byName = new Map<string, Target>();
  for (const file of targets) {
    const target = "partner" in file ? { ...file, partner: readPartner(file.partner) } : file;
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
    for (const { partner, names } of targetsOfRule) {
      // PROD-1.7-3, PROD-4.1v7-4: the kind of target decides what is issued there.
      if (issuesGrants(rule) === (partner !== undefined)) continue;
      const [issued, is] = issuesGrants(rule)
        ? ["grants", "a resource server"]
        : ["access tokens", "a partner"];
      problems.push(`policies: rule "${rule.id}" issues ${issued}, but its target "${names[0]}" is ${is}`);
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

/** Where clients or classes are named, the rule is found by them, and `actors` narrows it further. */
function namedBy(rule: Rule): readonly Who[] {
  const clients = (clientsOf(rule) ?? []).map((name): Who => ["client", name]);
  const classes = (classesOf(rule) ?? []).map((name): Who => ["class", name]);
  const named = [...clients, ...classes];
  return named.length > 0 ? named : (rule.actors ?? []).map((name) => ["actor", name]);
}

function add(index: Map<string, Rule[]>, key: string, rule: Rule): void {
  const rules = index.get(key);
  if (rules === undefined) index.set(key, [rule]);
  // A rule that names one thing twice comes here twice in a row.
  else if (rules.at(-1) !== rule) rules.push(rule);
}

export type Caller = { mode: Mode; clientId: string; workload?: string; registrationClass?: string };

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

/** Whether any rule at all names this caller. */
export function isNamed(policy: PolicySet, caller: Omit<Caller, "mode">): boolean {
  return (Object.keys(GRANT_TYPES) as Mode[]).some(
    (mode) => listsFor(policy, { ...caller, mode }).length > 0,
  );
}

/** Of every kind of rule that names this caller, one. */
export function kindsFor({ kinds }: PolicySet, caller: Caller): readonly Rule[] {
  return whoAsks(caller).flatMap((who) => [...(kinds.get(whoKey(caller.mode, who))?.values() ?? [])]);
}

const byId = (a: Rule, b: Rule): number => (a.id < b.id ? -1 : 1);

/** The keys under which rules may name this caller: itself, and each whole-segment prefix of it. */
function whoAsks({ clientId, workload, registrationClass }: Caller): readonly Who[] {
  const keys: Who[] = [["client", clientId]];
  if (registrationClass !== undefined) keys.push(["class", registrationClass]);
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

export function targetsOf({ targets }: PolicySet, rule: Rule): readonly Target[] {
  return [...new Set(rule.targets.flatMap((name) => targets.get(name) ?? []))];
}
