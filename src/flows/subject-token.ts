/** The subject token of an exchange, by the rules of its declared type (RFC8693-2.1-20): ours, or a trusted issuer's. */
import type { Origin, Subject } from "../policy/decide.ts";
import type { Ports, TrustedIssuer } from "../ports.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { TokenNote } from "../spec/audit.ts";
import type { JsonObject } from "../spec/json.ts";
import { isJsonObject } from "../spec/json.ts";
import { parseScope } from "../spec/rfc6749.ts";
import type { Jws } from "../spec/rfc7515.ts";
import { parseJws } from "../spec/rfc7515.ts";
import {
  audiences,
  checkAudienceContains,
  checkTimes,
  stringClaim,
  stringOrUriClaim,
} from "../spec/rfc7519.ts";
import type { Exchange } from "../spec/rfc8693.ts";
import { ACCESS_TOKEN, ID_TOKEN, parseAct } from "../spec/rfc8693.ts";
import { checkAlgorithm, checkType, JWT_TYPES } from "../spec/rfc8725.ts";

export type VerifiedSubject = {
  /** `sub` as our tokens carry it. */
  sub: string;
  kind: "user" | "workload";
  subject: Subject;
  note: TokenNote;
  /** `jti` of the tokens of ours behind it, nearest first; empty for a foreign token. */
  ancestors: readonly string[];
};

type Refused = { reason: string };

export async function verifySubject(
  ports: Ports,
  exchange: Exchange,
): Promise<Result<VerifiedSubject, Refused>> {
  const jws = parseJws(exchange.subjectToken);
  if (!jws.ok) return err({ reason: jws.error.kind });
  // RFC8693-3-3: an access token is ours; a foreign one is not tried under another type.
  return exchange.subjectTokenType === ACCESS_TOKEN
    ? verifyOwn(ports, jws.value)
    : verifyForeign(ports, jws.value, exchange.subjectTokenType === ID_TOKEN ? "id_token" : "jwt");
}

async function verifyOwn(ports: Ports, jws: Jws): Promise<Result<VerifiedSubject, Refused>> {
  const { issuer, skewSeconds } = ports.settings();
  // RFC9068-4-6, RFC8725-3.12-1: of all that we sign, only this kind is an access token.
  const type = checkType(jws.header, JWT_TYPES.accessToken);
  if (!type.ok) return err({ reason: type.error.kind });
  if (jws.claims.iss !== issuer) return err({ reason: "issuer_not_ours" }); // RFC9068-4-8
  const key = ports.signer.own(jws.header);
  if (key === undefined) return err({ reason: "key_unknown" }); // RFC9068-4-12
  if (!(await ports.verifier.verify(jws, key))) return err({ reason: "signature_invalid" }); // RFC9068-4-10
  // RFC9068-4-13: our own clock wrote it, so it gets no leeway at its end.
  const times = checkTimes(jws.claims, { nowSeconds: nowSeconds(ports), skewSeconds, expSkewSeconds: 0 });
  if (!times.ok) return err({ reason: times.error.kind });
  const jti = stringClaim(jws.claims, "jti");
  if (!jti.ok) return err({ reason: jti.error.kind });
  const facts = await ports.facts.token(jti.value);
  // What we have no row of, we did not issue, whoever has our key.
  if (facts === undefined) return err({ reason: "token_unknown" });
  if (!facts.live) return err({ reason: "token_revoked" });
  const { record } = facts;
  return ok({
    sub: record.subject,
    kind: record.origin.iss === issuer ? "workload" : "user",
    subject: {
      origin: record.origin,
      audiences: [record.audience],
      scopes: record.scope.split(" "),
      expiresAtSeconds: record.expiresAtSeconds,
      chain: record.chain,
      issuer,
      ...(record.mayAct !== undefined && { mayAct: record.mayAct }),
    },
    note: describe(ports, jws, "access_token"),
    ancestors: [jti.value, ...record.ancestors],
  });
}

async function verifyForeign(
  ports: Ports,
  jws: Jws,
  as: "jwt" | "id_token",
): Promise<Result<VerifiedSubject, Refused>> {
  const { trustedIssuers, skewSeconds } = ports.settings();
  const { claims, header } = jws;
  // PROD-4.1-27: the unverified `iss` only chooses among configured issuers.
  const iss = stringClaim(claims, "iss");
  const issuer = iss.ok ? trustedIssuers.get(iss.value) : undefined;
  if (issuer === undefined) return err({ reason: "issuer_unknown" });
  if (!issuer.acceptAs.includes(as)) return err({ reason: "issuer_not_accepted_as_type" });
  const type = checkType(header, issuer.types);
  if (!type.ok) return err({ reason: type.error.kind });
  // B8725-3.1-1: the algorithms of this issuer, no others.
  const algorithm = checkAlgorithm(header, issuer.algorithms);
  if (!algorithm.ok) return err({ reason: algorithm.error.kind });
  const key = await ports.issuers.key(issuer.issuer, header);
  if (!key.ok) return err({ reason: `issuer_${key.error}` });
  if (!(await ports.verifier.verify(jws, key.value))) return err({ reason: "signature_invalid" });
  // RFC7519-4.1.3-v1: it was meant for us.
  const meant = checkAudienceContains(claims, issuer.audiences);
  if (!meant.ok) return err({ reason: meant.error.kind });
  const { maxAgeSeconds } = issuer;
  const times = checkTimes(claims, {
    nowSeconds: nowSeconds(ports),
    skewSeconds,
    ...(maxAgeSeconds !== undefined && { ageSecondsMax: maxAgeSeconds }),
  });
  if (!times.ok) return err({ reason: times.error.kind });
  const foreign = stringOrUriClaim(claims, "sub");
  if (!foreign.ok) return err({ reason: foreign.error.kind });
  const mapped = await mapSubject(ports, issuer, foreign.value);
  if (!mapped.ok) return mapped;
  const scopes = scopesOf(claims, issuer);
  if (!scopes.ok) return scopes;
  const chain = parseAct(claims.act, issuer.issuer);
  if (!chain.ok) return err({ reason: chain.error.kind });
  const mayAct = claims.may_act;
  if (mayAct !== undefined && !isJsonObject(mayAct)) return err({ reason: "may_act_malformed" });
  return ok({
    sub: mapped.value.sub,
    kind: "user",
    subject: {
      origin: mapped.value.origin,
      audiences: audienceList(claims),
      scopes: scopes.value,
      expiresAtSeconds: Math.floor(times.value.exp),
      chain: chain.value,
      issuer: issuer.issuer,
      ...(mayAct !== undefined && { mayAct }),
    },
    note: describe(ports, jws, as),
    ancestors: [],
  });
}

/** A URL or a SPIFFE ID. */
const LIKE_A_MACHINE = /^[a-z][a-z0-9+.-]*:\/\//i;

/** RFC7519-4.1.2-v1, RFC9068-5-1: our `sub` of a foreign subject, never one that a client or workload could have. */
async function mapSubject(
  ports: Ports,
  { issuer, subjects }: TrustedIssuer,
  foreign: string,
): Promise<Result<{ sub: string; origin: Origin }, Refused>> {
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
function scopesOf(claims: JsonObject, issuer: TrustedIssuer): Result<readonly string[], Refused> {
  if (claims.scope === undefined) return ok(issuer.scopes);
  // RFC8693-4.2-1: one string, never an array.
  const scopes = typeof claims.scope === "string" ? parseScope(claims.scope) : undefined;
  return scopes?.ok ? scopes : err({ reason: "scope_malformed" });
}

/** AUDIT-D-3: enough to find the token again, nothing that could be used as one. */
function describe(ports: Ports, { claims, signingInput }: Jws, type: string): TokenNote {
  const { jti, iat, exp, scope, client_id: clientId } = claims;
  const aud = audienceList(claims);
  return {
    type,
    fingerprint: ports.hash.sha256(signingInput),
    ...(typeof jti === "string" && { jti }),
    ...(typeof iat === "number" && { iat }),
    ...(typeof exp === "number" && { exp }),
    ...(aud.length > 0 && { aud }),
    ...(typeof scope === "string" && { scope }),
    ...(typeof clientId === "string" && { client_id: clientId }),
  };
}

function audienceList(claims: JsonObject): readonly string[] {
  const named = audiences(claims);
  return named.ok ? named.value : [];
}

const nowSeconds = (ports: Ports): number => Math.floor(ports.clock.nowMs() / 1000);
