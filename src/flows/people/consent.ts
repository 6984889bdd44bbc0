/** The consent record that a user's decision on our page makes, or changes: the one that the policy knows (PROD-2.6-4). */
import type { Allowed, Consent } from "../../policy/ask.ts";
import type { Ports } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { Client, SignInSettings } from "../../settings/settings.ts";
import type { AuditedRequest } from "../refusal.ts";
import type { OpenSession } from "./session.ts";
import { describeAsked } from "./session.ts";

/** Of consents that a page recorded, so that it never changes one that the user or an administrator recorded by API. */
const PREFIX = "page-";

/** One retry, in case the same consent is changed by another request at the same time. */
const ATTEMPTS_MAX = 2;

export type Given = {
  session: OpenSession;
  client: Client;
  offer: Allowed;
  /** Of the offer, what the user gives. */
  given: readonly string[];
};

/** The id of the consent; undefined if others changed it at the same time, again and again. */
export async function recordConsent(
  ports: Ports,
  { consentSeconds }: SignInSettings,
  note: AuditedRequest,
  { session, client, offer, given }: Given,
): Promise<string | undefined> {
  const { policy } = ports.settings();
  const target = offer.target.names[0] ?? "";
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const nowSeconds = ports.clock.nowSeconds();
    const standing = await ports.facts.consents(session.origin, client.clientId, nowSeconds);
    const before = standing.find(
      ({ id, targets }) =>
        id.startsWith(PREFIX) && targets.every((name) => policy.targets.get(name) === offer.target),
    );
    // What was given before and not asked about now stays; what was asked about is as the user answered.
    const kept = before?.scopes.filter((one) => !offer.scope.includes(one)) ?? [];
    const consent: Consent = {
      id: before?.id ?? `${PREFIX}${ports.random.id()}`,
      version: (before?.version ?? 0) + 1,
      origin: session.origin,
      actor: client.clientId,
      targets: [target],
      scopes: [...kept, ...given],
      expiresAtSeconds: nowSeconds + consentSeconds,
    };
    const { id, version, scopes, expiresAtSeconds } = consent;
    const recorded = await ports.journal.record({
      event: {
        type: "consent.recorded",
        outcome: "allow",
        reason: "by_subject",
        request: note,
        ...describeAsked(client, session),
        policy: { digest: policy.digest, rule_id: offer.rule.id, consent: id },
        detail: defined({
          ...session.origin,
          version,
          actor: client.clientId,
          targets: [target],
          scope: scopes.join(" "),
          expires_at: expiresAtSeconds,
        }),
      },
      consent: before === undefined ? { add: consent } : { replace: consent },
    });
    if (recorded.ok) return id;
  }
  return undefined;
}
