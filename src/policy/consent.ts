/**
 * A consent (PROD-2.6-4) as the API receives it: its grammar, and the checks against the target registry without which
 * it could never match.
 */
import * as v from "valibot";
import { STRING_BYTES_MAX } from "../limits/input.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { parseScope } from "../spec/rfc6749.ts";
import type { Json } from "../spec/rfc8259.ts";
import { type Detail, readDetails } from "../spec/rfc9396.ts";
import { isWorkloadName } from "../spec/workload-grant.ts";
import type { Origin } from "./access.ts";
import { checkConforms } from "./details.ts";
import type { PolicySet } from "./rules.ts";
import { nameText } from "./worded.ts";

const ENTRIES_MAX = 64;

const text = v.pipe(v.string(), v.nonEmpty(), v.maxBytes(STRING_BYTES_MAX));

export const Body = v.strictObject({
  /** The subject is required of an administrator; a user may only name themselves. */
  subject: v.optional(v.strictObject({ iss: nameText, sub: nameText })),
  actor: nameText,
  targets: v.pipe(v.array(nameText), v.minLength(1), v.maxLength(ENTRIES_MAX)),
  scope: text,
  /** What it is limited to (RFC 9396); it sets no limit by objects of other types. */
  authorization_details: v.optional(v.custom<Json>(() => true)),
  expires_at: v.optional(v.pipe(v.number(), v.safeInteger())),
});

export type ConsentBody = {
  subject?: Origin;
  actor: string;
  targets: readonly string[];
  scopes: readonly string[];
  details?: readonly Detail[];
  expiresAtSeconds?: number;
};

export type ConsentFailure = {
  kind:
    | "consent_malformed"
    | "consent_actor_malformed"
    | "consent_target_unknown"
    | "consent_scope_malformed"
    | "consent_scope_unknown"
    | "consent_details_refused"
    | "consent_expired";
};

/** Parses the body of a request to record a consent; every scope has to be known at one of its targets. */
export function parseConsent(
  json: Json,
  policy: PolicySet,
  nowSeconds: number,
): Result<ConsentBody, ConsentFailure> {
  const parsed = v.safeParse(Body, json);
  if (!parsed.success) return err({ kind: "consent_malformed" });
  const {
    subject,
    actor,
    targets: named,
    scope,
    authorization_details: sent,
    expires_at: expires,
  } = parsed.output;
  if (!isActorName(actor)) return err({ kind: "consent_actor_malformed" });
  const targets = [...new Set(named)];
  const knownTargets = targets.flatMap((name) => policy.targets.get(name) ?? []);
  if (knownTargets.length < targets.length) return err({ kind: "consent_target_unknown" });
  const scopes = parseScope(scope);
  if (!scopes.ok || scopes.value.length > ENTRIES_MAX) return err({ kind: "consent_scope_malformed" });
  const meaningless = scopes.value.some((one) => !knownTargets.some((target) => target.scopes.includes(one)));
  if (meaningless) return err({ kind: "consent_scope_unknown" });
  const limits = sent === undefined ? ok(undefined) : readDetails(sent);
  // RAR-D-10: each object is of a type that one of its targets declares.
  const types = new Map(knownTargets.flatMap(({ details }) => [...details]));
  if (!limits.ok || !checkConforms(types, limits.value ?? []).ok) {
    return err({ kind: "consent_details_refused" });
  }
  if (expires !== undefined && expires <= nowSeconds) return err({ kind: "consent_expired" });
  return ok(
    defined<ConsentBody>({
      subject,
      actor,
      targets,
      scopes: scopes.value,
      details: limits.value,
      expiresAtSeconds: expires,
    }),
  );
}

/**
 * PROD-2.6-3: the actor is a client_id, or the name of a workload; a text that begins like such a name has to be one.
 */
function isActorName(actor: string): boolean {
  return /^(?:spiffe|platform):/i.test(actor) ? isWorkloadName(actor) : /^[\x21-\x7e]+$/.test(actor);
}
