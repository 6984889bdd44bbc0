/**
 * The closure report of a job (JOB-D-20): what is refused from now on, and what may still be accepted elsewhere, where and
 * until when, since a server that verifies offline is told, asks, or learns nothing. Nothing unresolved reads as closed.
 */
import { STORE_TIMEOUT_MS } from "../limits/store.ts";
import type { Origin } from "./access.ts";
import { type Caller, type PolicySet, type SubjectRule, subjectRules, type Target } from "./rules.ts";

/**
 * The tokens of the job for one audience that have not expired, ended ones too; `recent` has those beside them that
 * expired so lately that what a partner gave for one may live.
 */
export type LivingTokens = { audience: string; count: number; recent: number; untilSeconds: number };

/** A stream that is told of the job's end, and whether an event of it still waits for its receiver. */
export type ToldStream = { targets: ReadonlySet<string>; isWaiting: boolean };

export type ClosureFacts = {
  job: { notAfterSeconds: number; targets?: readonly string[] };
  /** When it was stopped; absent where its time ended it. */
  endedMs?: number;
  living: readonly LivingTokens[];
  streams: readonly ToldStream[];
  nowMs: number;
};

/**
 * How a server learns of the end: its stream acknowledged it, or is sent it; it asks at each use; or it learns nothing.
 */
type Told = "acknowledged" | "sent" | "introspects" | "never";

export type OpenTarget = { target: string; tokens: number; untilSeconds: number; told: Told };
export type OpenPartner = { issuer: string; grants: number; untilSeconds: number; told: Told };

export type Closure = {
  state: "closed" | "partial" | "unknown";
  settled: boolean;
  open: readonly OpenTarget[];
  partners: readonly OpenPartner[];
};

export function buildClosure({ targets }: Pick<PolicySet, "targets">, facts: ClosureFacts): Closure {
  const { job, endedMs, living, streams, nowMs } = facts;
  // JOB-D-22: what another instance writes beside the stop may be signed and out, and is counted by the next reading.
  const settled = endedMs === undefined || nowMs >= endedMs + STORE_TIMEOUT_MS;
  const open: OpenTarget[] = [];
  const partners: OpenPartner[] = [];
  for (const { audience, count, recent, untilSeconds } of living) {
    const target = targets.get(audience);
    const told = toldOf(target, audience, streams);
    const { partner } = target ?? {};
    // JOB-D-17: what a partner gives for a grant may last longer than the grant, and as long as the job would have.
    if (partner !== undefined && 1000 * job.notAfterSeconds > nowMs)
      partners.push({ issuer: partner.issuer, grants: recent, untilSeconds: job.notAfterSeconds, told });
    if (partner === undefined && count > 0)
      open.push({ target: audience, tokens: count, untilSeconds, told });
  }
  // JOB-D-21: a target that asks refuses at once, as one does that acknowledged the end.
  const isOpen = ({ told }: { told: Told }): boolean => told === "sent" || told === "never";
  const isPartial = !settled || [...open, ...partners].some(isOpen);
  const mayGoOn = reached(targets, job.targets).some(({ partner }) => partner?.jobs === "ignores");
  return { state: isPartial ? "partial" : mayGoOn ? "unknown" : "closed", settled, open, partners };
}

function toldOf(target: Target | undefined, audience: string, streams: readonly ToldStream[]): Told {
  const theirs = streams.filter(({ targets }) => targets.has(audience));
  if (theirs.length > 0) return theirs.some(({ isWaiting }) => isWaiting) ? "sent" : "acknowledged";
  return target?.checks === "introspection" ? "introspects" : "never";
}

/** The targets that the job could reach: its grants are on record for a while only. */
const reached = (targets: PolicySet["targets"], names: readonly string[] | undefined): readonly Target[] =>
  names === undefined ? [...targets.values()] : names.flatMap((name) => targets.get(name) ?? []);

/**
 * JOB-D-23: the rules by which the agent goes on for this subject without a job, and without a consent that anyone could
 * withdraw: an operator alone ends that.
 */
export function unaskedRules(
  policy: PolicySet,
  origin: Origin,
  caller: Omit<Caller, "mode">,
): readonly SubjectRule[] {
  return subjectRules(policy, origin, caller).filter(
    ({ consent, jobs }) => consent !== "record" && jobs !== "required",
  );
}
