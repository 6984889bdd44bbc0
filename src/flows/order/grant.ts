/** Reads the claims of a grant (its subject, its scopes, the target that it names), verified or told by a question. */
import type { Reason, TokenReason } from "../../audit/reasons.ts";
import type { Subject } from "../../policy/access.ts";
import type { PolicySet } from "../../policy/rules.ts";
import type { Ports } from "../../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenOk } from "../../result.ts";
import { assertionAudiences, TOKEN_PATH } from "../../settings/audiences.ts";
import type { TrustedIssuer } from "../../settings/settings.ts";
import { checkIdJag } from "../../spec/id-jag.ts";
import { checkGrant, type GrantProfile, type NamedGrant } from "../../spec/rfc7523.ts";
import { readConfirmation } from "../../spec/rfc7800.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { claimsOfToken } from "../subject-claims.ts";
import type { ResolvedSubject } from "./order.ts";
import { detailsOf, foreignJob, foreignRoot, mapSubject, readActors } from "./subject.ts";

/** RFC8725-3.8-v1, IDC-2.4.2-4: `iss` only chooses among the issuers that are trusted for grants of this profile. */
export function grantIssuer(
  { settings }: Pick<Ports, "settings">,
  { issuer: name, profile }: NamedGrant,
): Result<TrustedIssuer, { reason: TokenReason }> {
  const issuer = settings().trustedIssuers.get(name);
  if (issuer?.grants === undefined) return err({ reason: "issuer_not_trusted_for_grants" });
  if (!issuer.grants.profiles.includes(profile)) return err({ reason: "grant_profile_not_accepted" });
  return ok(issuer);
}

/** The criteria of the profile, then the subject and the actors; type and signature are checked before. */
export function readGrant(
  ports: Pick<Ports, "settings" | "clock" | "clients">,
  issuer: TrustedIssuer,
  profile: GrantProfile,
  claims: JsonObject,
  clientId: string,
): Awaitable<Result<ResolvedSubject, { reason: TokenReason }>> {
  const settings = ports.settings();
  const { issuer: us, clockSkewSeconds: skewSeconds } = settings;
  const rule = { clientId, nowSeconds: ports.clock.nowSeconds(), skewSeconds };
  const requireClientId = issuer.grants?.requireClientId ?? true;
  const checked =
    profile === "id-jag"
      ? checkIdJag({ claims }, { ...rule, issuer: us })
      : checkGrant(
          { claims },
          { ...rule, audiences: assertionAudiences(settings, TOKEN_PATH), requireClientId },
        );
  if (!checked.ok) return err({ reason: checked.error.kind });
  const { subject: foreign, scope, resources, expiresAtSeconds, audience, jti } = checked.value;
  return whenOk(mapSubject(ports, issuer, foreign, claims), ({ sub, origin }) => {
    const details = detailsOf(claims, issuer.details);
    if (!details.ok) return details;
    const actors = readActors(claims, issuer.issuer, us);
    if (!actors.ok) return actors;
    // RFC8693-4.1-6: the current actor of the grant is that of our token, so no other issuer may name one of ours.
    if (actors.value.chain[0]?.iss === us) return err({ reason: "act_names_our_actor" });
    const subject = defined<Subject>({
      origin,
      audiences: [audience],
      // IDJAG-4.4.1-6: a grant without scope permits what the operator set for that case, never everything.
      scopes: scope ?? issuer.grants?.scopes ?? [],
      details: details.value,
      expiresAtSeconds,
      issuer: issuer.issuer,
      tokenType: "grant",
      boundTo: readConfirmation(claims),
      claims: claimsOfToken(settings, issuer.issuer, claims),
      ...actors.value,
    });
    const job = foreignJob(issuer, claims);
    if (!job.ok) return job;
    // IDC-5.5-2, EMA-7.4.2-2: the `jti` is kept as spent until the slowest clock has it expired.
    const spentUntil = expiresAtSeconds + skewSeconds;
    return ok(
      defined<ResolvedSubject>({
        sub,
        subject,
        resources,
        job: job.value,
        root: foreignRoot(issuer, claims),
        spends: { kind: "grant_fresh", issuer: issuer.issuer, jti, expiresAtSeconds: spentUntil },
      }),
    );
  });
}

/**
 * EMA-5.1-1, EMA-7.6.2-1: the target is the API that the grant names, letter by letter; of several it is the requested
 * one, by whatever name. A grant that names none is for the requested target, or for the client's default.
 */
export function grantTarget(
  resources: readonly string[],
  requested: string | undefined,
  otherwise: string | undefined,
  { targets }: Pick<PolicySet, "targets">,
): Result<string | undefined, { reason: Reason }> {
  const [first, ...more] = resources;
  if (first === undefined) return ok(requested ?? otherwise);
  // A partner is another authorization server and no API of ours.
  const isOurs = (name: string): boolean => targets.has(name) && targets.get(name)?.partner === undefined;
  if (!resources.every(isOurs)) return err({ reason: "grant_resource_unknown" });
  if (requested === undefined) {
    return more.length === 0 ? ok(first) : err({ reason: "grant_resources_several" });
  }
  const named = [requested, ...resources].find(
    (one) => resources.includes(one) && targets.get(one) === targets.get(requested),
  );
  return named === undefined ? err({ reason: "grant_resource_differs" }) : ok(named);
}
