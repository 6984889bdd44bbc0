/**
 * The `authorization_details` of a decision: which of the requested ones are refused outright, and what request, subject
 * token, rule and consent leave of them at a target (RAR-D-2).
 */
import type { Detail } from "../spec/rfc9396.ts";
import type { AccessRequest, Condition, Consent, Denied } from "./access.ts";
import { areCovered, checkConforms, type FallenDetail, intersectDetails, type Sides } from "./details.ts";
import { lapsesOf, type PolicySet, type Rule, type Target } from "./rules.ts";

/** Why the requested details are refused, whatever the rules allow. */
export function detailsRefuse(
  { clientDetails, subject, pushed }: AccessRequest,
  details: readonly Detail[],
  { details: types }: Target,
): Pick<Denied, "kind" | "reason"> | undefined {
  // RFC9396-10-2: a client that registered types uses these and no others.
  if (!details.every(({ type }) => clientDetails?.includes(type) ?? true)) {
    return { kind: "details_refused", reason: "details_type_not_registered" };
  }
  const conforms = checkConforms(types, details);
  if (!conforms.ok) return { kind: "details_refused", reason: conforms.error.kind };
  // RAR-D-3: what the subject token does not have is not cut away, because the client asks for more than it may have.
  if (!areCovered(types, details, subject?.details ?? [])) {
    return { kind: "details_refused", reason: "details_exceed_subject_token" };
  }
  // RFC9396-12-3
  const isOpen = pushed === false && details.some(({ type }) => types.get(type)?.pushed);
  return isOpen ? { kind: "policy_denied", reason: "request_not_pushed" } : undefined;
}

/** RAR-D-4: a request with details that names no scope asks for the scopes that they govern. */
export function withGovernedScopes(
  access: AccessRequest,
  details: readonly Detail[],
  target: Target,
): AccessRequest {
  if (access.scope !== undefined) return access;
  const governed = details.flatMap(({ type }) => target.details.get(type)?.governs ?? []);
  return { ...access, scope: [...new Set(governed)].filter((one) => target.scopes.includes(one)) };
}

export type NarrowedDetails = {
  failed?: Extract<Condition, "details" | "details_type">;
  details?: readonly Detail[];
  lapsed?: readonly string[];
  fallen?: readonly FallenDetail[];
  /** Whether less is granted than was asked for. */
  isCut: boolean;
};

/** Where no side limits by details. */
export const UNLIMITED: NarrowedDetails = { isCut: false };

/** What is left beside these scopes. */
export function narrowDetails(
  policy: PolicySet,
  { details: requested, subject, job }: AccessRequest,
  rule: Rule,
  target: Target,
  consent: Consent | undefined,
  scope: readonly string[],
): NarrowedDetails {
  const held = subject?.details;
  const { details: types } = target;
  const isHere = ({ type }: Detail): boolean => types.has(type);
  // RAR-D-6, RAR-D-8: a limit that the target does not understand does not get lost, unless the rule says so.
  const unknown = new Set(held?.filter((one) => !isHere(one)).map(({ type }) => type));
  const lapsed = [...unknown].filter((type) => lapsesOf(rule).includes(type));
  if (lapsed.length < unknown.size) return { failed: "details_type", isCut: false };

  const left = intersectDetails(types, [
    { at: "request", details: requested },
    { at: "subject_token", details: held?.filter(isHere) },
    { at: "rule", details: rule.details?.filter(isHere) },
    { at: "consent", details: consent && limitsOf(policy, consent, target) },
    { at: "job", details: job && limitsOf(policy, job.bounds, target) }, // JOB-D-10
  ] satisfies Sides);
  if (!left.ok) return { failed: "details", fallen: left.error.fallen, isCut: true };
  const { details, fallen } = left.value;
  // RAR-D-4: without any of the scopes that it governs, an object would grant nothing.
  const idle = (requested ?? []).flatMap(({ type }, index): FallenDetail[] =>
    types.get(type)?.governs.some((one) => scope.includes(one)) ? [] : [{ type, index, at: "scope" }],
  );
  if (idle.length > 0) return { failed: "details", fallen: idle, isCut: true };
  // RAR-D-5
  const isMissing = rule.demands?.some((type) => !details.some((one) => one.type === type)) ?? false;
  if (isMissing) return { failed: "details", isCut: true };
  const isCut = !areCovered(types, requested ?? [], details);
  return details.length > 0 ? { details, fallen, lapsed, isCut } : { lapsed, isCut };
}

/**
 * Those of the types that this target declares. A type that none of the targets declares any more, of a consent or of a
 * job, or of all where a job names none, leaves nothing.
 */
export const limitsOf = (
  { targets: all }: PolicySet,
  { details, targets = [...all.keys()] }: Partial<Pick<Consent, "details" | "targets">>,
  { details: types }: Target,
): readonly Detail[] | undefined =>
  details?.filter(
    ({ type }) => types.has(type) || !targets.some((name) => all.get(name)?.details.has(type) ?? false),
  );
