/** Checks of what rules demand of the claims of their subjects (PCL-D-6): what the provider of these users does not say. */
import { type ConfiguredParties, member } from "./parties.ts";
import { hasSubject, type Rule } from "./rules.ts";

const ENTRA = /^https:\/\/(?:login\.microsoftonline\.com|sts\.windows\.net)\//;
const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Users and their administrators change these as they like. */
const CHOSEN: readonly string[] = ["/email", "/name", "/preferred_username", "/upn", "/nickname"];

export function* warnOfClaims(
  rule: Rule,
  { trustedIssuers }: Pick<ConfiguredParties, "trustedIssuers">,
): Generator<string> {
  if (!hasSubject(rule) || rule.subjects.claims === undefined) return;
  const [issuer = ""] = rule.subjects.issuers;
  const { claimsFrom = [] } = member(trustedIssuers, issuer) ?? {};
  if (claimsFrom.length === 0)
    yield `can never match: it demands claims of ${JSON.stringify(issuer)}, of which none are taken: set "claimsFrom" of that issuer`;
  for (const [at, texts] of Object.entries(rule.subjects.claims)) {
    if (CHOSEN.includes(at))
      yield `demands ${at}, which names a person and is changed by them or their administrator: use subjects.subs, or a group`;
    if (at === "/groups" && issuer === "https://accounts.google.com")
      yield "demands /groups of Google, whose ID tokens have no groups: use /hd, or a provider that adds them";
    if (at === "/groups" && ENTRA.test(issuer) && !texts.every((one) => GUID.test(one)))
      yield "demands a name in /groups of Entra, which sends object ids unless its app says otherwise: use the id, which no renamed or new group has";
    if (/^\/(?:realm|resource)_access\//.test(at) && !claimsFrom.includes("token"))
      yield `demands ${at}, which Keycloak puts into access tokens alone: add the mapper to its ID tokens, or take "token" into "claimsFrom"`;
  }
}
