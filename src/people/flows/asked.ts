/** The page behind the link of ask-user.ts: the user who is asked gives the consent that an agent lacks, or refuses. */
import type { AuditEvent } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { RENEWALS_MAX, REQUEST_SECONDS } from "../../limits/people.ts";
import type { MissingConsent } from "../../policy/access.ts";
import { decide } from "../../policy/decide.ts";
import { foreignKeys } from "../../policy/endings.ts";
import type { BasePorts } from "../../ports.ts";
import type { Guard, PendingConsent } from "../../records.ts";
import { defined, ok } from "../../result.ts";
import type { SignInSettings } from "../../settings/settings.ts";
import type { Chain } from "../../spec/rfc8693.ts";
import type { DecisionPorts, PeoplePorts } from "../ports.ts";
import { recordConsent } from "./consent.ts";
import type { Decision, DecisionPage, Visitor, Waits } from "./decision.ts";
import { decideOffer, renewed, showOffer } from "./decision.ts";
import type { Outcome } from "./outcome.ts";
import { countedNotice, notice } from "./outcome.ts";
import type { OpenSession } from "./session.ts";
import { describeUser, findSession } from "./session.ts";

/** What the page shows. */
export type AskedReview = DecisionPage<MissingConsent> & {
  /** The id of the agent, and of the client by which it asked. */
  actor: string;
  clientId: string;
  /** The actors before the agent; the first is the one that it works for. */
  chain: Chain;
  /** Why it asks, in its own words. */
  reason?: string;
};

type Found = Waits & { pending: PendingConsent; offer: MissingConsent };

export type AskedPorts = DecisionPorts & Pick<PeoplePorts, "pendingConsents">;

export async function openAsked(
  ports: AskedPorts,
  audited: AuditedRequest,
  id: string,
  visitor: Visitor,
  renew: boolean,
): Promise<AskedReview | Outcome> {
  const found = await find(ports, audited, id, visitor);
  if ("next" in found) return found;
  const pending = renew ? await renewRow(ports, found.pending) : found.pending;
  const { actor, ask } = pending;
  return defined<AskedReview>({
    ...showOffer(ports, found, found.offer, pending),
    actor,
    clientId: ask.clientId,
    chain: ask.subject?.chain ?? [],
    reason: ask.reason,
  });
}

/** PAGE-D-24: nothing of the link is shown to another user, who learns no more than of an unknown link. */
async function find(
  ports: AskedPorts,
  audited: AuditedRequest,
  id: string,
  visitor: Visitor,
): Promise<Found | Outcome> {
  const nowSeconds = ports.clock.nowSeconds();
  const pending = await ports.pendingConsents.find(id, nowSeconds);
  const origin = pending?.ask.subject?.origin;
  if (pending === undefined || origin === undefined)
    return countedNotice(ports, audited, "ask_gone", "ask_unknown");
  // What ends a subject also ends what was asked of it before.
  const { startedAtSeconds } = pending;
  if (await ports.endings.isEnded(foreignKeys(ports.hash.sha256, origin, startedAtSeconds)))
    return countedNotice(ports, audited, "ask_gone", "ended");
  const place = { page: "ask", id } as const;
  const session = await findSession(ports, visitor.session);
  if (session === undefined) return { next: "sign_in", place };
  if (session.origin.iss !== origin.iss || session.origin.sub !== origin.sub) {
    // The record of this user has nothing of what the link asks; the digest of the link leads the auditor there.
    const { requested: _, detail: __, ...event } = denial(ports, audited, session, pending, "ask_of_another");
    await ports.journal.record({ event });
    return notice("ask_gone", "ask_of_another");
  }
  if (pending.decided) return countedNotice(ports, audited, "request_decided", "request_decided");
  // The request is decided anew, because policy and consents may have changed, but for the time of the request, because
  // its token may have ended since.
  const { policy } = ports.settings();
  const consents = await ports.facts.consents(origin, pending.actor, nowSeconds);
  const decided = decide(policy, { ...pending.ask, consents, nowSeconds: pending.startedAtSeconds });
  if (decided.ok) return countedNotice(ports, audited, "request_decided", "request_decided");
  const { missing, reason } = decided.error;
  if (missing === undefined) return countedNotice(ports, audited, "ask_gone", reason);
  return { about: id, place, pending, offer: missing, session };
}

async function renewRow(ports: AskedPorts, pending: PendingConsent): Promise<PendingConsent> {
  const longer = renewed(ports, { ...pending, version: pending.version + 1 });
  return longer !== undefined && (await ports.pendingConsents.replace(longer)) ? longer : pending;
}

// --- the decision -----------------------------------------------------------------------------------------------

export async function decideAsked(
  ports: AskedPorts,
  { consentSeconds }: SignInSettings,
  audited: AuditedRequest,
  id: string,
  visitor: Visitor,
  decision: Omit<Decision, "confirmed">,
): Promise<Outcome> {
  const found = await find(ports, audited, id, visitor);
  if ("next" in found) return found;
  const { pending, session } = found;
  return decideOffer(ports, audited, decision, {
    ...found,
    offer: ok(found.offer),
    async refuse(reason) {
      const event = denial(ports, audited, session, pending, reason);
      const recorded = await ports.journal.record({ event, guards: [undecided(pending)] });
      return recorded.ok ? settled(ports, id, "ask_refused", reason) : ALREADY_DECIDED;
    },
    async give({ target, rule, scope }, given) {
      const recorded = await recordConsent(ports, {
        session,
        actor: pending.actor,
        target,
        asked: scope,
        given,
        consentSeconds,
        reason: pending.ask.reason,
        event: {
          request: audited,
          mode: pending.ask.mode,
          ...describeUser(session),
          policy: { ...policyOf(ports, pending), rule_id: rule.id },
        },
        guards: [undecided(pending)],
      });
      return recorded ? settled(ports, id, "ask_allowed", "by_subject") : ALREADY_DECIDED;
    },
  });
}

const ALREADY_DECIDED = notice("request_decided", "request_decided");

/** PAGE-D-23: of two decisions about one link, on whatever instances, one is recorded. */
const undecided = ({ id, startedAtSeconds }: PendingConsent): Guard => ({
  kind: "decision_fresh",
  issuer: "page",
  jti: id,
  expiresAtSeconds: startedAtSeconds + (RENEWALS_MAX + 1) * REQUEST_SECONDS,
});

/**
 * The row remembers the decision while it lives; the write is tried twice, in case the user got more time meanwhile.
 */
async function settled(
  ports: AskedPorts,
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

const policyOf = ({ settings, hash }: BasePorts, { id }: PendingConsent) => ({
  digest: settings().policy.digest,
  asked: { pending: hash.sha256(id) },
});

function denial(
  ports: BasePorts,
  audited: AuditedRequest,
  session: OpenSession,
  pending: PendingConsent,
  reason: Reason,
): AuditEvent {
  const { mode, target = "", scope = [], reason: said } = pending.ask;
  return {
    type: "authorization.denied",
    outcome: "deny",
    reason,
    request: audited,
    mode,
    ...describeUser(session),
    requested: defined({ audience: [target], resource: [], scope: scope.join(" "), reason: said }),
    policy: policyOf(ports, pending),
    detail: { actor: pending.actor },
  };
}
