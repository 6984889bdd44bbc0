/**
 * OAuth Identity and Authorization Chaining Across Domains, draft-ietf-oauth-identity-chaining-17.
 * Covers 2.3 the grant for another domain, 2.5 the claims and subjects it carries. A grant from another domain (2.4) is
 * checked by the criteria of RFC 7523 section 3: rfc7523.ts.
 * Elsewhere: IDC 2.3.1 flows/order/read-order.ts, policy/question.ts; IDC 2.3.3 flows/issue.ts, policy/decide.ts,
 * spec/rfc9068.ts; IDC 2.4.1 flows/redeem-grant.ts; IDC 2.4.2 flows/order/grant.ts, flows/order/order.ts,
 * flows/token-request.ts, http/errors.ts, spec/rfc7523.ts; IDC 2.5 policy/decision.ts, policy/targets.ts; IDC 3
 * http/discovery.ts, spec/rfc8414.ts; IDC 5.3 policy/judge.ts; IDC 5.5 adapters/audit/journal.ts,
 * adapters/store/journal-statements.ts, flows/issued-entry.ts, flows/order/grant.ts, flows/refusal.ts,
 * policy/rule-members.ts, records.ts, spec/rfc7523.ts.
 */

import { STRING_BYTES_MAX } from "../limits/input.ts";
import { CLAIM_VALUES_MAX } from "../limits/tokens.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { fitsBytes, type Json, type JsonObject } from "./rfc8259.ts";
import { type AccessToken, claimNames, claimsBuilder, type Stated } from "./rfc9068.ts";

export const DRAFT = "draft-ietf-oauth-identity-chaining-17";

/** RFC8725-3.11-v1: the draft defines no type, so we define one (PROD-4.1v8-4). */
export const GRANT_TYP = "authz-grant+jwt";

// --- issued (2.3) -----------------------------------------------------------------------------------------------

/** As an access token of the server that is its audience; `subject` is the `sub` there. */
export type Grant = Omit<AccessToken, "clientId" | "authTimeSeconds" | "acr"> & {
  /** The client's `client_id` at the other server, if it has one there. */
  clientIdThere?: string;
  /** Claims of the subject token that `transcribe` let through. */
  claims: JsonObject;
};

const buildOwnClaims = claimsBuilder("inGrant");

/** The claims of a grant, in the same order as those of an access token. */
export function buildGrantClaims(grant: Grant): JsonObject {
  const own = buildOwnClaims(defined<Stated>({ ...grant, clientId: grant.clientIdThere }));
  // IDC-2.5-2: claims carried over come last and never replace our own.
  return { ...own, ...grant.claims, ...own };
}

// --- claims and subjects (2.5) ----------------------------------------------------------------------------------

/** Claims with a meaning between servers, or by which kinds of JWT are told apart; they are never carried over. */
export const OWN_CLAIMS: ReadonlySet<string> = new Set([
  ...claimNames("inGrant"),
  "nbf",
  "resource",
  "requested_cnf",
  "sub_id",
  "aud_sub",
  "tenant",
  "aud_tenant",
  "azp",
  "nonce",
  "at_hash",
  "c_hash",
  "events",
  "htm",
  "htu",
]);

/**
 * IDC-2.5-4: the claims in `allowed` that have a simple value (a boolean, a number, a short string or a short list of
 * them); no others leave this domain.
 */
export function transcribe(claims: JsonObject, allowed: readonly string[]): JsonObject {
  const carried = allowed.flatMap((name) => {
    const value = claims[name];
    return value !== undefined && !OWN_CLAIMS.has(name) && isSimple(value) ? [[name, value] as const] : [];
  });
  return Object.fromEntries(carried);
}

function isSimple(value: Json): boolean {
  if (Array.isArray(value)) return value.length <= CLAIM_VALUES_MAX && value.every(isShortString);
  return typeof value === "boolean" || Number.isFinite(value) || isShortString(value);
}

const isShortString = (value: Json): boolean =>
  typeof value === "string" && fitsBytes(value, STRING_BYTES_MAX);

/** How our `sub` is turned into the `sub` that the same user has at the other server. */
export type SubjectThere = "keep" | { prefix: string } | { table: ReadonlyMap<string, string> };

/**
 * IDC-2.5-3, IDJAG-5-2: a table holds pairwise identifiers; a subject that it lacks has no identity at the other
 * server.
 */
export function mapSubjectThere(
  sub: string,
  mapping: SubjectThere,
): Result<string, { kind: "subject_unknown_there" }> {
  if (mapping === "keep") return ok(sub);
  if ("prefix" in mapping) return ok(`${mapping.prefix}${sub}`);
  const there = mapping.table.get(sub);
  return there === undefined ? err({ kind: "subject_unknown_there" }) : ok(there);
}
