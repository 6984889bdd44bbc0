/** What the claims of a grant come to here: the same for a grant and for a question about one. */
import type { Subject } from "../../policy/ask.ts";
import type { Ports } from "../../ports.ts";
import type { Result } from "../../result.ts";
import { err, ok } from "../../result.ts";
import type { TrustedIssuer } from "../../settings/settings.ts";
import { checkIdJag } from "../../spec/id-jag.ts";
import type { Jws } from "../../spec/rfc7515.ts";
import type { CheckedGrant, GrantProfile } from "../../spec/rfc7523.ts";
import { checkGrant } from "../../spec/rfc7523.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { mapSubject, readActors } from "./subject.ts";

export type TrustedGrant = { issuer: TrustedIssuer; grant: CheckedGrant };

/** RFC8725-3.8-v1, IDC-2.4.2-4: `iss` only chooses among those that are trusted for this. */
export function grantIssuer(
  { settings }: Pick<Ports, "settings">,
  name: string,
  profile: GrantProfile,
): Result<TrustedIssuer, { reason: string }> {
  const issuer = settings().trustedIssuers.get(name);
  if (issuer?.grants === undefined) return err({ reason: "issuer_not_trusted_for_grants" });
  if (!issuer.grants.profiles.includes(profile)) return err({ reason: "grant_profile_not_accepted" });
  return ok(issuer);
}

/** What it says, measured by its profile; nothing of its signature. */
export function checkGrantClaims(
  ports: Pick<Ports, "settings" | "clock">,
  issuer: TrustedIssuer,
  jws: Pick<Jws, "claims">,
  clientId: string,
  profile: GrantProfile,
): Result<TrustedGrant, { reason: string }> {
  const { issuer: us, assertionAudiences: audiences, skewSeconds } = ports.settings();
  const rule = { clientId, nowSeconds: ports.clock.nowSeconds(), skewSeconds };
  const requireClientId = issuer.grants?.requireClientId ?? true;
  const grant =
    profile === "id-jag"
      ? checkIdJag(jws, { ...rule, issuer: us })
      : checkGrant(jws, { ...rule, audiences, requireClientId });
  return grant.ok ? ok({ issuer, grant: grant.value }) : err({ reason: grant.error.kind });
}

export type ReadGrant = {
  /** Our `sub` of the subject (IDC-2.4.2-3, IDJAG-4.1-1). */
  sub: string;
  subject: Subject;
  resources: readonly string[];
};

export async function readGrant(
  ports: Pick<Ports, "settings" | "clients">,
  issuer: TrustedIssuer,
  { subject: foreign, scope, resources, expiresAtSeconds, audience }: CheckedGrant,
  claims: JsonObject,
): Promise<Result<ReadGrant, { reason: string }>> {
  const mapped = await mapSubject(ports, issuer, foreign);
  if (!mapped.ok) return mapped;
  const actors = readActors(claims, issuer.issuer);
  if (!actors.ok) return actors;
  // RFC8693-4.1-6: its current actor becomes ours; who acts by our name is for nobody else to say.
  if (actors.value.chain[0]?.iss === ports.settings().issuer) return err({ reason: "act_names_our_actor" });
  const { sub, origin } = mapped.value;
  const subject: Subject = {
    origin,
    audiences: [audience],
    // IDJAG-4.4.1-6: no word on scope gives what the operator set for that, never everything.
    scopes: scope ?? issuer.grants?.scopes ?? [],
    expiresAtSeconds,
    issuer: issuer.issuer,
    tokenType: "grant",
    ...actors.value,
  };
  return ok({ sub, subject, resources });
}
