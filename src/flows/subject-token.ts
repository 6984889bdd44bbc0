/** The subject token of an exchange, by the rules of its declared type (RFC8693-2.1-20): ours, or a trusted issuer's. */

import type { TokenSummary } from "../audit/event.ts";
import type { Subject } from "../policy/ask.ts";
import type { Ports } from "../ports.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { TrustedIssuer } from "../settings/settings.ts";
import { checkAssertionAudience } from "../spec/id-jag.ts";
import type { Jws } from "../spec/rfc7515.ts";
import { parseJws } from "../spec/rfc7515.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { Exchange } from "../spec/rfc8693.ts";
import { ACCESS_TOKEN, ID_TOKEN } from "../spec/rfc8693.ts";
import { checkAlgorithm, checkType } from "../spec/rfc8725.ts";
import { checkOwnSubject, findIssuer, readForeignClaims } from "./ask/subject.ts";
import { describeToken } from "./audit-fields.ts";
import { verifyOwnToken } from "./verify-own-token.ts";

export type VerifiedSubject = {
  /** `sub` as our tokens carry it. */
  sub: string;
  kind: "user" | "workload";
  subject: Subject;
  note: TokenSummary;
  /** Of a foreign token: what it says beside that. */
  claims?: JsonObject;
  /** `jti` of the tokens of ours behind it, nearest first; empty for a foreign token. */
  ancestors: readonly string[];
};

type Refused = { reason: string };

/** `clientId` is who presents it. */
export async function verifySubject(
  ports: Ports,
  { subjectToken, subjectTokenType, requestedType }: Exchange,
  clientId: string,
): Promise<Result<VerifiedSubject, Refused>> {
  const jws = parseJws(subjectToken);
  if (!jws.ok) return err({ reason: jws.error.kind });
  // RFC8693-3-3: an access token is ours; a foreign one is not tried under another type.
  if (subjectTokenType === ACCESS_TOKEN) return verifyOwn(ports, jws.value);
  if (subjectTokenType !== ID_TOKEN) return verifyForeign(ports, jws.value, "jwt", []);
  // IDJAG-4.3.3-2: an ID token is for the client that its user signed in at; to make an ID-JAG, for this very one.
  const own = requestedType === "id-jag" ? checkAssertionAudience(jws.value.claims, clientId) : ok(undefined);
  if (!own.ok) return err({ reason: own.error.kind });
  return verifyForeign(ports, jws.value, "id_token", [clientId]);
}

async function verifyOwn(ports: Ports, jws: Jws): Promise<Result<VerifiedSubject, Refused>> {
  const { issuer } = ports.settings();
  const own = await verifyOwnToken(ports, jws);
  if (!own.ok) return own;
  const { jti, record } = own.value;
  const subject = checkOwnSubject(issuer, {
    origin: record.origin,
    audiences: [record.audience],
    scopes: record.scope.split(" "),
    expiresAtSeconds: record.expiresAtSeconds,
    chain: record.chain,
    issuer,
    tokenType: "access_token",
    ...(record.mayAct !== undefined && { mayAct: record.mayAct }),
  });
  if (!subject.ok) return subject;
  return ok({
    sub: record.subject,
    kind: record.origin.iss === issuer ? "workload" : "user",
    subject: subject.value,
    note: describeToken(ports, jws, "access_token"),
    ancestors: [jti, ...record.ancestors],
  });
}

async function verifyForeign(
  ports: Ports,
  jws: Jws,
  as: "jwt" | "id_token",
  alsoFor: readonly string[],
): Promise<Result<VerifiedSubject, Refused>> {
  const issuer = findIssuer(ports, jws.claims);
  if (!issuer.ok) return issuer;
  if (!issuer.value.acceptAs.includes(as)) return err({ reason: "issuer_not_accepted_as_type" });
  const verified = await verifyForeignToken(ports, issuer.value, issuer.value.types, jws);
  if (!verified.ok) return verified;
  const audiences = [...issuer.value.audiences, ...alsoFor];
  const read = await readForeignClaims(ports, { ...issuer.value, audiences }, jws.claims, as);
  if (!read.ok) return read;
  const { claims } = jws;
  return ok({ ...read.value, kind: "user", note: describeToken(ports, jws, as), claims, ancestors: [] });
}

/** That this issuer signed it, as a kind of token that is asked for. */
export async function verifyForeignToken(
  ports: Ports,
  issuer: TrustedIssuer,
  types: TrustedIssuer["types"],
  jws: Jws,
): Promise<Result<undefined, Refused>> {
  const type = checkType(jws.header, types);
  if (!type.ok) return err({ reason: type.error.kind });
  // B8725-3.1-1: the algorithms of this issuer, no others.
  const algorithm = checkAlgorithm(jws.header, issuer.algorithms);
  if (!algorithm.ok) return err({ reason: algorithm.error.kind });
  const key = await ports.issuers.key(issuer.issuer, jws.header);
  if (!key.ok) return err({ reason: `issuer_${key.error}` });
  if (!(await ports.verifier.verify(jws, key.value))) return err({ reason: "signature_invalid" });
  return ok(undefined);
}
