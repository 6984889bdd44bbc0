/**
 * Workload Authorization Grant, draft-carleton-workload-authz-grant-02, and MCP Workload Identity Federation (SEP-1933).
 * Covers WAG 4 the name of an agent, 5.1 the claims of its platform's JWT, 6 the registrations of platforms.
 */
import { PLATFORM_ID_BYTES_MAX, WORKLOAD_NAME_CLAIMS_MAX, WORKLOAD_SUB_CHARS_MAX } from "../limits/input.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { parseScope } from "./rfc6749.ts";
import type { Jws } from "./rfc7515.ts";
import {
  type AudienceFailure,
  type ClaimFailure,
  checkSoleAudience,
  checkTimes,
  numberClaim,
  stringClaim,
  type TimeFailure,
} from "./rfc7519.ts";
import { type BoundTo, readConfirmation } from "./rfc7800.ts";
import { isJsonObject, type Json, type JsonObject } from "./rfc8259.ts";
import { checkKind, checkType, type JwtTypeFailure } from "./rfc8725.ts";
import { parsePattern, parseSpiffeId } from "./spiffe/id.ts";

export const DRAFT = "draft-carleton-workload-authz-grant-02";

// --- the name of an agent ---------------------------------------------------------------------------------------

const SCHEME = "platform://";
const REGISTRATION = /^[a-z0-9.~-]{1,64}$/;
const SEGMENT = "(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+";
const PLATFORM_ID = new RegExp(
  `^platform://([a-z0-9.~-]{1,64})/(${SEGMENT}(?:/${SEGMENT}){0,${WORKLOAD_NAME_CLAIMS_MAX - 1}})$`,
);

export const isRegistrationName = (text: string): boolean => REGISTRATION.test(text);

/**
 * WAG-4-1, WAG-4-2: the agent is the pair of registration and `sub`, never `sub` alone. `sub` is one segment, in which
 * each character but the unreserved ones is escaped, `%` too, so that no two pairs have the same name. FEDC-D-11: in
 * place of `sub`, each claim that names the agent is a segment.
 */
export const platformId = (registration: string, ...named: readonly string[]): string =>
  `${SCHEME}${registration}/${named.map(escaped).join("/")}`;

/** FEDC-D-12: as UTF-8. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

function unescaped(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

export type PlatformId = {
  registration: string;
  /** `sub`, or the claims that name the agent. */
  named: readonly string[];
};

export function parsePlatformId(text: string): PlatformId | undefined {
  const match = text.length <= PLATFORM_ID_BYTES_MAX ? PLATFORM_ID.exec(text) : null;
  if (match === null) return undefined;
  const [, registration = "", segments = ""] = match;
  const named = segments.split("/").flatMap((one) => unescaped(one) ?? []);
  // A name has one spelling: what needs no escape has none.
  return named.every((one) => NAMEABLE.test(one)) && platformId(registration, ...named) === text
    ? { registration, named }
    : undefined;
}

/** FEDC-D-11: what the agent is named by, as one text, by which it is disabled and ended beside its `sub`. */
export const joinedName = (id: string): string | undefined => parsePlatformId(id)?.named.join("/");

export const isPlatformName = (text: string): boolean => text.startsWith(SCHEME);

/** Whether the text names one workload, by SPIFFE ID or as a platform's. */
export const isWorkloadName = (text: string): boolean =>
  parsePlatformId(text) !== undefined || (!text.endsWith("/*") && parsePattern(text).ok);

/** PLAT-D-8: a rule names a workload exactly, or by a prefix; of a platform that is a whole registration. */
export const isWorkloadPattern = (text: string): boolean =>
  parsePattern(text).ok ||
  parsePlatformId(text) !== undefined ||
  (isPlatformName(text) && text.endsWith("/*") && isRegistrationName(text.slice(SCHEME.length, -2)));

// --- registrations ----------------------------------------------------------------------------------------------

/** The roles in which a platform's JWT may come. */
export const WORKLOAD_USES = ["grant", "client", "actor", "subject"] as const;
export type WorkloadUse = (typeof WORKLOAD_USES)[number];

/** WIF-R-1: which tokens of a trusted issuer are those of workloads, and how they are accepted. */
export type PlatformRegistration = {
  name: string;
  issuer: string;
  uses: readonly WorkloadUse[];
  /** Each exact, or a prefix that ends in a star. */
  subjects: readonly string[];
  /** By JSON pointer, the values that a claim may have. */
  claims: ReadonlyMap<string, readonly (string | boolean)[]>;
  /** FEDC-D-11: the claims that name the workload, by JSON pointer; absent: `sub`. */
  namedBy?: readonly string[];
  /** Absent: this server's own names. */
  audiences?: readonly string[];
  types: readonly (string | undefined)[];
  maxLifeSeconds: number;
  maxAgeSeconds: number;
  /** Whether a token may be sent again while it is young enough. */
  reusable: boolean;
  /** The clients that may bring its grants, which then have to authenticate. */
  clients?: readonly string[];
  /** Whether `sub` may be a SPIFFE ID of a trust domain that is not configured here. */
  svid: boolean;
};

export type Match = { registration: PlatformRegistration; matched: JsonObject };

type NoMatch = { kind: "workload_not_registered" } | { kind: "workload_ambiguous"; names: string[] };

/**
 * WAG-6.1-2, PLAT-D-4: the one registration that the claims match; `registrations` are those of the issuer, which was
 * found by simple comparison of `iss`.
 */
export function matchRegistration(
  registrations: readonly PlatformRegistration[],
  claims: JsonObject,
): Result<Match, NoMatch> {
  const { sub } = claims;
  const found: Match[] = [];
  for (const registration of registrations) {
    // PROD-2.3-14: a JWT about its own issuer is that of a client.
    if (
      typeof sub !== "string" ||
      sub === registration.issuer ||
      !registration.subjects.some((one) => isSubject(one, sub))
    )
      continue;
    // WAG-6.3-1: a claim that is missing or different, such as that of a tenant, is no match. WAG-6.2-1: claims are read
    // by the registration alone, and mean nothing elsewhere.
    const matched = [...registration.claims].map(
      ([at, values]) => [at, values, claimAt(claims, at)] as const,
    );
    if (!matched.every(([, values, value]) => values.some((one) => one === value))) continue;
    found.push({
      registration,
      matched: Object.fromEntries(matched.map(([at, , value]) => [at, value as Json])),
    });
  }
  const [match, another] = found;
  if (match === undefined) return err({ kind: "workload_not_registered" });
  return another === undefined
    ? ok(match)
    : err({ kind: "workload_ambiguous", names: found.map(({ registration }) => registration.name) });
}

/** PLAT-D-15: whether the claims are those of a workload and of no user. */
export function isWorkload(registrations: readonly PlatformRegistration[], claims: JsonObject): boolean {
  const match = matchRegistration(registrations, claims);
  return match.ok || match.error.kind === "workload_ambiguous";
}

/** WAG-4-1: compared with case; a prefix ends at a delimiter, so `…:prod:*` does not match `…:prod-evil:x`. */
const isSubject = (pattern: string, sub: string): boolean =>
  pattern.endsWith("*")
    ? sub.startsWith(pattern.slice(0, -1)) && sub.length >= pattern.length
    : sub === pattern;

/** RFC 6901 3, of a member: the whole document is no claim. */
export const isPointer = (text: string): boolean => text.startsWith("/") && !/~(?![01])/.test(text);

/** RFC 6901: the value at a pointer through objects alone, since a list may hold more than was pinned. */
export function claimAt(claims: JsonObject, pointer: string): Json | undefined {
  let value: Json | undefined = claims;
  for (const token of pointer.split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** Whether a name that was given before is one that this registration gives now. */
export function takesName(
  { subjects, claims, namedBy }: PlatformRegistration,
  { named }: PlatformId,
): boolean {
  if (named.length !== (namedBy?.length ?? 1)) return false;
  return named.every((one, index) => {
    const pointer = namedBy?.[index];
    if (pointer === undefined) return subjects.some((pattern) => isSubject(pattern, one));
    return claims.get(pointer)?.includes(one) ?? true;
  });
}

/** Whether any platform's grant is accepted. */
export const takesWorkloadGrants = (registrations: ReadonlyMap<string, PlatformRegistration>): boolean =>
  registrations.values().some(({ uses }) => uses.includes("grant"));

// --- the claims -------------------------------------------------------------------------------------------------

export type CheckedWorkload = {
  sub: string;
  /** The name of the workload here. */
  id: string;
  audience: string;
  jti?: string;
  issuedAtSeconds: number;
  expiresAtSeconds: number;
  /** WAG-5.1-3: absent if the JWT does not limit what is granted. */
  scopes?: readonly string[];
  boundTo?: BoundTo;
};

type WorkloadFailure =
  | JwtTypeFailure
  | ClaimFailure
  | AudienceFailure
  | TimeFailure
  | WorkloadNameFailure
  | { kind: "workload_sub_refused" | "workload_acts_for_another" | "workload_token_of_another_kind" };

type WorkloadNameFailure = {
  kind: "workload_sub_too_long" | "workload_name_missing" | "workload_name_too_long";
};

/** Does not check the signature: the result counts only under a key of the registration's issuer (WAG-6.1-3). */
export function checkWorkload(
  { header, claims }: Pick<Jws, "header" | "claims">,
  registration: PlatformRegistration,
  rule: {
    audiences: readonly string[];
    nowSeconds: number;
    skewSeconds: number;
    isTrustDomain: (name: string) => boolean;
  },
): Result<CheckedWorkload, WorkloadFailure> {
  // PLAT-D-4: an access token, an ID-JAG or a security event of the same issuer is no workload's token.
  const type = checkType(header, registration.types);
  if (!type.ok) return type;
  // PLAT-D-15: an ID token, a security event and a logout token are of users, with the type JWT or with none. PLAT-D-12: a
  // workload speaks for itself alone.
  const kind = checkKind(claims, "workload");
  if (!kind.ok) {
    const isOfActor = kind.error.kind === "jwt_of_actor";
    return err({ kind: isOfActor ? "workload_acts_for_another" : "workload_token_of_another_kind" });
  }
  // RAR-D-7: details would have to limit what comes of it.
  if (claims.authorization_details !== undefined) return err({ kind: "workload_token_of_another_kind" });
  // PLAT-D-3, WAG-5.1-2: exactly one audience, one of those that are listed, byte for byte.
  const audience = checkSoleAudience(claims, registration.audiences ?? rule.audiences);
  if (!audience.ok) return audience;
  // PLAT-D-18: it was made for one tenant of its audience, and only the operator knows which of those this server is.
  if (claims.aud_tenant !== undefined && !registration.claims.has("/aud_tenant"))
    return err({ kind: "jwt_audience_refused" });
  // PLAT-D-5, WIF-S-3: both times are demanded, and bound life and age.
  const issuedAt = numberClaim(claims, "iat");
  if (!issuedAt.ok) return issuedAt;
  const times = checkTimes(claims, {
    nowSeconds: rule.nowSeconds,
    skewSeconds: rule.skewSeconds,
    lifetimeSecondsMax: registration.maxLifeSeconds,
    ageSecondsMax: registration.maxAgeSeconds,
  });
  if (!times.ok) return times;
  const sub = stringClaim(claims, "sub");
  if (!sub.ok) return sub;
  if ([...sub.value].length > WORKLOAD_SUB_CHARS_MAX) return err({ kind: "workload_sub_too_long" });
  if (!isWorkloadSub(sub.value, registration, rule.isTrustDomain))
    return err({ kind: "workload_sub_refused" });
  const id = nameOf(registration, sub.value, claims);
  if (!id.ok) return id;
  const jti = claims.jti === undefined ? undefined : stringClaim(claims, "jti");
  if (jti?.ok === false) return jti;
  const scopes = typeof claims.scope === "string" ? parseScope(claims.scope) : undefined;
  if (claims.scope !== undefined && !scopes?.ok) return err({ kind: "jwt_claim_malformed", claim: "scope" });
  return ok(
    defined<CheckedWorkload>({
      sub: sub.value,
      id: id.value,
      audience: audience.value,
      jti: jti?.value,
      issuedAtSeconds: Math.floor(issuedAt.value),
      expiresAtSeconds: Math.ceil(times.value.exp),
      scopes: scopes?.ok ? scopes.value : undefined,
      boundTo: readConfirmation(claims),
    }),
  );
}

/** FEDC-D-12: a branch or an environment may have any letters; what hides or reorders text is refused. */
const NAMEABLE = new RegExp(`^[^\\p{Cc}\\p{Bidi_Control}\\p{Cn}\\p{Cs}]{1,${WORKLOAD_SUB_CHARS_MAX}}$`, "u");

/** FEDC-D-11: by `sub`, or by the claims that the registration names it by, each of which is a text. */
function nameOf(
  { name, namedBy }: PlatformRegistration,
  sub: string,
  claims: JsonObject,
): Result<string, WorkloadNameFailure> {
  const named = namedBy?.map((pointer) => claimAt(claims, pointer)) ?? [sub];
  const isNameable = (one: Json | undefined): one is string => typeof one === "string" && NAMEABLE.test(one);
  if (!named.every(isNameable)) return err({ kind: "workload_name_missing" });
  const id = platformId(name, ...named);
  return id.length <= PLATFORM_ID_BYTES_MAX ? ok(id) : err({ kind: "workload_name_too_long" });
}

/**
 * PLAT-D-7: text that can be shown, and no name of another kind: a SPIFFE ID is a workload's that proves it by its SVID, unless
 * its trust domain is known by this registration alone.
 */
function isWorkloadSub(
  sub: string,
  { svid }: PlatformRegistration,
  isTrustDomain: (name: string) => boolean,
): boolean {
  if (!NAMEABLE.test(sub) || /^(platform|https):\/\//i.test(sub)) return false;
  if (!/^spiffe:/i.test(sub)) return true;
  const id = parseSpiffeId(sub);
  return svid && id.ok && !isTrustDomain(id.value.trustDomain);
}
