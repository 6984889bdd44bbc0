/**
 * The claims of a subject on their way: out of what its issuer says into a decision, and out of a new word of the issuer
 * into the ends of what rested on the old one.
 */
import type { Origin, Subject } from "../policy/access.ts";
import {
  type ClaimsWord,
  countedFor,
  lackOf,
  latestOf,
  readClaims,
  type SubjectClaims,
  textOfDemands,
} from "../policy/claims.ts";
import { type EndingKey, type EndingSelector, selectorKey, type TextDigest } from "../policy/endings.ts";
import { hasSubject, type Rule } from "../policy/rules.ts";
import type { TokenRecord } from "../records.ts";
import type { Settings } from "../settings/settings.ts";
import type { JsonObject } from "../spec/rfc8259.ts";

export type ClaimsSettings = Pick<Settings, "policy" | "trustedIssuers">;

/** Where the operator takes the claims of an issuer's users from. */
export type ClaimsSource = "token" | "sign_in" | "userinfo";

/** PCL-D-7, PCL-D-10: undefined where no rule demands anything of them, or the operator takes them from elsewhere. */
export function wordFrom(
  { policy, trustedIssuers }: ClaimsSettings,
  source: ClaimsSource,
  iss: string,
  claims: JsonObject,
  atSeconds: number,
): ClaimsWord | undefined {
  const wanted = policy.claims.get(iss);
  if (wanted === undefined) return undefined;
  const isTaken = trustedIssuers.get(iss)?.claimsFrom.includes(source);
  return isTaken ? readClaims(claims, wanted, atSeconds) : undefined;
}

/** PCL-D-7: what a token of another issuer says, where tokens say it; of one without a time nothing is young enough. */
export function claimsOfToken(
  settings: ClaimsSettings,
  iss: string,
  claims: JsonObject,
): SubjectClaims | undefined {
  const { iat } = claims;
  const word = wordFrom(settings, "token", iss, claims, typeof iat === "number" ? Math.floor(iat) : 0);
  return word && countedFor(word, secondsMaxOf(settings, iss));
}

/** What a question says that the issuer says now. */
export function claimsTold(
  settings: ClaimsSettings,
  iss: string,
  claims: JsonObject | undefined,
  nowSeconds: number,
): SubjectClaims | undefined {
  const wanted = settings.policy.claims.get(iss);
  return wanted && claims && countedFor(readClaims(claims, wanted, nowSeconds), secondsMaxOf(settings, iss));
}

const secondsMaxOf = ({ trustedIssuers }: ClaimsSettings, iss: string): number =>
  trustedIssuers.get(iss)?.claimsMaxSeconds ?? 0;

/** PCL-D-8: what counts of the subject by now: what it was judged by, or what its issuer has said since. */
export function claimsInForce(
  settings: ClaimsSettings,
  { origin: { iss }, claims }: Pick<Subject, "origin" | "claims">,
  word: ClaimsWord | undefined,
): SubjectClaims | undefined {
  const secondsMax = secondsMaxOf(settings, iss);
  const own = typeof claims === "object" ? claims : undefined;
  const untilSeconds = own && Math.min(own.untilSeconds, own.atSeconds + secondsMax);
  return latestOf(own && { ...own, untilSeconds: untilSeconds ?? 0 }, word && countedFor(word, secondsMax));
}

/** What the rule demands of the claims of its subjects. */
export const demandsOf = (rule: Rule | undefined) =>
  rule !== undefined && hasSubject(rule) ? rule.subjects.claims : undefined;

/**
 * PCL-D-9: whether what was issued by the rule still meets it, by what its issuer said last. A word that is stale gives
 * nothing new, and takes nothing by itself.
 */
export function meetsClaims(
  settings: ClaimsSettings,
  rule: Rule,
  record: TokenRecord,
  word: ClaimsWord | undefined,
  nowSeconds: number,
): boolean {
  const demands = demandsOf(rule);
  if (demands === undefined) return true;
  const inForce = claimsInForce(settings, record, word?.stale ? undefined : word);
  return lackOf(demands, inForce, nowSeconds) === undefined;
}

/** PCL-D-9: what rules demand of this user, as a name by which it ends; it tells no value. */
export const claimsSelector = (sha256: TextDigest, { iss, sub }: Origin, demands: string) =>
  ({ by: "claims", iss, sub, demands: sha256(demands) }) satisfies EndingSelector;

/** The same as a key of what rests on the rule, since that time. */
export function keysOfClaims(
  sha256: TextDigest,
  origin: Origin,
  rule: Rule,
  sinceSeconds: number,
): readonly EndingKey[] {
  const demands = demandsOf(rule);
  if (demands === undefined) return [];
  const selector = claimsSelector(sha256, origin, textOfDemands(demands));
  return [{ key: selectorKey(sha256, selector), sinceMs: sinceSeconds * 1000 }];
}
