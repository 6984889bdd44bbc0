/**
 * Decides recorded events again (REPL-D-4): by the function that decides requests, from what the event says that the
 * decision read. It is pure: the policy, and what the rest of the trail says of consents and jobs, are brought.
 */
import type { AuditEvent } from "../audit/event.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";
import { type Detail, readDetails } from "../spec/rfc9396.ts";
import type { Consent, JobBounds } from "./access.ts";
import { type AskedRequest, decideRequest } from "./decision.ts";
import type { DetailTypes } from "./details.ts";
import { askedOf, type LookUps, type Undecided } from "./facts.ts";
import { boundsFrom } from "./jobs.ts";
import type { PolicySet } from "./rules.ts";

/** What a decision came to, as an event has it. */
export type DecisionOutcome = {
  outcome: "allow" | "deny";
  /** Why it was denied. */
  reason?: string;
  rule?: string;
  scope?: string;
  /** `authorization_details` as JSON, with digests in place of private values. */
  details?: string;
  /** When what was issued ends. */
  exp?: number;
};

/** An event with a decision. */
export type DecidedEvent = AuditEvent & { facts: NonNullable<AuditEvent["facts"]> };

export const isDecided = (event: AuditEvent): event is DecidedEvent => event.facts !== undefined;

type Describe = (types: DetailTypes, details: readonly Detail[]) => readonly Detail[];

/** What the event says. An attempt with a proof that was used before was allowed by the policy, and names its rule. */
export function recordedOf({ reason, policy, granted }: DecidedEvent): DecisionOutcome {
  if (granted === undefined) return { outcome: "deny", reason };
  const { scope, authorization_details: details, exp } = granted;
  return defined<DecisionOutcome>({
    outcome: "allow",
    rule: policy?.rule_id,
    scope,
    details: details && JSON.stringify(details),
    exp,
  });
}

/** The same event, decided by this policy; `us` is the issuer that recorded it. */
export function decideAgain(
  policy: PolicySet,
  event: DecidedEvent,
  trail: LookUps,
  describe: Describe,
): Result<DecisionOutcome, Undecided | "details_private"> {
  const asked = askedOf(event, policy.issuer, trail, policy.claims);
  if (!asked.ok) return asked;
  if (hidesValues(policy.details, asked.value)) return err("details_private");
  const decided = decideRequest(policy, asked.value);
  if (!decided.ok) return ok({ outcome: "deny", reason: decided.error.reason });
  const { rule, scope, details, expiresAtSeconds: exp } = decided.value;
  return ok(
    defined<DecisionOutcome>({
      outcome: "allow",
      rule: rule.id,
      scope: scope.join(" "),
      details: details && JSON.stringify(inOrder(describe(policy.details, details))),
      exp,
    }),
  );
}

/** As the event has them: members in the order of their names. */
const inOrder = (details: readonly Detail[]): readonly object[] =>
  details.map((one) => Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))));

/** The members in which the two differ. */
export const differing = (one: DecisionOutcome, other: DecisionOutcome): readonly (keyof DecisionOutcome)[] =>
  MEMBERS.filter((name) => one[name] !== other[name]);

const MEMBERS: readonly (keyof DecisionOutcome)[] = ["outcome", "reason", "rule", "scope", "details", "exp"];

const DIGEST = /^sha256:[\w-]{43}$/;

/** RAR-D-13: the trail has a digest of a private value, by which nothing can be compared that is larger or smaller. */
function hidesValues(
  types: DetailTypes,
  { details, subject, consents, job, proposes }: AskedRequest,
): boolean {
  const lists = [details, subject?.details, job?.bounds.details, proposes?.details];
  return [...lists, ...consents.map((one) => one.details)].some((list) =>
    list?.some((one) =>
      Object.entries(one).some(
        ([name, value]) => types.get(one.type)?.fields.get(name)?.private && DIGEST.test(String(value)),
      ),
    ),
  );
}

// --- what the trail says of consents and jobs -------------------------------------------------------------------

/** Consents and jobs as their events tell them. */
export type Gathered = LookUps & { take(event: AuditEvent): void };

const keyOf = (id: string, version: number): string => `${version} ${id}`;

export function gather(digest: LookUps["digest"]): Gathered {
  const consents = new Map<string, Consent>();
  const jobs = new Map<string, JobBounds>();
  const add = (consent: Consent | undefined): void => {
    if (consent !== undefined) consents.set(keyOf(consent.id, consent.version), consent);
  };
  return {
    take({ type, policy, detail, job }) {
      if (detail === undefined) return;
      if (type === "consent.recorded") {
        add(consentFrom({ ...detail, id: policy?.consent ?? "" }, job));
      } else if (type === "job.approved" && job !== undefined && isJsonObject(detail.bounds ?? null)) {
        const bounds = boundsFrom(detail.bounds as Parameters<typeof boundsFrom>[0], 0);
        jobs.set(job.id, bounds);
        const { iss = "", sub = "" } = detail;
        const ids = textsOf(detail.consents);
        const given = Array.isArray(detail.given) ? detail.given : [];
        for (const [index, one] of given.entries()) {
          const id = ids[index];
          if (!isJsonObject(one) || id === undefined) continue;
          add(consentFrom({ ...one, id, iss, sub, version: 1, expires_at: bounds.notAfterSeconds }, job));
        }
      }
    },
    consent: (id, version) => consents.get(keyOf(id, version)),
    job: (id) => jobs.get(id),
    digest,
  };
}

const textsOf = (value: Json | undefined): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];

/** The consent that an event tells; undefined where it is not told as this version tells it. */
function consentFrom(told: JsonObject, job: AuditEvent["job"]): Consent | undefined {
  const {
    id,
    version,
    iss,
    sub,
    actor,
    targets,
    scope,
    authorization_details: sent,
    expires_at: ends,
  } = told;
  const texts = [id, iss, sub, actor, scope];
  if (!texts.every((one) => typeof one === "string") || typeof version !== "number") return undefined;
  const details = sent === undefined ? undefined : readDetails(sent);
  if (details?.ok === false) return undefined;
  return defined<Consent>({
    id: String(id),
    version,
    origin: { iss: String(iss), sub: String(sub) },
    actor: String(actor),
    targets: textsOf(targets),
    scopes: scope === "" ? [] : String(scope).split(" "),
    details: details?.value,
    expiresAtSeconds: typeof ends === "number" ? ends : undefined,
    jobId: job?.id,
    jobIssuer: job?.iss,
  });
}
