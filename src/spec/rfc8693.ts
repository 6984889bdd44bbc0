/**
 * RFC 8693, OAuth 2.0 Token Exchange: https://www.rfc-editor.org/rfc/rfc8693.html
 * Covers 2.1 request, 3 token type identifiers, 4.1 act, 4.4 may_act.
 */

import { ACT_BYTES_MAX, ACT_HOPS_MAX } from "../limits.ts";
import type { Result } from "../result.ts";
import { defined, err, ok } from "../result.ts";
import type { Form } from "./rfc6749.ts";
import type { Json, JsonObject } from "./rfc8259.ts";
import { isJsonObject } from "./rfc8259.ts";

/** RFC8693-2.1-1: the one value that asks for an exchange. */
export const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

// RFC8693-3-1: URIs, compared exactly.
export const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
export const JWT = "urn:ietf:params:oauth:token-type:jwt";
export const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
/** RFC8693-3-2: of draft-ietf-oauth-identity-assertion-authz-grant-04. */
export const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

// --- request (2.1) ----------------------------------------------------------------------------------------------

export type SubjectTokenType = typeof ACCESS_TOKEN | typeof JWT | typeof ID_TOKEN;

export type ActorTokenType = typeof JWT | typeof ACCESS_TOKEN;

/** `jwt` is a plain authorization grant for another server. */
export type RequestedType = "access_token" | "jwt" | "id-jag";

export type Exchange = {
  subjectToken: string;
  subjectTokenType: SubjectTokenType;
  /** Absent: impersonation. A JWT is a JWT-SVID. */
  actor?: { token: string; type: ActorTokenType };
  /** Absent: the kind of target decides (RFC8693-2.1-14). */
  requestedType?: RequestedType;
};

export type ExchangeFailure =
  | { kind: "subject_token_missing" }
  | { kind: "subject_token_type_missing" }
  | { kind: "subject_token_type_unsupported" }
  | { kind: "actor_token_empty" }
  | { kind: "actor_token_type_missing" }
  | { kind: "actor_token_type_alone" }
  | { kind: "actor_token_type_unsupported" }
  | { kind: "requested_token_type_unsupported" }
  | { kind: "id_jag_audience_missing" }
  | { kind: "id_jag_audience_several" };

const SUBJECT_TYPES: readonly string[] = [ACCESS_TOKEN, JWT, ID_TOKEN] satisfies SubjectTokenType[];
const REQUESTED_TYPES: ReadonlyMap<string, RequestedType> = new Map([
  [ACCESS_TOKEN, "access_token"],
  [JWT, "jwt"],
  [ID_JAG, "id-jag"],
]);

export function parseExchange(form: Form): Result<Exchange, ExchangeFailure> {
  const { subject_token: subjectToken, subject_token_type: subjectTokenType } = form;
  const { actor_token: actorToken, actor_token_type: actorTokenType } = form;
  // RFC8693-2.1-15, RFC8693-2.1-16
  if (subjectToken === undefined) return err({ kind: "subject_token_missing" });
  if (subjectTokenType === undefined) return err({ kind: "subject_token_type_missing" });
  if (!isSubjectType(subjectTokenType)) return err({ kind: "subject_token_type_unsupported" });
  // PROD-3-11: who sent the parameter meant to delegate; an empty one never becomes an impersonation.
  if (form.empty.has("actor_token") || form.empty.has("actor_token_type")) {
    return err({ kind: "actor_token_empty" });
  }
  // RFC8693-2.1-18, RFC8693-2.1-19: the type comes with an actor token, and only with one.
  if (actorToken !== undefined && actorTokenType === undefined) {
    return err({ kind: "actor_token_type_missing" });
  }
  if (actorToken === undefined && actorTokenType !== undefined)
    return err({ kind: "actor_token_type_alone" });
  // PROD-4.1-28
  if (actorTokenType !== undefined && !isActorType(actorTokenType)) {
    return err({ kind: "actor_token_type_unsupported" });
  }
  const actor =
    actorToken === undefined || actorTokenType === undefined
      ? undefined
      : { token: actorToken, type: actorTokenType };
  const { requested_token_type: requested } = form;
  const requestedType = requested === undefined ? undefined : REQUESTED_TYPES.get(requested);
  // RFC8693-3-1
  if (requested !== undefined && requestedType === undefined) {
    return err({ kind: "requested_token_type_unsupported" });
  }
  // IDJAG-4.3-1: `resource` names the API there, so the server has to be named by itself, and one only.
  if (requestedType === "id-jag" && form.audience.length !== 1) {
    return err({ kind: form.audience.length === 0 ? "id_jag_audience_missing" : "id_jag_audience_several" });
  }
  return ok(defined<Exchange>({ subjectToken, subjectTokenType, actor, requestedType }));
}

const isActorType = (type: string): type is ActorTokenType => type === JWT || type === ACCESS_TOKEN;
const isSubjectType = (type: string): type is SubjectTokenType => SUBJECT_TYPES.includes(type);

// --- act (4.1) --------------------------------------------------------------------------------------------------

/** One actor of a chain. Without `iss` it is named by the issuer of the token around it (RFC8693-4.1-2). */
export type Hop = { sub: string; iss?: string };
/** A chain, current actor first (RFC8693-4.1-5), every hop with its issuer. */
export type Chain = readonly Required<Hop>[];

export type ActFailure = { kind: "act_malformed" } | { kind: "act_too_deep" } | { kind: "act_too_large" };

/** Reads the `act` claim of a token of `issuer`; absent: an empty chain. */
export function parseAct(act: Json | undefined, issuer: string): Result<Chain, ActFailure> {
  const chain: Required<Hop>[] = [];
  for (let level = act; level !== undefined; ) {
    if (!isJsonObject(level)) return err({ kind: "act_malformed" });
    const { sub, iss = issuer, act: next } = level;
    if (typeof sub !== "string" || sub === "" || typeof iss !== "string" || iss === "") {
      return err({ kind: "act_malformed" });
    }
    // RFC8693-4.1-3, RFC8693-4.1-4: a hop is its identity; whatever else it carries means nothing here.
    chain.push({ sub, iss });
    if (chain.length > ACT_HOPS_MAX) return err({ kind: "act_too_deep" });
    level = next;
  }
  return fitsAct(chain) ? ok(chain) : err({ kind: "act_too_large" });
}

/** PROD-4.1v6-6: by its bytes, on entry and again with the new hop. */
export function fitsAct(chain: Chain): boolean {
  return new TextEncoder().encode(JSON.stringify(chain)).length <= ACT_BYTES_MAX;
}

/** The `act` claim for a chain in a token of `issuer`: hops of other issuers keep theirs (RFC8693-4.1-2). */
export function buildAct(chain: Chain, issuer: string): JsonObject | undefined {
  let act: JsonObject | undefined;
  // RFC8693-4.1-5: the first actor ends up deepest, the current one outermost.
  for (const { sub, iss } of chain.toReversed()) {
    act = defined<JsonObject>({ sub, iss: iss === issuer ? undefined : iss, act });
  }
  return act;
}

// --- may_act (4.4) ----------------------------------------------------------------------------------------------

/**
 * Whether the party may act for the subject of a token of `tokenIssuer` that carries this claim.
 * RFC8693-4.4-1: an object of identity claims; anything else names nobody. RFC8693-4.4-3: no other claim counts.
 */
export function mayActNames(mayAct: Json, party: Required<Hop>, tokenIssuer: string): boolean {
  if (!isJsonObject(mayAct) || mayAct.sub !== party.sub) return false;
  // Of our names only URLs and SPIFFE IDs mean the same everywhere (PROD-2.1-2); a plain client_id is ours alone.
  const globallyUnique = party.sub.includes("://");
  if (mayAct.iss === undefined) return globallyUnique || tokenIssuer === party.iss;
  return mayAct.iss === party.iss;
}
