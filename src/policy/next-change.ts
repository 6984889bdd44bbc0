/** What would have to be otherwise for the one thing that a refusal names first (CHANGE-D-1): a member of what is asked or configured. */
import { ACT_HOPS_MAX, TOKEN_SECONDS_MIN } from "../limits/tokens.ts";
import { MODES } from "../modes.ts";
import { defined } from "../result.ts";
import type { Json } from "../spec/rfc8259.ts";
import type { Condition, Denied, Fallen, Subject } from "./access.ts";
import type { AskedRequest } from "./decision.ts";
import { meantForCaller } from "./judge.ts";
import {
  allowsRefresh,
  candidates,
  classesOf,
  clientsOf,
  idJagSubjectsOf,
  isFor,
  type PolicySet,
  type Rule,
  type Target,
} from "./rules.ts";

/** One part of a change: a member of one thing gets a value more, is another one, or is left away (null). */
export type ChangePart = {
  at: "request" | "consent" | "subject_token" | "sign_in" | "job" | "client" | "rule" | "target";
  /** The rule or target. */
  of?: string;
  path: readonly string[];
  adds?: string;
  is?: Json;
};

/** The members of a request and of a token by the names that they have on the wire. */
export const ON_THE_WIRE: Readonly<Record<string, string>> = {
  audiences: "aud",
  clientScopes: "scope",
  details: "authorization_details",
  expiresAtSeconds: "exp",
  mayAct: "may_act",
  requestedType: "requested_token_type",
  resources: "resource",
  scopes: "scope",
};

type Lack = {
  policy: PolicySet;
  asked: AskedRequest;
  rule: Rule;
  /** The one that is asked for, where there is one. */
  target: Target | undefined;
  /** The caller as rules name an actor, or else a client. */
  party: string;
  fallen: readonly Fallen[];
};

/** One change to what the refusal names first; `rule` is the one rule of the policy. */
export function nextPart(
  policy: PolicySet,
  rule: Rule,
  asked: AskedRequest,
  denied: Denied,
): ChangePart | undefined {
  const target = asked.target === undefined ? undefined : policy.targets.get(asked.target);
  const [judged] = denied.trace;
  const { fallen = [] } = judged ?? {};
  const party = asked.workload ?? asked.clientId;
  const lack: Lack = { policy, asked, rule, target, party, fallen };
  if (judged?.failed !== undefined) return CONDITIONS[judged.failed]?.(lack);
  const before = REASONS[denied.reason];
  if (before !== undefined) return before(lack);
  if (candidates(policy, asked).length === 0) return nameCaller(lack);
  if (target === undefined) return nameTarget(lack);
  return ofRule(rule, ["targets"], { adds: target.names[0] ?? "" });
}

const ofRule = ({ id }: Rule, path: readonly string[], to: Pick<ChangePart, "adds" | "is">): ChangePart => ({
  at: "rule",
  of: id,
  path,
  ...to,
});
const change = (
  at: ChangePart["at"],
  path: readonly string[],
  to: Pick<ChangePart, "adds" | "is" | "of">,
): ChangePart => ({ at, path, ...to });

/** For a client without one: a workload that the rule names, and that is not the subject. */
function haveWorkload({ rule: { actors = [] }, asked: { subject } }: Lack): ChangePart | undefined {
  const is = actors
    .map((one) => (one.endsWith("/*") ? `${one.slice(0, -1)}agent` : one))
    .find((one) => one !== subject?.origin.sub);
  return is === undefined ? undefined : change("client", ["workload"], { is });
}

const nameTarget = ({ rule, asked, policy }: Lack): ChangePart | undefined => {
  const [first = ""] = rule.targets;
  const name = policy.targets.get(first)?.names[0] ?? first;
  return asked.target === name ? undefined : change("request", ["target"], { is: name });
};

/** The caller among those that the rule names, by the members that it has. */
function nameCaller(lack: Lack): ChangePart | undefined {
  const { workload, clientId } = lack.asked;
  const { rule } = lack;
  if (clientsOf(rule) !== undefined || classesOf(rule) !== undefined)
    return ofRule(rule, ["clients"], { adds: clientId });
  return workload === undefined ? haveWorkload(lack) : ofRule(rule, ["actors"], { adds: workload });
}

const leaveDetails = ({ asked }: Lack): ChangePart | undefined =>
  asked.details === undefined ? undefined : change("request", ["details"], { is: null });

const proveKey = (): ChangePart => change("request", ["keys"], { is: "assumed" });

const nameInToken = ({ party, policy }: Lack): ChangePart =>
  change("subject_token", ["mayAct"], { is: { sub: party, iss: policy.issuer } });

function haveClaims(): ChangePart {
  return change("subject_token", ["claims"], { is: "assumed" });
}

type Next = (lack: Lack) => ChangePart | undefined;

/** What is refused before a rule is judged. */
const REASONS: Partial<Record<Denied["reason"], Next>> = {
  actor_without_workload: haveWorkload,
  actor_is_subject: () => undefined,
  may_act_names_another: nameInToken,
  not_meant_for_caller: ({ party }) => change("subject_token", ["audiences"], { adds: party }),
  subject_key_not_proven: proveKey,
  target_unknown: nameTarget,
  target_missing: nameTarget,
  target_is_partner: nameTarget,
  scope_ambiguous: nameTarget,
  token_type_not_for_target: () => change("request", ["requestedType"], { is: null }),
  resource_not_allowed: () => change("request", ["resources"], { is: null }),
  client_unknown_at_partner: ({ target, asked }) =>
    change("target", ["partner", "clients", asked.clientId], {
      of: target?.names[0] ?? "",
      is: asked.clientId,
    }),
  subject_unknown_at_partner: ({ target, asked }) =>
    change("target", ["partner", "subjects", "table", asked.sub], {
      of: target?.names[0] ?? "",
      is: asked.sub,
    }),
  job_not_approved: () => change("job", ["approved"], { is: true }),
  details_type_unknown: leaveDetails,
  details_type_not_registered: leaveDetails,
  details_exceed_subject_token: leaveDetails,
};

/** What a rule lacks. */
const CONDITIONS: Partial<Record<Condition, Next>> = {
  actor: (lack) => {
    const { rule, asked } = lack;
    const { workload, clientId, forWorkload } = asked;
    if (workload === undefined) return haveWorkload(lack);
    if (forWorkload && rule.actors !== undefined && clientsOf(rule) === undefined)
      return ofRule(rule, ["clients"], { adds: clientId });
    return ofRule(rule, ["actors"], { adds: workload });
  },
  claims_absent: haveClaims,
  claims_unreadable: haveClaims,
  claims_overage: haveClaims,
  claims_too_old: haveClaims,
  claims_differ: haveClaims,
  subject_issuer: ({ rule, asked: { subject } }) =>
    subject && ofRule(rule, ["subjects", "issuers"], { adds: subject.origin.iss }),
  subject: ({ rule, asked: { subject } }) =>
    subject && ofRule(rule, ["subjects", "subs"], { adds: subject.origin.sub }),
  subject_token: (lack) => lack.asked.subject && permitToken(lack, lack.asked.subject),
  subject_key: proveKey,
  sign_in: ({ rule, asked }) => {
    const acr = "acr" in rule ? rule.acr?.[0] : undefined;
    return change("sign_in", ["signIn"], { is: defined({ acr, authTimeSeconds: asked.nowSeconds }) as Json });
  },
  pushed: () => change("request", ["pushed"], { is: true }),
  job: fitJob,
  consent: (lack) => (lack.asked.subject === undefined ? undefined : giveConsent(lack)),
  chain_depth: ({ rule, asked: { job, subject } }) => {
    if (job?.bounds.maxDepth !== undefined) return change("job", ["maxDepth"], { is: null });
    const hops = (subject?.chain.length ?? 0) + (MODES[rule.allow].chain === "grows" ? 1 : 0);
    return hops > ACT_HOPS_MAX ? undefined : ofRule(rule, ["maxChainDepth"], { is: hops });
  },
  binding: proveKey,
  binding_conflict: ({ asked: { bindsBy = [] }, target }) =>
    bindsBy.includes("dpop") && target?.binding === "certificate"
      ? change("client", ["bindsBy"], { is: null })
      : proveKey(),
  lifetime: ({ asked, rule }) => lastLonger(asked, rule),
  scope: haveScope,
  details_type: ({ rule, asked: { subject }, target }) => {
    const type = subject?.details?.find((one) => target?.details.has(one.type) === false)?.type;
    return type === undefined ? undefined : ofRule(rule, ["lapses"], { adds: type });
  },
  details: (lack) => {
    const { rule } = lack;
    const member = (["demands", "details"] as const).find((name) => rule[name] !== undefined);
    return leaveDetails(lack) ?? (member && ofRule(rule, [member], { is: null }));
  },
};

function permitToken({ policy, rule, party, asked }: Lack, subject: Subject): ChangePart | undefined {
  if (subject.tokenType === "refresh_token" && !allowsRefresh(rule))
    return ofRule(rule, ["refresh"], { is: true });
  if (!isFor(rule, "subject_token")) return undefined;
  const kinds = idJagSubjectsOf(rule);
  if (asked.requestedType === "id-jag" && !kinds.includes(subject.tokenType))
    return ofRule(rule, ["idJagSubjects"], { is: [...kinds, subject.tokenType] });
  const { audiences = [] } = rule.subjectToken;
  const meant = subject.audiences.find((one) =>
    meantForCaller(policy, asked, { ...subject, audiences: [one] }),
  );
  return meant === undefined
    ? change("subject_token", ["audiences"], {
        adds: audiences.includes(policy.issuer) ? policy.issuer : party,
      })
    : ofRule(rule, ["subjectToken", "audiences"], { adds: meant });
}

function fitJob({ rule, party, target, policy, asked: { job } }: Lack): ChangePart | undefined {
  if (job === undefined || rule.jobs === "never") return ofRule(rule, ["jobs"], { is: "optional" });
  const { agents, targets } = job.bounds;
  if (agents?.includes(party) === false) return change("job", ["agents"], { adds: party });
  if (targets?.some((name) => policy.targets.get(name) === target) === false)
    return change("job", ["targets"], { adds: target?.names[0] ?? "" });
  return ofRule(rule, ["acknowledgeJob"], { is: "job-ends-here" });
}

/** What was asked for, as far as the other sides have it; at least one scope. */
function giveConsent(lack: Lack): ChangePart | undefined {
  const { rule, target, asked } = lack;
  if ("consent" in rule && rule.consent === "may_act") return nameInToken(lack);
  const known = rule.scopes.filter((one) => target?.scopes.includes(one));
  const wanted = asked.scope ?? asked.subject?.scopes ?? known;
  const both = known.filter((one) => wanted.includes(one));
  const adds = (both.length > 0 ? both : known.slice(0, 1)).join(" ");
  return adds === "" || target === undefined
    ? knowScope(rule, target)
    : change("consent", ["scopes"], { of: target.names[0] ?? "", adds });
}

function lastLonger(asked: AskedRequest, rule: Rule): ChangePart | undefined {
  const { nowSeconds, subject, job, endsAtSeconds } = asked;
  const isShort = (ends: number | undefined): boolean =>
    ends !== undefined && ends - nowSeconds < TOKEN_SECONDS_MIN;
  const is = nowSeconds + rule.lifetimeSeconds;
  if (isShort(subject?.expiresAtSeconds)) return change("subject_token", ["expiresAtSeconds"], { is });
  if (isShort(job?.bounds.notAfterSeconds)) return change("job", ["notAfterSeconds"], { is });
  return isShort(endsAtSeconds) ? change("client", ["endsAtSeconds"], { is: null }) : proveKey();
}

/** For a rule that has none of the scopes of the target. */
const knowScope = (rule: Rule, target: Target | undefined): ChangePart | undefined =>
  target?.scopes[0] === undefined ? undefined : ofRule(rule, ["scopes"], { adds: target.scopes[0] });

const SIDES: readonly Fallen["at"][] = ["subject_token", "client", "rule", "target", "job", "consent"];

/** The scope that came furthest, at the side where it fell. */
function haveScope({ rule, target, asked, fallen }: Lack): ChangePart | undefined {
  const [scope] = fallen.toSorted((a, b) => SIDES.indexOf(b.at) - SIDES.indexOf(a.at));
  if (scope === undefined) {
    const one = rule.scopes.find((name) => target?.scopes.includes(name));
    if (one === undefined) return knowScope(rule, target);
    return asked.subject?.scopes.length === 0 && asked.scope === undefined
      ? change("subject_token", ["scopes"], { adds: one })
      : change("request", ["scope"], { is: [one] });
  }
  const { scope: adds } = scope;
  switch (scope.at) {
    case "subject_token":
      return change("subject_token", ["scopes"], { adds });
    case "client":
      return change("client", ["clientScopes"], { adds });
    case "rule":
      return ofRule(rule, ["scopes"], { adds });
    case "target":
      return change("target", ["scopes"], { of: target?.names[0] ?? "", adds });
    case "job":
      return change("job", ["scopes"], { adds });
    case "consent":
      return change("consent", ["scopes"], { of: target?.names[0] ?? "", adds });
  }
}
