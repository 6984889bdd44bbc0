/** What the claims of a subject token come to: the same for a verified token and for a question about one. */
import type { Origin, Subject } from "../../policy/ask.ts";
import { apiAudience } from "../../policy/own-target.ts";
import type { Ports } from "../../ports.ts";
import type { Result } from "../../result.ts";
import { err, ok } from "../../result.ts";
import type { TrustedIssuer } from "../../settings/settings.ts";
import { parseScope } from "../../spec/rfc6749.ts";
import type { Times } from "../../spec/rfc7519.ts";
import {
  audiences,
  checkAudienceContains,
  checkTimes,
  stringClaim,
  stringOrUriClaim,
} from "../../spec/rfc7519.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { isJsonObject } from "../../spec/rfc8259.ts";
import { parseAct } from "../../spec/rfc8693.ts";

type Refused = { reason: string };

/** What goes in at our own endpoints is never traded for anything else. */
export function checkOwnSubject(issuer: string, subject: Subject): Result<Subject, Refused> {
  const forUs = subject.audiences.includes(apiAudience(issuer));
  return forUs ? err({ reason: "token_for_own_endpoints" }) : ok(subject);
}

/** PROD-4.1-27: the unverified `iss` only chooses among configured issuers. */
export function findIssuer(
  ports: Pick<Ports, "settings">,
  claims: JsonObject,
): Result<TrustedIssuer, Refused> {
  const iss = stringClaim(claims, "iss");
  const issuer = iss.ok ? ports.settings().trustedIssuers.get(iss.value) : undefined;
  return issuer === undefined ? err({ reason: "issuer_unknown" }) : ok(issuer);
}

/** What the claims of a trusted issuer's token come to: the same for a token and for a question about one. */
export async function readForeignClaims(
  ports: Pick<Ports, "settings" | "clock" | "clients">,
  issuer: TrustedIssuer,
  claims: JsonObject,
  tokenType: "jwt" | "id_token",
): Promise<Result<{ sub: string; subject: Subject }, Refused>> {
  // RFC7519-4.1.3-v1: it was meant for us.
  const meant = checkAudienceContains(claims, issuer.audiences);
  if (!meant.ok) return err({ reason: meant.error.kind });
  const times = checkForeignTimes(ports, issuer, claims);
  if (!times.ok) return times;
  const foreign = stringOrUriClaim(claims, "sub");
  if (!foreign.ok) return err({ reason: foreign.error.kind });
  const mapped = await mapSubject(ports, issuer, foreign.value);
  if (!mapped.ok) return mapped;
  const scopes = scopesOf(claims, issuer.scopes);
  if (!scopes.ok) return scopes;
  const actors = readActors(claims, issuer.issuer);
  if (!actors.ok) return actors;
  const { sub, origin } = mapped.value;
  const subject = {
    origin,
    audiences: audienceList(claims),
    scopes: scopes.value,
    expiresAtSeconds: Math.floor(times.value.exp),
    issuer: issuer.issuer,
    tokenType,
    ...actors.value,
  };
  return ok({ sub, subject });
}

export function checkForeignTimes(
  ports: Pick<Ports, "settings" | "clock">,
  { maxAgeSeconds }: TrustedIssuer,
  claims: JsonObject,
): Result<Times, Refused> {
  const times = checkTimes(claims, {
    nowSeconds: ports.clock.nowSeconds(),
    skewSeconds: ports.settings().skewSeconds,
    ...(maxAgeSeconds !== undefined && { ageSecondsMax: maxAgeSeconds }),
  });
  return times.ok ? times : err({ reason: times.error.kind });
}

/** Who acted so far, and who may act next. */
export function readActors(
  claims: JsonObject,
  issuer: string,
): Result<Pick<Subject, "chain" | "mayAct">, Refused> {
  const chain = parseAct(claims.act, issuer);
  if (!chain.ok) return err({ reason: chain.error.kind });
  const { may_act: mayAct } = claims;
  if (mayAct !== undefined && !isJsonObject(mayAct)) return err({ reason: "may_act_malformed" });
  return ok({ chain: chain.value, ...(mayAct !== undefined && { mayAct }) });
}

/** A URL or a SPIFFE ID. */
const LIKE_A_MACHINE = /^[a-z][a-z0-9+.-]*:\/\//i;

/** RFC7519-4.1.2-v1, RFC9068-5-1: our `sub` of a foreign subject, never one that a client or workload could have. */
export async function mapSubject(
  ports: Pick<Ports, "clients">,
  { issuer, subjects, disabledSubjects }: TrustedIssuer,
  foreign: string,
): Promise<Result<{ sub: string; origin: Origin }, Refused>> {
  if (disabledSubjects.has(foreign)) return err({ reason: "subject_disabled" });
  // RFC6749-10.14-1: a name is shown to people and kept in stores; control characters have no place in it.
  if (/\p{Cc}/u.test(foreign) || !foreign.isWellFormed()) return err({ reason: "sub_malformed" });
  if (LIKE_A_MACHINE.test(foreign)) return err({ reason: "sub_looks_like_machine" });
  let sub: string | undefined;
  if (subjects.kind === "keep") {
    const { reservedPrefixes, reserved } = subjects;
    const taken = reserved.has(foreign) || reservedPrefixes.some((prefix) => foreign.startsWith(prefix));
    if (taken) return err({ reason: "sub_belongs_to_another_issuer" });
    sub = foreign;
  }
  if (subjects.kind === "prefix") sub = `${subjects.prefix}${foreign}`;
  if (subjects.kind === "table") sub = subjects.table.get(foreign);
  if (sub === undefined) return err({ reason: "sub_not_mapped" });
  if (LIKE_A_MACHINE.test(sub)) return err({ reason: "sub_looks_like_machine" });
  if ((await ports.clients.find(sub)) !== undefined) return err({ reason: "sub_looks_like_machine" });
  return ok({ sub, origin: { iss: issuer, sub: foreign } });
}

/** What the token permits: its `scope`, else what the operator says that a token without one permits. */
export function scopesOf(
  claims: JsonObject,
  otherwise: readonly string[],
): Result<readonly string[], Refused> {
  if (claims.scope === undefined) return ok(otherwise);
  // RFC8693-4.2-1: one string, never an array.
  const scopes = typeof claims.scope === "string" ? parseScope(claims.scope) : undefined;
  return scopes?.ok ? scopes : err({ reason: "scope_malformed" });
}

export function audienceList(claims: JsonObject): readonly string[] {
  const named = audiences(claims);
  return named.ok ? named.value : [];
}
