/**
 * One request of the search for what a policy lets be reached (REACH-D-1): a caller presents nothing, a token from
 * elsewhere or one of ours, and the policy decides as at the token endpoint.
 */
import { type Brought, MODES, type Mode } from "../modes.ts";
import { defined } from "../result.ts";
import { mapSubjectThere } from "../spec/identity-chaining.ts";
import { prefixesOver } from "../spec/spiffe/id.ts";
import type { AccessRequest, Allowed, Consent, JobInForce, Origin, ProvenKeys, Subject } from "./access.ts";
import { decide } from "./decide.ts";
import { scopesAt, unmet } from "./judge.ts";
import { consentOf, isFor, type PolicySet, type Rule, SELF, type Target, targetsOf } from "./rules.ts";

/** A caller, or one that stands for all with names that the policy does not tell apart; `label` is the pattern then. */
export type ReachCaller = Pick<
  AccessRequest,
  "clientId" | "workload" | "registrationClass" | "clientScopes" | "bindsBy" | "forWorkload"
> & { label: string };

/** The subjects of an issuer that this server trusts, with what they can bring. */
export type Outsiders = {
  iss: string;
  brings: readonly Brought[];
  tokenType: Subject["tokenType"];
  /** The audience by which a token is meant for this server. */
  audience: string;
  /** A `sub` that no rule names, which stands for every subject of the issuer; absent where there is none. */
  any?: string;
  /** The others by `sub`, each with its name here. */
  subs: ReadonlyMap<string, string>;
};

export type World = {
  policy: PolicySet;
  callersOf: ReadonlyMap<Rule, readonly ReachCaller[]>;
  outsiders: readonly Outsiders[];
  /** By what callers can prove keys. */
  proofs: readonly Proof[];
};

type Proof = "dpop" | "certificate";

/** One request, with what is presented: a token that an earlier request gave, or one from elsewhere. */
export type Step = {
  caller: ReachCaller;
  mode: Mode;
  rule: string;
  subject: Obtained | Subject | undefined;
  target: string;
  scope: readonly string[];
  /** Whether the subject has to consent before. */
  needsConsent: boolean;
  /** Whether it has to be in a job. */
  inJob: boolean;
  proof: Proof | undefined;
};

/** A token that can exist. That the chain has few hops, no job and no key is more than the opposite. */
export type Obtained = {
  origin: Origin;
  target: Target;
  scopes: readonly string[];
  hops: number;
  inJob: boolean;
  /** The one party that may exchange it. */
  mayAct: string | undefined;
  boundTo: string | undefined;
  /** Whether the traced actor made one of the requests behind it. */
  isTraced: boolean;
  step: Step;
  depth: number;
};

const NOW_SECONDS = 0;
export const FAR_SECONDS = Number.MAX_SAFE_INTEGER;
const JOB: JobInForce = { id: "job", bounds: { notAfterSeconds: FAR_SECONDS } };

/** What is presented with the origin of its subject: one of ours, or a token from elsewhere. */
export type Exhibit = { origin: Origin; token?: Obtained; outsiders?: Outsiders; brings: Brought };
/** A rule with one of its callers, and the request that this one would make. */
export type Pair = { rule: Rule; caller: ReachCaller; party: string; request: AccessRequest };

export const partyOf = ({ workload, clientId }: Pick<ReachCaller, "workload" | "clientId">): string =>
  workload ?? clientId;

export function pairOf(rule: Rule, caller: ReachCaller): Pair {
  const { label: _, ...as } = caller;
  const party = partyOf(caller);
  const request = { mode: rule.allow, scope: rule.scopes, consents: [], nowSeconds: NOW_SECONDS };
  return { rule, caller, party, request: { ...as, ...request, keys: keysOf(party) } };
}

// --- one request ------------------------------------------------------------------------------------------------

/** What comes of these requests, each decided as the token endpoint would. */
export function mover(world: World, isActor: (caller: ReachCaller) => boolean) {
  const theirs = foreignSubjects(world);
  return function* moves(pairs: readonly Pair[], evidence?: Exhibit): Generator<Obtained> {
    const { token } = evidence ?? {};
    const own = evidence && token && ownSubjects(world.policy.issuer, { ...token, origin: evidence.origin });
    for (const pair of pairs) {
      if (token !== undefined && !mayUse(token, pair)) continue;
      const subjects = own ?? (evidence ? theirs(pair, evidence) : [undefined]);
      for (const subject of subjects) {
        const request = subject === undefined ? pair.request : { ...pair.request, subject };
        if (unmet(world.policy, request, pair.rule) !== undefined) continue;
        const traced = token?.isTraced === true || isActor(pair.caller);
        for (const target of targetsOf(world.policy, pair.rule))
          yield* movesTo(world, pair, request, target, token, traced);
      }
    }
  };
}

/** Our token, by each name of its target. */
function ownSubjects(issuer: string, token: Obtained): readonly Subject[] {
  const { origin, target, scopes, hops, mayAct, boundTo } = token;
  // How many hops there are counts, and not which.
  const chain = Array.from({ length: hops }, () => ({ iss: issuer, sub: "-" }));
  return target.names.map((name) =>
    defined<Subject>({
      tokenType: target.transaction === undefined ? "access_token" : "txn_token",
      replaced: replacedBefore(token),
      origin,
      audiences: [name],
      scopes,
      expiresAtSeconds: FAR_SECONDS,
      chain,
      issuer,
      mayAct: mayAct === undefined ? undefined : { sub: mayAct, iss: issuer },
      boundTo: boundTo === undefined ? undefined : confirmationOf(boundTo),
      claims: "assumed",
    }),
  );
}

/** How many tokens of its trust domain came before a transaction token. */
function replacedBefore({ target, step: { subject } }: Obtained): number | undefined {
  if (target.transaction === undefined) return undefined;
  return subject !== undefined && "step" in subject ? (replacedBefore(subject) ?? -1) + 1 : 0;
}

/** A token from elsewhere, with everything that the rule wants of it. */
function foreignSubjects({ policy, callersOf }: World) {
  const owned = ownedBy(policy);
  const mayActRules = [...callersOf].filter(([rule]) => consentOf(rule) === "may_act");
  const named = new Set(mayActRules.flatMap(([, callers]) => callers.map(partyOf)));
  return ({ rule, caller, party }: Pair, { origin, outsiders, brings }: Exhibit): readonly Subject[] => {
    if (outsiders === undefined) return [];
    const { audiences = [], scopes = [] } = isFor(rule, "subject_token") ? rule.subjectToken : {};
    const usable = audiences.find((one) => one !== SELF) ?? owned(caller.workload);
    const subject = defined<Subject>({
      tokenType: brings === "subject_token" ? outsiders.tokenType : brings === "grant" ? "grant" : "code",
      origin,
      audiences: [...new Set([outsiders.audience, usable ?? outsiders.audience, caller.clientId])],
      scopes: [...new Set([...rule.scopes, ...scopes, ...neededBy(policy, rule)])],
      expiresAtSeconds: FAR_SECONDS,
      chain: [],
      issuer: outsiders.iss,
      // REACH-D-6: its issuer may say of it what a rule demands.
      claims: "assumed",
      signIn: isFor(rule, "code") ? defined({ acr: rule.acr?.[0], authTimeSeconds: NOW_SECONDS }) : undefined,
    });
    const withMayAct = { ...subject, mayAct: { sub: party, iss: policy.issuer } };
    return brings !== "code" && named.has(party) ? [subject, withMayAct] : [subject];
  };
}

/** The scopes that the purposes of the rule need. */
const neededBy = (policy: PolicySet, rule: Rule): readonly string[] =>
  targetsOf(policy, rule).flatMap(({ transaction }) =>
    rule.scopes.flatMap((one) => transaction?.purposes.get(one) ?? []),
  );

function* movesTo(
  world: World,
  { rule, caller, party }: Pair,
  request: AccessRequest,
  target: Target,
  token: Obtained | undefined,
  isTraced: boolean,
): Generator<Obtained> {
  const { subject } = request;
  const us = world.policy.issuer;
  const from = subject?.origin ?? { iss: us, sub: caller.forWorkload ? party : caller.clientId };
  const { chain } = MODES[rule.allow];
  const mayAct = chain === "hidden" ? undefined : subject?.mayAct?.sub;
  const [name = ""] = target.names;
  const consents = subject === undefined ? [] : [consentTo(from, party, target)];
  const scope = askedAt(target, request);
  const tried = defined<AccessRequest>({ ...request, scope, target: name, consents });
  for (const { allowed, inJob, proof } of allowedBy(world, rule, tried, token?.inJob ?? false)) {
    const step: Step = {
      caller,
      mode: rule.allow,
      rule: allowed.rule.id,
      subject: token ?? subject,
      target: name,
      scope: allowed.scope,
      needsConsent: consentOf(allowed.rule) === "record",
      inJob,
      proof,
    };
    for (const origin of knownAt(world, target, from)) {
      yield {
        origin,
        target,
        scopes: allowed.scope,
        hops: chain === "hidden" ? 0 : (token?.hops ?? 0) + (chain === "grows" ? 1 : 0),
        inJob,
        mayAct: typeof mayAct === "string" ? mayAct : undefined,
        boundTo: boundToOf(allowed, party),
        // REACH-D-6: the hand of the actor in any request of the way counts.
        isTraced,
        depth: (token?.depth ?? 0) + 1,
        step,
      };
    }
  }
}

/** TXN-D-4: one purpose too many refuses a request, so it has those that the subject token permits. */
const askedAt = (target: Target, { scope, subject, clientScopes }: AccessRequest) =>
  target.transaction === undefined || subject === undefined
    ? scope
    : scopesAt(target, subject).filter(
        (one) => target.scopes.includes(one) && scope?.includes(one) && clientScopes?.includes(one) !== false,
      );

type Found = { allowed: Allowed; inJob: boolean; proof: Proof | undefined };

/** Without key and job first, as such a token can do more, until the rule itself decides; where others do, it may give more yet. */
function allowedBy(
  { policy, proofs }: World,
  rule: Rule,
  request: AccessRequest,
  inJob: boolean,
): readonly Found[] {
  const { jkt, certificate } = keysOf(partyOf(request));
  const found: Found[] = [];
  for (const job of inJob ? [true] : [false, true]) {
    for (const proof of [undefined, ...proofs]) {
      const keys = proof === undefined ? {} : proof === "dpop" ? { jkt } : { certificate };
      const got = decide(policy, job ? { ...request, keys, job: JOB } : { ...request, keys });
      if (!got.ok) continue;
      found.push({ allowed: got.value, inJob: job, proof });
      // The other proof gives a token that is bound to another kind of key.
      if (got.value.rule === rule && got.value.confirmation === undefined) return found;
    }
    if (found.some(({ allowed }) => allowed.rule === rule)) return found;
  }
  return found;
}

/** A subject without a name at the partner gets no grant; of all of an issuer, those that have one do. */
function knownAt({ outsiders }: World, { partner }: Target, origin: Origin): readonly Origin[] {
  const { subjects = "keep" } = partner ?? {};
  if (typeof subjects === "string" || "prefix" in subjects) return [origin];
  const { iss, sub } = origin;
  const { any, subs } = outsiders.find((one) => one.iss === iss) ?? {};
  const all = any === sub ? [...(subs ?? [])] : [[sub, subs?.get(sub) ?? sub] as const];
  return all.flatMap(([one, here]) => (mapSubjectThere(here, subjects).ok ? [{ iss, sub: one }] : []));
}

/** Of a token that one party alone may use, only the requests of that party are tried. */
const mayUse = ({ mayAct, boundTo }: Obtained, { rule, party }: Pair): boolean =>
  (mayAct === undefined || mayAct === party) &&
  (boundTo === undefined || "boundSubject" in rule || boundTo.endsWith(` ${party}`));

const consentTo = (origin: Origin, actor: string, { names: targets, scopes }: Target): Consent => ({
  id: "given",
  version: 1,
  origin,
  actor,
  targets,
  scopes,
});

const keysOf = (party: string): Required<ProvenKeys> => ({
  jkt: party,
  certificate: { x5t: party, notAfterSeconds: FAR_SECONDS },
});

/** The key as one text, which ends with the party that has it. */
const boundToOf = ({ confirmation }: Allowed, party: string): string | undefined =>
  confirmation && `${"jkt" in confirmation ? "jkt" : "x5t#S256"} ${party}`;

function confirmationOf(boundTo: string): NonNullable<Subject["boundTo"]> {
  const party = boundTo.slice(boundTo.indexOf(" ") + 1);
  return boundTo.startsWith("jkt ") ? { jkt: party } : { "x5t#S256": party };
}

/** The name of a target that a workload owns. */
function ownedBy({ targets }: PolicySet): (workload: string | undefined) => string | undefined {
  const byOwner = new Map<string, string>();
  for (const { owners, names } of targets.values())
    for (const one of owners) byOwner.set(one, names[0] ?? "");
  return (workload) =>
    workload === undefined
      ? undefined
      : [workload, ...prefixesOver(workload)].map((one) => byOwner.get(one)).find((one) => one !== undefined);
}
