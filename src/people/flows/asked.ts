/** The page behind the link of ask-user.ts: the user who is asked gives the consent that an agent lacks, or refuses. */
import type { AuditEvent } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { RENEWALS_MAX, REQUEST_SECONDS } from "../../limits/people.ts";
import type { MissingConsent } from "../../policy/ask.ts";
import { decide } from "../../policy/decide.ts";
import type { Ports } from "../../ports.ts";
import type { Guard, PagePlace, PendingConsent } from "../../records.ts";
import { defined } from "../../result.ts";
import type { SignInSettings } from "../../settings/settings.ts";
import type { Chain } from "../../spec/rfc8693.ts";
import { recordConsent } from "./consent.ts";
import type { Decision } from "./decide-review.ts";
import type { Outcome } from "./outcome.ts";
import { notice } from "./outcome.ts";
import type { Visitor } from "./review.ts";
import type { OpenSession } from "./session.ts";
import { describeUser, findSession } from "./session.ts";
import { SIGN_OUT } from "./sign-out.ts";

/** What the page shows. */
export type AskedReview = {
  next: "page";
  id: string;
  /** The SPIFFE ID of the agent, and the operator's name for the client by which it asked. */
  agent: { id: string; title?: string };
  /** The actors before it, the one that it works for first. */
  chain: Chain;
  offer: MissingConsent;
  session: OpenSession;
  formToken: string;
  signOutToken: string;
  expiresAtSeconds: number;
  renewable: boolean;
};

type SignInFirst = { next: "sign_in"; place: PagePlace };

type Found = { pending: PendingConsent; offer: MissingConsent; session: OpenSession };

export async function openAsked(
  ports: Ports,
  note: AuditedRequest,
  id: string,
  visitor: Visitor,
  renew: boolean,
): Promise<AskedReview | SignInFirst | Outcome> {
  const found = await find(ports, note, id, visitor);
  if ("next" in found) return found;
  const { offer, session } = found;
  const pending = renew ? await renewed(ports, found.pending) : found.pending;
  const { actor, ask, renewals, expiresAtSeconds } = pending;
  const client = await ports.clients.find(ask.clientId);
  return {
    next: "page",
    id,
    // A client that registered itself chose its own name.
    agent: defined({ id: actor, title: client?.source === "registration" ? undefined : client?.title }),
    chain: ask.subject?.chain ?? [],
    offer,
    session,
    formToken: [id, shownOn(ports, id, offer)]
      .map((about) => ports.formTokens.of(session.key, about))
      .join("."),
    signOutToken: ports.formTokens.of(session.key, SIGN_OUT),
    expiresAtSeconds,
    renewable: renewals < RENEWALS_MAX,
  };
}

/** PAGE-D-11: what the user is told that a click gives, and for how long; settings may change before the click. */
const shownOn = ({ settings }: Ports, id: string, { target, scope }: MissingConsent): string =>
  JSON.stringify(["shown", id, target.names[0], scope, settings().signIn?.consentSeconds]);

/** PAGE-D-24: nothing of it is shown to another user, who learns no more than of an unknown link. */
async function find(
  ports: Ports,
  note: AuditedRequest,
  id: string,
  visitor: Visitor,
): Promise<Found | SignInFirst | Outcome> {
  const refused = (outcome: Outcome & { next: "notice" }): Outcome => {
    ports.authFailures.note(note, outcome.notice.reason);
    return outcome;
  };
  const nowSeconds = ports.clock.nowSeconds();
  const pending = await ports.pendingConsents.find(id, nowSeconds);
  const origin = pending?.ask.subject?.origin;
  if (pending === undefined || origin === undefined) return refused(notice("ask_gone", "ask_unknown"));
  const session = await findSession(ports, visitor.session);
  if (session === undefined) return { next: "sign_in", place: { page: "ask", id } };
  if (session.origin.iss !== origin.iss || session.origin.sub !== origin.sub) {
    // Of what the link asks, the record of this user has nothing; the digest of the link leads the auditor there.
    const { requested: _, detail: __, ...event } = denial(ports, note, session, pending, "ask_of_another");
    await ports.journal.record({ event });
    return notice("ask_gone", "ask_of_another");
  }
  if (pending.decided) return refused(notice("request_decided", "request_decided"));
  // Anew, as policy and consents may have changed; but for the time of the request, as its token may have ended since.
  const { policy } = ports.settings();
  const consents = await ports.facts.consents(origin, pending.actor, nowSeconds);
  const decided = decide(policy, { ...pending.ask, consents, nowSeconds: pending.startedAtSeconds });
  if (decided.ok) return refused(notice("request_decided", "request_decided"));
  const { missing, reason } = decided.error;
  return missing === undefined ? refused(notice("ask_gone", reason)) : { pending, offer: missing, session };
}

/** WCAG-2.2.1-1: as long again, a limited number of times. */
async function renewed(ports: Ports, pending: PendingConsent): Promise<PendingConsent> {
  if (pending.renewals >= RENEWALS_MAX) return pending;
  const next = {
    ...pending,
    version: pending.version + 1,
    renewals: pending.renewals + 1,
    expiresAtSeconds: ports.clock.nowSeconds() + REQUEST_SECONDS,
  };
  return (await ports.pendingConsents.replace(next)) ? next : pending;
}

// --- the decision -----------------------------------------------------------------------------------------------

export async function decideAsked(
  ports: Ports,
  { consentSeconds }: SignInSettings,
  note: AuditedRequest,
  id: string,
  visitor: Visitor,
  decision: Omit<Decision, "confirmed">,
): Promise<SignInFirst | Outcome> {
  const found = await find(ports, note, id, visitor);
  if ("next" in found) return found;
  const { pending, offer, session } = found;
  // PAGE-D-5, RFC6749-10.12-1: made for this session and this link, so no other page can have sent it.
  const [formToken = "", shown = ""] = decision.formToken.split(".");
  if (!ports.formTokens.accepts(formToken, session.key, id)) {
    ports.authFailures.note(note, "form_token_wrong");
    return notice("form_refused", "form_token_wrong");
  }
  if (decision.allows && !ports.formTokens.accepts(shown, session.key, shownOn(ports, id, offer))) {
    ports.authFailures.note(note, "form_token_wrong");
    const onwards = { page: "ask", id } as const;
    return { next: "notice", notice: { kind: "form_refused", reason: "form_token_wrong", onwards } };
  }
  // PAGE-D-11: of what is offered, what was ticked.
  const given = offer.scope.filter((one) => decision.all || decision.scopes.includes(one));
  if (!decision.allows || given.length === 0) {
    const reason = decision.allows ? "nothing_ticked" : "user_refused";
    const event = denial(ports, note, session, pending, reason);
    const recorded = await ports.journal.record({ event, guards: [undecided(pending)] });
    return recorded.ok ? settled(ports, id, "ask_refused", reason) : ALREADY_DECIDED;
  }
  const recorded = await recordConsent(ports, {
    session,
    actor: pending.actor,
    target: offer.target,
    asked: offer.scope,
    given,
    consentSeconds,
    event: {
      request: note,
      mode: pending.ask.mode,
      ...describeUser(session),
      policy: { ...policyOf(ports, pending), rule_id: offer.rule.id },
    },
    guards: [undecided(pending)],
  });
  return recorded ? settled(ports, id, "ask_allowed", "by_subject") : ALREADY_DECIDED;
}

const ALREADY_DECIDED = notice("request_decided", "request_decided");

/** PAGE-D-23: of two decisions about one link, on whatever instances, one is recorded. */
const undecided = ({ id, startedAtSeconds }: PendingConsent): Guard => ({
  kind: "decision_fresh",
  issuer: "page",
  jti: id,
  expiresAtSeconds: startedAtSeconds + (RENEWALS_MAX + 1) * REQUEST_SECONDS,
});

/** The row remembers the decision for its life; it is retried once, in case the user got more time meanwhile. */
async function settled(
  ports: Ports,
  id: string,
  kind: "ask_allowed" | "ask_refused",
  reason: Reason,
): Promise<Outcome> {
  for (let attempt = 0; attempt < 2; attempt++) {
    const pending = await ports.pendingConsents.find(id, ports.clock.nowSeconds());
    if (pending === undefined) break;
    if (await ports.pendingConsents.replace({ ...pending, version: pending.version + 1, decided: true }))
      break;
  }
  return notice(kind, reason);
}

const policyOf = ({ settings, hash }: Ports, { id }: PendingConsent) => ({
  digest: settings().policy.digest,
  asked: { pending: hash.sha256(id) },
});

function denial(
  ports: Ports,
  note: AuditedRequest,
  session: OpenSession,
  pending: PendingConsent,
  reason: Reason,
): AuditEvent {
  const { mode, target = "", scope = [] } = pending.ask;
  return {
    type: "authorization.denied",
    outcome: "deny",
    reason,
    request: note,
    mode,
    ...describeUser(session),
    requested: { audience: [target], resource: [], scope: scope.join(" ") },
    policy: policyOf(ports, pending),
    detail: { actor: pending.actor },
  };
}
