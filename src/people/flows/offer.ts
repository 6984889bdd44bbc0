/** What a user may be asked to give to a client: what the policy would allow it if the user consented to everything. */
import type { AccessRequest, Allowed, Consent, Denied, JobBounds, Subject } from "../../policy/access.ts";
import { decide } from "../../policy/decide.ts";
import { type ProposedJob, proposedJob } from "../../policy/jobs.ts";
import { allowsRefresh, isFor, type PolicySet, type Rule, SELF, type Target } from "../../policy/rules.ts";
import { defined, ok, type Result } from "../../result.ts";
import type { Client } from "../../settings/settings.ts";
import { REFRESH_TOKEN } from "../../spec/rfc6749.ts";
import { matchesPattern } from "../../spec/spiffe/id.ts";
import { type Asker, type Choice, choiceOf, type Kept, type PermissionsAt } from "../policy/permissions.ts";
import type { PeoplePorts } from "../ports.ts";
import type { PendingRequest, Session } from "../records.ts";

/** By a consent on record, and by rules that ask no user. */
export type Without = { already: readonly PermissionsAt[]; unasked: readonly PermissionsAt[] };

export type Offered = {
  rule: Rule;
  choice: Choice;
  /** The job that the user is asked to approve. */
  job?: ProposedJob;
  /** The job in which it is asked, and with which it ends: the title of one of ours, or whose it is. */
  inJob?: { title?: string; issuer?: string; endsAtSeconds: number };
  /** The user has refused it before. */
  denied?: true;
  /** PAGE-D-45: what was given before, and ends with what is given now. */
  kept?: Kept;
  /** JOB-D-5: beside a job, what its agent may do without it. */
  without?: Without;
};

/** What the policy would allow, and what of it the user chooses. */
export type ReviewOffer = Allowed & Offered;

export function offerTo(
  { settings, clock }: Pick<PeoplePorts, "settings" | "clock">,
  client: Client,
  { target: name, scope, details, job, pushed = false }: PendingRequest,
  { origin, authTimeSeconds, acr, claims }: Session,
): Result<ReviewOffer, Denied> {
  const { policy } = settings();
  // The request waits with its details once: those of the job are the same.
  const proposed = job && { ...job, bounds: defined<JobBounds>({ ...job.bounds, details }) };
  const nowSeconds = clock.nowSeconds();
  const scopes = scope ?? policy.targets.get(name)?.scopes ?? [];
  const consent: Consent = { id: "", version: 0, origin, actor: client.clientId, targets: [name], scopes };
  const access = defined<AccessRequest>({
    mode: "authorization_code",
    clientId: client.clientId,
    registrationClass: client.registrationClass,
    clientScopes: client.scopes,
    subject: defined<Subject>({
      tokenType: "code",
      origin,
      audiences: [],
      scopes,
      expiresAtSeconds: nowSeconds,
      chain: [],
      issuer: origin.iss,
      signIn: defined({ authTimeSeconds, acr }),
      claims,
    }),
    target: name,
    scope,
    details,
    clientDetails: client.detailTypes,
    pushed,
    job: proposed && proposedJob(proposed.bounds),
    consents: [consent],
    // A key is seen to be proven only when the client redeems the code.
    keys: "assumed",
    nowSeconds,
  });
  const decided = decide(policy, access);
  if (!decided.ok) return decided;
  const { audience, target, scope: offered, details: within } = decided.value;
  const asking = { target, name: audience, scope: offered, details: within, bounds: proposed?.bounds };
  const choice = choiceOf(policy, asking, askerOf(client), origin);
  return ok(defined<ReviewOffer>({ ...decided.value, choice, job: proposed }));
}

/** A client of people, which is no actor by what it could act as. */
export const askerOf = ({ clientId, registrationClass, scopes: clientScopes }: Client): Asker =>
  defined<Asker>({ clientId, registrationClass, clientScopes });

/** REFRESH-D-1: whether refresh tokens come of it, so that the user is told for how long. */
export const comesWithRefresh = ({ grantTypes }: Pick<Client, "grantTypes">, { rule }: Allowed): boolean =>
  grantTypes.includes(REFRESH_TOKEN) && allowsRefresh(rule);

/**
 * Those of all targets at which something is given, beside the one that asks. In a job that names its agents each of them
 * has a box of its own, and no other may take part.
 */
export function furtherAgentsOf(
  policy: PolicySet,
  { choice, job }: Offered,
  session: Session,
): readonly string[] {
  if (job?.bounds.agents !== undefined) return [];
  const [asker] = choice.agents;
  const named = [...choice.at, ...choice.unasked.flatMap(({ at }) => at)].flatMap(({ target, permissions }) =>
    furtherAgents(
      policy,
      target,
      permissions.map(({ scope }) => scope),
      session,
    ),
  );
  return [...new Set(named)].filter((id) => id !== asker?.id).sort();
}

/** The workloads that may exchange a token for this target without asking the user again, as the rules name them. */
export function furtherAgents(
  { rules, targets }: PolicySet,
  target: Target,
  scopes: readonly string[],
  { origin }: Session,
): readonly string[] {
  const owns = (actors: readonly string[]): boolean =>
    actors.some((actor) =>
      target.owners.some((owner) => matchesPattern(owner, actor) || matchesPattern(actor, owner)),
    );
  const takes = (rule: Rule): boolean => {
    if (!isFor(rule, "subject_token") || rule.consent === "record") return false;
    const { issuers, subs } = rule.subjects;
    if (!issuers.includes(origin.iss) || subs?.includes(origin.sub) === false) return false;
    const { audiences = [], scopes: byScope = [] } = rule.subjectToken;
    const byAudience = audiences.some((one) =>
      one === SELF ? owns(rule.actors ?? []) : targets.get(one) === target,
    );
    return byAudience || byScope.some((one) => scopes.includes(one));
  };
  const named = [...rules.values()].filter(takes).flatMap((rule) => rule.actors ?? []);
  return [...new Set(named)].sort();
}
