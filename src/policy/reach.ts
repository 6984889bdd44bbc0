/**
 * What could ever come of a policy (REACH-D-1): each token that some order of requests leads to, whatever the trusted
 * issuers sign and the users consent to. Rules only allow, so the tokens are the least set that is closed under every
 * request; each request is decided as the token endpoint decides it.
 */
import { MODES } from "../modes.ts";
import { matchesPattern } from "../spec/spiffe/id.ts";
import type { Origin } from "./access.ts";
import { apiAudience } from "./own-target.ts";
import {
  type Exhibit,
  FAR_SECONDS,
  mover,
  type Obtained,
  type Pair,
  pairOf,
  type ReachCaller,
  type Step,
  type World,
} from "./reach-moves.ts";
import { hasSubject } from "./rules.ts";

export type Search = {
  /** Tokens are traced of which one of these callers made some request. */
  isActor?: (caller: ReachCaller) => boolean;
  /** The most requests in a row; without it, any number. */
  depthMax?: number;
};

export type ReachResult = {
  /** For each caller, subject and target the tokens with the most scopes, found by the fewest requests. */
  grants: readonly Obtained[];
  /** The tokens that cover every token that can exist: the certificate of what is not reached. */
  tokens: readonly Obtained[];
};

// --- the search -------------------------------------------------------------------------------------------------

export function searchReach(world: World, { isActor, depthMax = FAR_SECONDS }: Search = {}): ReachResult {
  const { policy, outsiders } = world;
  const pairs = indexPairs(world);
  const anySubs = new Map(outsiders.map(({ iss, any }) => [iss, any]));
  const isAny = ({ iss, sub }: Origin): boolean => anySubs.get(iss) === sub;
  const kept = keeper((iss) => anySubs.get(iss));
  const grants = new Map<ReachCaller, Map<string, Obtained[]>>();
  const queue: Obtained[] = [];
  const moves = mover(world, isActor ?? (() => false));

  const add = (found: Obtained): void => {
    const { caller } = found.step;
    const key = keyOf(found);
    const ofCaller = grants.get(caller) ?? new Map<string, Obtained[]>();
    const known = ofCaller.get(key) ?? [];
    const isTold = known.some(
      (one) => one.isTraced === found.isTraced && includesAll(one.scopes, found.scopes),
    );
    if (!isTold) grants.set(caller, ofCaller.set(key, [...known, found]));
    if (kept.add(found, key)) queue.push(found);
  };
  const go = (of: readonly Pair[] = [], evidence?: Exhibit): void => {
    for (const found of moves(of, evidence)) add(found);
  };
  const expand = (evidence: Exhibit): void => {
    const { brings, origin } = evidence;
    const key = `${brings} ${origin.iss}`;
    go(pairs.everyone.get(key), evidence);
    const bySub = pairs.named.get(key) ?? new Map<string, Pair[]>();
    // What every subject of an issuer can get, the one can that a rule names.
    const standsFor = isAny(origin) ? outsiders.find(({ iss }) => iss === origin.iss)?.subs : undefined;
    if (standsFor === undefined) go(bySub.get(origin.sub), evidence);
    else
      for (const [sub, of] of bySub)
        if (standsFor.has(sub)) go(of, { ...evidence, origin: { iss: origin.iss, sub } });
  };

  go(pairs.alone);
  for (const one of outsiders) {
    const subs = one.any === undefined ? [...one.subs.keys()] : [one.any];
    for (const brings of one.brings) {
      for (const sub of subs) expand({ origin: { iss: one.iss, sub }, outsiders: one, brings });
    }
  }
  for (const token of queue) {
    const { target, depth, origin } = token;
    // PROD-5r4-1: a token for our own endpoints is never exchanged, and a grant is redeemed elsewhere.
    const ends = target.partner !== undefined || target.names.includes(apiAudience(policy.issuer));
    if (!ends && depth < depthMax && !kept.isCovered(token))
      expand({ origin, token, brings: "subject_token" });
  }
  return { grants: [...grants.values()].flatMap((of) => [...of.values()].flat()), tokens: kept.all() };
}

/** The rules with their callers, by what they are asked with and by whom they are for. */
function indexPairs({ callersOf }: World) {
  const alone: Pair[] = [];
  const everyone = new Map<string, Pair[]>();
  const named = new Map<string, Map<string, Pair[]>>();
  for (const [rule, callers] of callersOf) {
    const pairs = callers.map((caller) => pairOf(rule, caller));
    if (!hasSubject(rule)) {
      alone.push(...pairs);
      continue;
    }
    const { issuers, subs } = rule.subjects;
    for (const iss of new Set(issuers)) {
      const key = `${MODES[rule.allow].brings} ${iss}`;
      if (subs === undefined) push(everyone, key, pairs);
      else {
        const bySub = named.get(key) ?? new Map<string, Pair[]>();
        named.set(key, bySub);
        for (const sub of new Set(subs)) push(bySub, sub, pairs);
      }
    }
  }
  return { alone, everyone, named };
}

function push<T>(index: Map<string, T[]>, key: string, more: readonly T[]): void {
  const list = index.get(key);
  if (list === undefined) index.set(key, [...more]);
  else for (const one of more) list.push(one);
}

// --- what covers what -------------------------------------------------------------------------------------------

const includesAll = (list: readonly string[], part: readonly string[]): boolean =>
  part.every((one) => list.includes(one));

const keyOf = ({ origin: { iss, sub }, target, mayAct }: Obtained, as = sub): string =>
  `${iss}\n${as}\n${target.names[0]}\n${mayAct}`;

/** Whether everything that comes of `other` also comes of `one`. */
const covers = (one: Obtained, other: Obtained): boolean =>
  one.hops <= other.hops &&
  (!one.inJob || other.inJob) &&
  (one.isTraced || !other.isTraced) &&
  (one.boundTo === undefined || one.boundTo === other.boundTo) &&
  includesAll(one.scopes, other.scopes);

/** Keeps the tokens that no other one covers; `anyOf` is the `sub` that stands for every subject of an issuer. */
function keeper(anyOf: (iss: string) => string | undefined) {
  const byKey = new Map<string, Obtained[]>();
  const near = (token: Obtained, key: string): readonly Obtained[] => {
    const own = byKey.get(key) ?? [];
    const any = anyOf(token.origin.iss);
    if (any === undefined || any === token.origin.sub) return own;
    return [...own, ...(byKey.get(keyOf(token, any)) ?? [])];
  };
  const isCovered = (token: Obtained, key = keyOf(token)): boolean =>
    near(token, key).some((one) => one !== token && covers(one, token));
  return {
    isCovered,
    add(token: Obtained, key: string): boolean {
      if (isCovered(token, key)) return false;
      byKey.set(key, [...(byKey.get(key) ?? []).filter((one) => !covers(token, one)), token]);
      return true;
    },
    all: (): readonly Obtained[] => [...byKey.values()].flat().filter((one) => !isCovered(one)),
  };
}

/** Whether the actor that is asked for, by its name or by a prefix, is or stands for this caller. */
export const isNamedBy =
  (asked: string) =>
  ({ label, clientId, workload }: ReachCaller): boolean =>
    [clientId, workload, label].some((one) => one !== undefined && matchesPattern(asked, one));

/** The requests that lead to a token, oldest first. */
export const stepsTo = ({ step }: Obtained): readonly Step[] => [
  ...(step.subject !== undefined && "step" in step.subject ? stepsTo(step.subject) : []),
  step,
];
