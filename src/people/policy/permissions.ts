/**
 * What a user gives, pair by pair: a permission is a scope at a target, within the objects of details. From one list come
 * the sentences and boxes of a page, and from the ticked boxes the consents and the bounds of a job, so that what is shown
 * is what is given (PAGE-D-35).
 */
import type { AccessRequest, Consent, JobBounds, Origin } from "../../policy/access.ts";
import { namedAgent, proposedJob } from "../../policy/jobs.ts";
import { fitsJob, inForceOf } from "../../policy/judge.ts";
import { isWider } from "../../policy/redundant.ts";
import {
  type Caller,
  isFor,
  type PolicySet,
  type Rule,
  type SubjectRule,
  subjectRules,
  type Target,
} from "../../policy/rules.ts";
import type { Worded } from "../../policy/worded.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Json } from "../../spec/rfc8259.ts";
import { canonicalize } from "../../spec/rfc8785.ts";
import { type Detail, detailsJson, isSameDetails } from "../../spec/rfc9396.ts";

export type Permission = { scope: string; sentence: Worded };

/** Permissions at one target; `name` is the name of it that was asked for, or is on record. */
export type PermissionsAt<P = Permission> = {
  target: Target;
  name: string;
  permissions: readonly P[];
};

type Box = { box: string };

/** What a user chooses among on a page. */
export type Choice = {
  /** The target of the request first, then those that its job names beside. */
  at: readonly (PermissionsAt<Permission & Box> & {
    /** The objects to which these permissions are limited. */
    limits: readonly ({ detail: Detail } & Box)[];
  })[];
  /**
   * The agent that asks, which has no box, then those that would take part in the job, with the boxes of what their rules
   * let them have.
   */
  agents: readonly { id: string; may: ReadonlySet<string> }[];
  /** What these agents get in the job by rules that ask no user, whatever is ticked. */
  unasked: readonly { agent: string; at: readonly PermissionsAt[] }[];
};

/** Who asks: the agent is the workload, or else the client. */
export type Asker = Omit<Caller, "mode"> & Pick<AccessRequest, "clientScopes">;

/** What the policy would allow if the user consented to all of it, and the bounds of the job that is to be approved. */
type Asking = {
  target: Target;
  name: string;
  scope: readonly string[];
  details?: readonly Detail[] | undefined;
  bounds?: JobBounds | undefined;
};

/** The operator's words for what a client with this scope may do. */
export const sentenceOf = ({ sentences }: Pick<Target, "sentences">, scope: string): Worded =>
  new Map(Object.entries(sentences ?? {})).get(scope) ?? scope;

const permission = (target: Target, scope: string): Permission => ({
  scope,
  sentence: sentenceOf(target, scope),
});

/** PAGE-D-35: what the exchange would find of this, in the operator's words. */
export const permissionsIn = (...asked: Parameters<typeof inForceOf>): readonly PermissionsAt[] =>
  inForceOf(...asked)
    .filter(({ scopes }) => scopes.length > 0)
    .map(({ target, name, scopes }) => ({
      target,
      name,
      permissions: scopes.map((scope) => permission(target, scope)),
    }));

/** What these rules allow, each target once. */
export function permissionsBy(
  policy: Pick<PolicySet, "targets">,
  rules: readonly Pick<SubjectRule, "targets" | "scopes">[],
): readonly PermissionsAt[] {
  const scopesAt = new Map<string, Set<string>>();
  for (const { targets: names, scopes } of rules)
    for (const name of names) {
      const at = scopesAt.getOrInsertComputed(policy.targets.get(name)?.names[0] ?? name, () => new Set());
      for (const scope of scopes) at.add(scope);
    }
  return [...scopesAt].flatMap(([name, scopes]) =>
    permissionsIn(policy, { targets: [name], scopes: [...scopes] }),
  );
}

/** JOB-D-5: what a consent that counts without a job gives this agent already, as its rules are now. */
export const standingFor = (
  policy: PolicySet,
  origin: Origin,
  asker: Asker,
  { targets, scopes }: Pick<Consent, "targets" | "scopes">,
): readonly PermissionsAt[] =>
  permissionsIn(policy, { targets, scopes }).flatMap((at) => {
    const rules = subjectRules(policy, origin, asker, at.target).filter(({ jobs }) => jobs !== "required");
    const permissions = at.permissions.filter(({ scope }) =>
      rules.some((rule) => rule.consent === "record" && rule.scopes.includes(scope)),
    );
    return permissions.length === 0 ? [] : [{ ...at, permissions }];
  });

/** The prefix of consents that a page recorded, so that a page never changes one that was recorded by API. */
export const PAGE_CONSENT = "page-";

/** A consent that a page recorded, which the next one replaces, and what of it is not asked about and stays. */
export type Kept = { consent: Consent; permissions: readonly Permission[] };

/** PAGE-D-45: one record has one end, so a page shows what stays in it beside what is asked. */
export function replacedBy(
  policy: Pick<PolicySet, "targets">,
  standing: readonly Consent[],
  {
    target,
    scope,
    details,
    job,
  }: Pick<Asking, "target" | "scope" | "details"> & { job: AccessRequest["job"] | undefined },
): Kept | undefined {
  const consent = standing.find(
    ({ id, targets, details: before, jobId, jobIssuer }) =>
      id.startsWith(PAGE_CONSENT) &&
      jobId === job?.id &&
      jobIssuer === job?.iss &&
      targets.every((name) => policy.targets.get(name) === target) &&
      // RAR-D-10: scopes that were given within other limits, or within none, would be wider under these.
      isSameDetails(detailsJson(before), details),
  );
  // JOB-D-26: one that the target has no more goes, or it would count again if the target had one of that name.
  const stays = (one: string): boolean => !scope.includes(one) && target.scopes.includes(one);
  const permissions = consent?.scopes.filter(stays).map((one) => permission(target, one)) ?? [];
  return consent === undefined ? undefined : { consent, permissions };
}

/** When what is given ends: no later than the job that it is given for or in, or than what stays in its record. */
export const endOfGiven = (
  nowSeconds: number,
  consentSeconds: number,
  { job, inJob, kept }: { job?: { bounds: JobBounds }; inJob?: { endsAtSeconds: number }; kept?: Kept },
): number =>
  Math.min(
    nowSeconds + consentSeconds,
    job?.bounds.notAfterSeconds ?? inJob?.endsAtSeconds ?? Number.POSITIVE_INFINITY,
    // PAGE-D-6: no scope lasts longer than the page said when it was given.
    kept?.consent.expiresAtSeconds ?? Number.POSITIVE_INFINITY,
  );

/**
 * PAGE-D-45: what a click writes at one target, where the page showed these as kept: anything else that stands is neither
 * lengthened nor shortened, and what is given is a record of its own.
 */
export function recordOf(
  policy: Pick<PolicySet, "targets">,
  standing: readonly Consent[],
  asking: Parameters<typeof replacedBy>[2],
  given: Pick<Given, "scopes">,
  shown: Kept | undefined,
): { before?: Consent; scopes: readonly string[] } {
  const found = replacedBy(policy, standing, asking);
  const { consent: before, permissions = [] } = found ?? {};
  const isShown = shown?.consent.id === before?.id && shown?.consent.version === before?.version;
  if (before === undefined || (permissions.length > 0 && !isShown)) return { scopes: given.scopes };
  return { before, scopes: [...permissions.map(({ scope }) => scope), ...given.scopes] };
}

// --- what is shown ----------------------------------------------------------------------------------------------

/**
 * PAGE-D-35: one box for each pair that a rule of the asker, or of an agent that would take part, gives under a consent. A
 * pair of the target of the request is known by its scope, and one elsewhere by scope and target, since no scope has a
 * space.
 */
export function choiceOf(policy: PolicySet, asking: Asking, asker: Asker, origin: Origin): Choice {
  const { target: own, name: ownName, scope, details = [], bounds } = asking;
  const { agents = [], targets: names = [ownName] } = bounds ?? {};
  const boxOf = (target: Target, id: string, name: string): string => (target === own ? id : `${id} ${name}`);
  const first = asker.workload ?? asker.clientId;
  const callers = new Map<string, Asker>([
    [first, asker],
    ...agents.filter((id) => id !== first).map((id): [string, Asker] => [id, namedAgent(id)]),
  ]);
  const targets = new Map<Target, string>([[own, ownName]]);
  for (const name of names) {
    const target = policy.targets.get(name);
    if (target !== undefined && !targets.has(target)) targets.set(target, name);
  }
  const { scopesBy, isDecidedBy } = rulesInJob(policy, asking, origin);
  const may = new Map([...callers.keys()].map((id) => [id, new Set<string>()]));
  const at = [...targets].map(([target, name]) => {
    const shown = new Set(target === own ? scope : []);
    for (const [id, caller] of callers) {
      const isDecided = id === first && target === own;
      const asking = scopesBy(caller, target, true).filter((one) => isDecidedBy(caller, target, one));
      const scopes = new Set([...(isDecided ? scope : []), ...asking]);
      for (const one of scopes) {
        shown.add(one);
        may.get(id)?.add(boxOf(target, one, name));
      }
    }
    const limits = details
      .map((detail, index) => ({ detail, box: boxOf(target, String(index), name) }))
      .filter(({ detail }) => target === own || target.details.has(detail.type));
    const permissions = [...shown].map((one) => ({
      ...permission(target, one),
      box: boxOf(target, one, name),
    }));
    return { target, name, permissions, limits };
  });
  const unasked = [...callers].map(([agent, caller]) => ({
    agent,
    at: [...targets].flatMap(([target, name]) =>
      permissionsIn(policy, { targets: [name], scopes: scopesBy(caller, target, false) }),
    ),
  }));
  const mayTakePart = (id: string): boolean =>
    id === first ||
    (may.get(id)?.size ?? 0) > 0 ||
    unasked.some((one) => one.agent === id && one.at.length > 0);
  return {
    at: at.filter(({ permissions }) => permissions.length > 0),
    agents: [...may].filter(([id]) => mayTakePart(id)).map(([id, boxes]) => ({ id, may: boxes })),
    unasked: unasked.filter((one) => one.at.length > 0),
  };
}

/** What an agent may have by the rules, in the job that is asked for. */
function rulesInJob(policy: PolicySet, { scope, bounds }: Asking, origin: Origin) {
  const { scopes: wanted = scope } = bounds ?? {};
  /** The rules of an agent in the job, with or without a consent. */
  const rulesOf = (caller: Asker, target: Target, asks: boolean): readonly SubjectRule[] => {
    if (bounds === undefined) return [];
    // Which of the agents take part is what the user decides here.
    const { agents: _, ...rest } = bounds;
    const inJob = { ...caller, job: proposedJob(rest) };
    return subjectRules(policy, origin, caller, target).filter(
      (rule) =>
        // PAGE-D-1: a code is given by a click on a page of its own, whatever else is on record.
        !isFor(rule, "code") && (rule.consent === "record") === asks && fitsJob(policy, inJob, rule, target),
    );
  };
  const scopesBy = (caller: Asker, target: Target, asks: boolean): readonly string[] => {
    const given = rulesOf(caller, target, asks).flatMap((rule) => rule.scopes);
    return wanted.filter(
      (one) =>
        given.includes(one) && target.scopes.includes(one) && caller.clientScopes?.includes(one) !== false,
    );
  };
  /** PAGE-D-35: a tick decides nothing where a rule that asks no user gives the same under the same conditions. */
  const isDecidedBy = (caller: Asker, target: Target, scope: string): boolean => {
    const unasking = rulesOf(caller, target, false);
    const here = {
      subjects: { issuers: [origin.iss], subs: [origin.sub] },
      targets: target.names.slice(0, 1),
      scopes: [scope],
      lifetimeSeconds: 0,
      jobs: "required" as const,
    };
    const actors = [caller.workload ?? ""];
    return rulesOf(caller, target, true)
      .filter(({ scopes }) => scopes.includes(scope))
      .map((rule) => ({ ...rule, ...here, actors: rule.actors && actors }) as Rule)
      .some((rule) => !unasking.some((wider) => isWider(policy, wider, rule, true)));
  };
  return { scopesBy, isDecidedBy };
}

// --- what is given ----------------------------------------------------------------------------------------------

/** The boxes of a form; `all` is the one that takes every permission, object and agent that would take part. */
export type Ticked = {
  all: boolean;
  scopes: readonly string[];
  details: readonly string[];
  agents: readonly string[];
};

/**
 * At the target of the request nothing is ticked; no object of a type is, without which there would be no limit; or an agent
 * is, and nothing that it may have.
 */
export type Lack = "nothing_ticked" | "limit_not_ticked" | "agent_gets_nothing";

export type Given = Pick<Consent, "scopes" | "details"> & {
  /** What each agent gets: within one consent every scope counts at every target. The first is that of the request. */
  consents: readonly Pick<Consent, "actor" | "targets" | "scopes" | "details">[];
  /** The bounds of the job, which are no wider than what is ticked. */
  bounds?: JobBounds;
};

/** PAGE-D-11, PAGE-D-35: nothing but what is shown and ticked, and all of it. */
export function givenOf(
  { at, agents, unasked }: Choice,
  ticked: Ticked,
  bounds?: JobBounds,
): Result<Given, Lack> {
  const given = ticksAt(at, ticked);
  const [own] = given;
  // What the request itself asks for is part of what comes of it, or the click would answer something else.
  if (own === undefined || own.permissions.length === 0) return err("nothing_ticked");
  if (given.some(({ isLost }) => isLost)) return err("limit_not_ticked");
  const [first, ...others] = agents;
  const taking = [first, ...others.filter(({ id }) => ticked.all || ticked.agents.includes(id))];
  // PAGE-D-35: a tick that gives nothing is a box that was missed, or one too many.
  const isGiven = (box: string): boolean =>
    given.some(({ permissions }) => permissions.some((one) => one.box === box));
  const getsNothing = (one: Choice["agents"][number] | undefined): boolean =>
    one !== undefined &&
    one !== first &&
    ![...one.may].some(isGiven) &&
    !unasked.some(({ agent }) => agent === one.id);
  if (taking.some(getsNothing)) return err("agent_gets_nothing");
  const ids = taking.flatMap((agent) => agent?.id ?? []);
  const consents = taking.flatMap((agent) => (agent === undefined ? [] : consentsOf(agent, given)));
  return ok(
    defined<Given>({
      scopes: own.permissions.map(({ scope }) => scope),
      details: own.details,
      consents,
      bounds: bounds && narrowed(bounds, at, given, ids, unasked),
    }),
  );
}

/** What is ticked at each target, with the objects to which it is limited there. */
function ticksAt(at: Choice["at"], ticked: Ticked): readonly (GivenAt & { isLost: boolean })[] {
  return at
    .map(({ target, permissions, limits }) => {
      const kept = limits
        .filter(({ box }) => ticked.all || ticked.details.includes(box))
        .map(({ detail }) => detail);
      return {
        name: target.names[0] ?? "",
        permissions: permissions.filter(({ box }) => ticked.all || ticked.scopes.includes(box)),
        details: limits.length === 0 ? undefined : kept,
        // RAR-D-3: without any object of a type, it would be given without limit.
        isLost: limits.some(({ detail }) => !kept.some(({ type }) => type === detail.type)),
      };
    })
    .filter(({ permissions }, index) => index === 0 || permissions.length > 0);
}

/** What the agent gets: a consent gives each of its scopes at each of its targets, so that only equal ones share one. */
function consentsOf({ id, may }: Choice["agents"][number], given: readonly GivenAt[]): Given["consents"] {
  const alike = new Map<string, Given["consents"][number]>();
  for (const { name, permissions, details } of given) {
    const scopes = permissions.filter(({ box }) => may.has(box)).map(({ scope }) => scope);
    if (scopes.length === 0) continue;
    const key = JSON.stringify([scopes.toSorted(), details]);
    const { targets = [] } = alike.get(key) ?? {};
    alike.set(
      key,
      defined<Given["consents"][number]>({ actor: id, targets: [...targets, name], scopes, details }),
    );
  }
  return [...alike.values()];
}

type GivenAt = {
  name: string;
  permissions: Choice["at"][number]["permissions"];
  details?: readonly Detail[] | undefined;
};

/**
 * JOB-D-2, RAR-D-9: without the targets, scopes, objects and agents that were left out, but with what the page says that
 * those who take part get whatever is ticked (PAGE-D-35).
 */
function narrowed(
  bounds: JobBounds,
  at: Choice["at"],
  given: readonly GivenAt[],
  taking: readonly string[],
  unasked: Choice["unasked"],
): JobBounds {
  const beside = unasked.filter(({ agent }) => taking.includes(agent)).flatMap((one) => one.at);
  const objects = given.flatMap(({ details = [] }) => details);
  const written = new Map(objects.map((one) => [canonicalize(one as unknown as Json), one]));
  const named = at.filter(({ target }) => given.some(({ name }) => name === target.names[0]));
  return defined<JobBounds>({
    ...bounds,
    targets: [...new Map([...named, ...beside].map(({ target, name }) => [target, name])).values()],
    scopes: [
      ...new Set([...given, ...beside].flatMap(({ permissions }) => permissions.map(({ scope }) => scope))),
    ],
    details: written.size > 0 ? [...written.values()] : undefined,
    agents: bounds.agents && taking,
  });
}
