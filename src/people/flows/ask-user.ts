/**
 * Ask your user: an agent that only lacks its user's consent gets a link with the refusal, at which exactly that user
 * can give exactly that consent (PAGE-D-23); the page behind it is asked.ts.
 */

import type { Asking, Link } from "../../flows/people.ts";
import {
  PENDING_PER_ACTOR_AND_SUBJECT_MAX,
  PENDING_PER_ACTOR_MAX,
  PENDING_PER_SUBJECT_MAX,
  REQUEST_SECONDS,
} from "../../limits/people.ts";
import type { MissingConsent } from "../../policy/access.ts";
import { foreignKeys } from "../../policy/endings.ts";
import type { PendingConsent } from "../../records.ts";
import { defined } from "../../result.ts";
import type { Json } from "../../spec/rfc8259.ts";
import { canonicalize } from "../../spec/rfc8785.ts";
import type { PeoplePorts } from "../ports.ts";

const CAPS = {
  perActor: PENDING_PER_ACTOR_MAX,
  perSubject: PENDING_PER_SUBJECT_MAX,
  perPair: PENDING_PER_ACTOR_AND_SUBJECT_MAX,
};

/**
 * The same request of the same agent gets the same link while that lives, also after the user has refused, so that the
 * agent learns nothing of a refusal.
 */
export async function askUser(
  {
    settings,
    hash,
    random,
    endings,
    pendingConsents,
  }: Pick<PeoplePorts, "settings" | "hash" | "random" | "endings" | "pendingConsents">,
  { access, reason }: Asking,
  { target, scope, details }: MissingConsent,
  nowSeconds: number,
): Promise<Link> {
  const { subject, workload, clientId } = access;
  const actor = workload ?? clientId;
  const user = [subject?.origin.iss, subject?.origin.sub];
  const about = [...user, actor, target.names[0], scope.toSorted()];
  // RAR-D-10: another object is another question.
  if (details !== undefined) about.push(canonicalize(details as unknown as Json));
  const requested = new Set(access.details?.map(({ type }) => type));
  const fresh: PendingConsent = {
    id: random.id(),
    version: 1,
    asked: hash.sha256(JSON.stringify(about)),
    actor,
    subject: hash.sha256(JSON.stringify(user)),
    // The user is asked for these scopes and objects, whatever the rule allows later.
    ask: defined<PendingConsent["ask"]>({
      ...access,
      scope,
      details: access.details && details?.filter(({ type }) => requested.has(type)),
      reason,
    }),
    startedAtSeconds: nowSeconds,
    renewals: 0,
    expiresAtSeconds: nowSeconds + REQUEST_SECONDS,
  };
  const pending = await pendingConsents.open(fresh, { ...CAPS, nowSeconds });
  if (pending === undefined) return { asked: { refused: "pending_consents_too_many" } };
  const { startedAtSeconds } = pending;
  // What was asked before the user's tokens were ended has ended with them; this asks again, by the same link.
  if (
    subject !== undefined &&
    (await endings.isEnded(foreignKeys(hash.sha256, subject.origin, startedAtSeconds)))
  )
    await pendingConsents.replace({
      ...pending,
      version: pending.version + 1,
      ask: fresh.ask,
      startedAtSeconds: nowSeconds,
    });
  // RFC6749-5.2-12: the URI has only characters that a URI may have: our issuer, and base64url.
  return {
    errorUri: `${settings().issuer}/ask?r=${pending.id}`,
    asked: { pending: hash.sha256(pending.id) },
  };
}
