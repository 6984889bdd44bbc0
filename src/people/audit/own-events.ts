/**
 * The audit trail as a subject reads their own part of it: our own design, over the fields of event.ts. Only the members
 * named here leave an event, so that no token, `jti` or secret is shown (PAGE-D-15), and of a reason only its kind.
 */
import * as v from "valibot";
import type { EventType } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import { POLICY_REASONS } from "../../audit/reasons-of-requests.ts";
import { CLAIMS_DEPTH_MAX } from "../../limits/input.ts";
import { defined } from "../../result.ts";
import { parseJson } from "../../spec/rfc8259.ts";

/** What happened, as the key of a sentence in the catalogue. */
export type OwnEventKind =
  | "token_given"
  | "acted"
  | "acted_as_you"
  | "grant_redeemed"
  | "refused"
  | "you_refused"
  | "allowed"
  | "allowed_by_others"
  | "taken_back"
  | "taken_back_by_others"
  | "job_approved"
  | "job_approved_by_others"
  | "job_refused"
  | "job_stopped"
  | "job_stopped_by_operator"
  | "job_stopped_by_agent"
  | "renewed_elsewhere"
  | "ended"
  | "signed_in"
  | "signed_out";

/** Why an agent was refused, as far as its user can make use of it. */
export type RefusedFor = "not_allowed" | "over" | "sign_in" | "rules" | "faulty";

/** An agent in the chain. `toldBy` is the issuer that told of it; without it, this server authenticated the agent. */
export type OwnAgent = { id: string; toldBy?: string };

export type OwnEvent = {
  timeMs: number;
  kind: OwnEventKind;
  /** The agents in the order in which they acted; the last one acted in this event. */
  agents: readonly OwnAgent[];
  targets: readonly string[];
  scopes: readonly string[];
  /** The title of a job, in the words of the one that asked for it. */
  title?: string;
  refusedFor?: RefusedFor;
};

/** The kind of each type of event that a subject may read. */
const KINDS: Partial<Record<EventType, OwnEventKind>> = {
  "token.issued": "token_given",
  // The uses of a refresh token are left out, because there is one every few minutes, and what was given is told once.
  "refresh.issued": "token_given",
  // REFRESH-D-21, REFRESH-D-7
  "refresh.retried_elsewhere": "renewed_elsewhere",
  "refresh.reuse_detected": "ended",
  "refresh.ended": "ended",
  "token.denied": "refused",
  "token_exchange.delegation": "acted",
  "token_exchange.impersonation": "acted_as_you",
  "token_exchange.transaction": "acted",
  "token_exchange.denied": "refused",
  "deferral.granted": "acted",
  "grant.redeemed": "grant_redeemed",
  "grant.denied": "refused",
  "replay.detected": "refused",
  "authorization.denied": "refused",
  "consent.recorded": "allowed",
  "consent.withdrawn": "taken_back",
  "token.revoked": "ended",
  "job.approved": "job_approved",
  "job.refused": "job_refused",
  "job.ended": "job_stopped",
  "user.signed_in": "signed_in",
  "user.signed_out": "signed_out",
};

/** The events that gave a token, perhaps under a consent. */
const TOKEN_EVENT_TYPES: readonly string[] = [
  "token.issued",
  "refresh.issued",
  "token.refreshed",
  "refresh.retried",
  "refresh.retried_elsewhere",
  "token_exchange.delegation",
  "token_exchange.impersonation",
  "token_exchange.transaction",
  "deferral.granted",
  "grant.redeemed",
] as const satisfies readonly EventType[];

const text = v.string();
const list = v.optional(v.array(text), []);

const Asked = v.object({ pending: v.optional(text), answered: v.optional(v.literal(true)) });
const Body = v.object({
  type: text,
  time: v.pipe(text, v.isoTimestamp()),
  reason: text,
  client: v.optional(v.object({ client_id: text, workload: v.optional(text) })),
  subject: v.optional(v.object({ token: v.object({ client_id: v.optional(text) }) })),
  chain: v.optional(v.array(v.object({ sub: text, iss: text, claimed: v.optional(v.literal(true)) })), []),
  requested: v.optional(v.object({ audience: list, resource: list, scope: v.optional(text) })),
  policy: v.optional(v.object({ consent: v.optional(text), asked: v.optional(Asked) })),
  granted: v.optional(v.object({ aud: text, scope: text })),
  detail: v.optional(
    v.object({ actor: v.optional(text), targets: list, scope: v.optional(text), title: v.optional(text) }),
    {},
  ),
});
type Body = v.InferOutput<typeof Body>;

function readBody(body: string): Body | undefined {
  const json = parseJson(body, CLAIMS_DEPTH_MAX);
  const parsed = json.ok ? v.safeParse(Body, json.value) : undefined;
  return parsed?.success ? parsed.output : undefined;
}

/** The consent under which the event gave a token. */
export function readUse(body: string): string | undefined {
  const event = readBody(body);
  return event && TOKEN_EVENT_TYPES.includes(event.type) ? event.policy?.consent : undefined;
}

/** Reads an event; undefined if a subject does not read it, or if our journal did not write it. */
export function readOwnEvent(body: string): OwnEvent | undefined {
  const event = readBody(body);
  if (event === undefined) return undefined;
  const kind = kindOf(event);
  if (kind === undefined) return undefined;
  const isConsent = event.type.startsWith("consent.");
  const { requested, granted, detail } = event;
  const asked = [...(requested?.audience ?? []), ...(requested?.resource ?? [])];
  const scope = isConsent ? detail.scope : (granted?.scope ?? requested?.scope);
  return defined<OwnEvent>({
    timeMs: Date.parse(event.time),
    kind,
    // What a user decides on a page, or another in their place, names the actor alone.
    agents: detail.actor === undefined ? agentsOf(event) : [{ id: detail.actor }],
    targets: isConsent ? detail.targets : granted === undefined ? [...new Set(asked)] : [granted.aud],
    scopes: (scope ?? "").split(" ").filter((one) => one !== ""),
    title: detail.title,
    refusedFor: kind === "refused" ? refusedFor(event.reason) : undefined,
  });
}

/** PAGE-D-36: the reasons of each kind; the other reasons of the policy are its rules, and all else is the request. */
const REFUSED_FOR: readonly (readonly [kind: RefusedFor, reasons: readonly string[]])[] = [
  ["not_allowed", ["consent_missing", "unanswered", "job_not_approved", "scope_exceeds_grant"]],
  [
    "over",
    ["ended", "job_ended", "job_expired", "job_exhausted", "refresh_token_ended", "refresh_token_expired"],
  ],
  ["over", ["code_expired", "deferral_expired", "subject_token_revoked", "subject_token_consent_gone"]],
  ["over", ["subject_jwt_expired", "subject_token_expires_too_soon", "facts_changed"]],
  ["sign_in", ["sign_in_insufficient", "sign_in_too_old", "provider_denies_user", "provider_wants_user"]],
] satisfies readonly (readonly [RefusedFor, readonly Reason[]])[];

const refusedFor = (reason: string): RefusedFor =>
  REFUSED_FOR.find(([, reasons]) => reasons.includes(reason))?.[0] ??
  (Object.hasOwn(POLICY_REASONS, reason) ? "rules" : "faulty");

/** The reasons that tell whether the user or another party decided. */
const BY_SUBJECT: Reason = "by_subject";
const BY_CLIENT: Reason = "by_client";
const REFUSED_BY_SUBJECT: readonly string[] = ["user_refused", "nothing_ticked"] satisfies readonly Reason[];

/** PAGE-D-24: the user opened a link that asks another user, and learns nothing more of it here. */
const OF_ANOTHER: Reason = "ask_of_another";

function kindOf({ type, reason, policy }: Body): OwnEventKind | undefined {
  if (reason === OF_ANOTHER) return undefined;
  const kind = KINDS[type as EventType];
  if (kind === "refused" && REFUSED_BY_SUBJECT.includes(reason)) return "you_refused";
  // DTR-D-13: what the user has yet to decide is not refused, and stands among the open questions.
  if (kind === "refused" && policy?.asked?.pending !== undefined && !policy.asked.answered) return undefined;
  if (reason === BY_SUBJECT) return kind;
  if (kind === "job_approved") return "job_approved_by_others";
  // PAGE-D-34: of a job two others may end it.
  if (kind === "job_stopped")
    return reason === BY_CLIENT ? "job_stopped_by_agent" : "job_stopped_by_operator";
  if (kind === "allowed") return "allowed_by_others";
  return kind === "taken_back" ? "taken_back_by_others" : kind;
}

/**
 * The agents behind the subject token, the first one first, and the requesting client. A token that shows no chain was
 * issued to a client, which handed it on.
 */
function agentsOf({ type, client, subject, chain }: Body): readonly OwnAgent[] {
  const isEnding = type === "token.revoked" || type === "refresh.ended";
  if (client === undefined || type.startsWith("user.") || isEnding) return [];
  const acting = client.workload ?? client.client_id;
  const behind = chain
    .toReversed()
    .map(({ sub, iss, claimed }) => defined<OwnAgent>({ id: sub, toldBy: claimed ? iss : undefined }));
  const holder = subject?.token.client_id;
  const first =
    behind.length > 0 || holder === undefined || holder === client.client_id ? [] : [{ id: holder }];
  return [...first, ...behind, { id: acting }];
}
