/**
 * What the provider of a user says of their groups and other claims, as far as rules demand something of them: at the
 * sign-in, and each time it is asked about the user.
 */
import { keptWord, lossEntry, type WordPorts } from "../../flows/claims-word.ts";
import type { EndingEvent } from "../../flows/endings.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { wordFrom } from "../../flows/subject-claims.ts";
import type { Origin } from "../../policy/access.ts";
import { type ClaimsWord, unmetDemands } from "../../policy/claims.ts";
import type { BasePorts, Ports } from "../../ports.ts";
import type { SubjectWord } from "../../records.ts";
import { defined } from "../../result.ts";
import type { Provider, Settings } from "../../settings/settings.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { PeoplePorts } from "../ports.ts";
import type { ProviderTokens } from "../spec/oidc.ts";

type HearPorts = BasePorts & Pick<PeoplePorts, "providers">;

/** PCL-D-7: whether a sign-in at this issuer says something that rules demand. */
export const isHeard = ({ policy, trustedIssuers }: Settings, iss: string): boolean =>
  policy.claims.has(iss) && trustedIssuers.get(iss)?.claimsFrom.some((one) => one !== "token") === true;

/**
 * PCL-D-8: by the claims of a verified ID token, or by the userinfo endpoint, once; undefined where neither says anything.
 */
export async function hearClaims(
  { settings, clock, providers }: HearPorts,
  { name, issuer }: Provider,
  origin: Origin,
  { accessToken }: Pick<ProviderTokens, "accessToken">,
  idClaims: JsonObject | undefined,
): Promise<ClaimsWord | undefined> {
  if (!isHeard(settings(), issuer)) return undefined;
  const nowSeconds = clock.nowSeconds();
  const { iat } = idClaims ?? {};
  // PCL-D-8: dated as subject tokens are, which are compared with it. An ID token of a refresh may name any time.
  const atSeconds = Math.min(
    typeof iat === "number" ? Math.floor(iat) : 0,
    nowSeconds + settings().clockSkewSeconds,
  );
  const told = idClaims && wordFrom(settings(), "sign_in", issuer, idClaims, atSeconds);
  if (told !== undefined || accessToken === undefined) return told;
  const { claimsFrom = [], subjectClaim } = settings().trustedIssuers.get(issuer) ?? {};
  if (!claimsFrom.includes("userinfo")) return undefined;
  const info = await providers.userInfo(name, accessToken);
  if (!info.ok) return undefined;
  // PCL-D-8: it is about this user, or nothing of it counts.
  const sub = idClaims?.sub ?? (subjectClaim === "sub" ? origin.sub : undefined);
  if (sub === undefined || info.value.sub !== sub) return undefined;
  return wordFrom(settings(), "userinfo", issuer, info.value, nowSeconds);
}

/** PCL-D-9: the word as it is kept; what it no longer lets ends first. */
export async function keepWord(
  ports: WordPorts & Pick<Ports, "journal">,
  origin: Origin,
  word: ClaimsWord,
  request: AuditedRequest | undefined,
): Promise<SubjectWord> {
  const wanted = ports.settings().policy.claims.get(origin.iss);
  const unmet = wanted && unmetDemands(wanted, word);
  const by = defined<EndingEvent>({ reason: "claims_differ", request });
  const loss = unmet && (await lossEntry(ports, origin, word, (one) => unmet.has(one), by));
  if (loss !== undefined) await ports.journal.record(loss);
  return keptWord(ports, origin, word);
}
